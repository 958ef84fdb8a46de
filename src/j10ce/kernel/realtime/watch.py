"""The agent's side of the keeper: a thread that starts it, beats, and puts all to fair when it is dead or silent.

The thread beats only while the ring lives: whoever keeps a workload says so again at every tick.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import structlog

from j10ce.host import child
from j10ce.kernel.realtime import wire
from j10ce.kernel.realtime.machine import Linux, WardPlace, let_go

log = structlog.get_logger()
BEAT_S: Final = 0.02
SILENT_S: Final = 0.2  # of a keeper that has spoken
START_S: Final = 10.0  # until its first word
RING_S: Final = 30.0  # without a word of the ring: it hangs
ANSWER_S: Final = 0.2  # to a DROP
FIRST_BACKOFF_S: Final = 0.2
LONGEST_BACKOFF_S: Final = 60.0
PROVEN_S: Final = 60.0  # who lived as long is started again at once
MODULE: Final = "j10ce.kernel.realtime.keeper"


@dataclass
class WatchedWard:
    """One workload, as it was asked for."""

    place: WardPlace
    rate: float
    share: float
    refused: str = ""


@dataclass
class Running:
    """A keeper process and what was heard of it."""

    process: subprocess.Popen[bytes]
    peer: wire.Peer
    started: float
    heard: float
    spoke: bool = False
    dropped: set[str] = field(default_factory=set)


class RealtimeWatch:
    """Methods are called on the kernel thread; the watching thread is there while something is kept."""

    def __init__(self, arguments: Sequence[str] = (), clock: Callable[[], float] = time.monotonic) -> None:
        self._arguments = arguments
        self._clock = clock
        self._linux = Linux()
        self._kept: dict[str, WatchedWard] = {}
        self._running: Running | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ring_at = 0.0
        self._start_after, self._backoff_s = 0.0, FIRST_BACKOFF_S

    @property
    def pid(self) -> int:
        """Of the keeper; 0 while there is none."""
        running = self._running
        return running.process.pid if running else 0

    @property
    def kept(self) -> Mapping[str, WatchedWard]:
        return self._kept

    def keep(self, key: str, place: WardPlace, rate: float, share: float) -> str:
        """Why some thread of it is not real-time, as far as that is known; empty: nothing stands against it."""
        with self._changed:
            self._ring_at = self._clock()
            before = self._kept.get(key)
            if before is None or (before.place, before.rate, before.share) != (place, rate, share):
                self._kept[key] = WatchedWard(place, rate, share)
                self._say_keep(key)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="realtime", daemon=True)
                self._thread.start()
            return self._kept[key].refused

    def drop(self, key: str, place: WardPlace) -> None:
        """All its threads are fair when this returns."""
        with self._changed:
            self._ring_at = self._clock()
            self._kept.pop(key, None)
            if running := self._running:
                running.dropped.discard(key)
                with suppress(wire.Ended):
                    wire.send(running.peer, wire.DROP, key)
                self._changed.wait_for(lambda: self._running is not running or key in running.dropped, ANSWER_S)
            if not self._kept:
                self._end()
        self._all_fair(place)

    def _watch(self) -> None:
        """Until nothing is kept any more."""
        while True:
            with self._changed:
                if not self._kept:
                    self._end()
                    self._thread = None
                    return
                self._look(self._clock())
            time.sleep(BEAT_S)

    def _look(self, now: float) -> None:
        if self._running is None:
            if now >= self._start_after and now - self._ring_at < RING_S:
                self._start(now)
            return
        try:
            self._hear(self._running, now)
            if now - self._ring_at < RING_S:
                wire.send(self._running.peer, wire.BEAT)
            silent = now - self._running.heard >= (SILENT_S if self._running.spoke else START_S)
            why = "it is silent" if silent else ""
        except wire.Ended:
            why = "it ended"
        if why:
            self._lose(why, now)

    def _hear(self, running: Running, now: float) -> None:
        for command, *fields in wire.receive(running.peer):
            running.heard, running.spoke = now, True
            if command == wire.STATE and (kept := self._kept.get(fields[0])):
                kept.refused = fields[3]
            elif command == wire.DROPPED:
                running.dropped.add(fields[0])
                self._changed.notify_all()

    def _start(self, now: float) -> None:
        ours, theirs = wire.pair()
        command = child.python(MODULE, str(theirs.fileno()), *self._arguments)
        environ = child.environ(os.environ) | {"PYTHONPATH": ":".join(child.search_path())}
        try:
            process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=child.FOLDER,
                env=environ,
                start_new_session=True,
            )
        except OSError as e:
            ours.close()
            log.error("realtime.no_keeper", error=str(e))
            self._delay(now)
            return
        finally:
            theirs.close()
        self._running = Running(process, ours, now, now)
        for key in self._kept:
            self._say_keep(key)

    def _lose(self, why: str, now: float) -> None:
        lived = now - self._running.started if self._running else 0.0
        self._end()
        for kept in self._kept.values():
            self._all_fair(kept.place)
        log.warning("realtime.keeper_lost", why=why, lived_s=round(lived, 1), means="threads are fair until the next")
        if lived >= PROVEN_S:
            self._backoff_s = FIRST_BACKOFF_S
        self._delay(now)

    def _delay(self, now: float) -> None:
        self._start_after = now + self._backoff_s
        self._backoff_s = min(2 * self._backoff_s, LONGEST_BACKOFF_S)

    def _end(self) -> None:
        if running := self._running:
            running.process.kill()
            running.process.wait()
            running.peer.close()
            self._running = None
            self._changed.notify_all()

    def _say_keep(self, key: str) -> None:
        if self._running is not None:
            kept = self._kept[key]
            with suppress(wire.Ended):
                wire.send(self._running.peer, wire.KEEP, key, str(kept.rate), str(kept.share), *kept.place)

    def _all_fair(self, place: WardPlace) -> None:
        """Twice: whoever was started between two looks is fair already, but a number may change hands."""
        for _ in range(2):
            let_go(self._linux, self._linux.threads(place) or ())
