"""Controllers from entry points, in one helper process that may raise, hang or die without touching the ring.

The ring never waits: each tick takes the answers that are there and asks the next question. A controller that does not
answer within the deadline is benched, the helper is ended and started again, and the guard lets its proposals lapse.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterable, Sequence
from typing import Final

import structlog

from j10ce.agent.plugins import wire
from j10ce.host import child
from j10ce.model.plan import Proposal
from j10ce.model.snapshot import Snapshot

log = structlog.get_logger()
DEADLINE_S: Final = 2.0
FIRST_BACKOFF_S: Final = 1.0
LONGEST_BACKOFF_S: Final = 300.0
PIPE_BYTES: Final = 1 << 20  # an answer of this size is there at once; the kernel's own 64 KiB would take ticks
MOST_READ: Final = 4 << 20  # at one tick: who writes more than that writes without end
MOST_DYING: Final = 3  # helpers that were killed and are still there; then no more are started


def _widen(pipe: int) -> None:
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except OSError as e:  # a user has only so many pages for pipes; a narrow one is slower, no more
        log.info("plugin.narrow_pipe", error=str(e))


class PluginFault(Exception):
    """The plugin has no valid proposals at the moment; says why."""


class Plugin:
    """One plugin as the ring sees it: its last answer, or the fault that stands in its place."""

    def __init__(self, name: str, helper: PluginProcess) -> None:
        self.name = name
        self._helper = helper

    def propose(self, snap: Snapshot, /) -> Iterable[Proposal]:
        self._helper.ask(snap)
        if fault := self._helper.faults.get(self.name):
            raise PluginFault(fault)
        return self._helper.proposals.get(self.name, ())


class PluginProcess:
    """The helper process. All methods run on the ring's thread and none of them blocks."""

    def __init__(self, names: Sequence[str], command: Sequence[str], *, deadline_s: float = DEADLINE_S) -> None:
        self.names = tuple(names)
        self.proposals: dict[str, list[Proposal]] = {}
        self.faults: dict[str, str] = {}
        self.restarts = 0
        self._command = command
        self._deadline_s = deadline_s
        self._process: subprocess.Popen[bytes] | None = None
        self._asked_at: float | None = None  # None: no question is open
        self._asked = 0.0  # the instant of the last snapshot seen
        self._waiting: list[str] = []  # who has not answered the open question
        self._epoch: int | None = None
        self._inbox, self._outbox = bytearray(), bytearray()
        self._benched: dict[str, tuple[float, float]] = {}  # name -> (until, backoff)
        self._start_after = 0.0
        self._dying: list[subprocess.Popen[bytes]] = []  # killed, not ended yet: on a mount that hangs, or frozen

    def controllers(self) -> list[Plugin]:
        return [Plugin(name, self) for name in self.names]

    def ask(self, snap: Snapshot) -> None:
        """Once per instant, however many plugins there are: take answers, judge the deadline, ask again."""
        if snap.now == self._asked:
            return
        self._asked = snap.now
        self._dying = [p for p in self._dying if p.poll() is None]
        if self._process is None:
            self._start(snap.now)
        if self._process is None:
            return
        if self._pump() >= MOST_READ:
            self._bench(snap.now, f"{MOST_READ >> 20} MiB and more came at once")
        elif self._asked_at is not None and snap.now - self._asked_at > self._deadline_s:
            self._bench(snap.now, f"no answer within {self._deadline_s:g} s")
        elif self._process.poll() is not None:
            self._bench(snap.now, f"the helper process ended with {self._process.returncode}")
        elif self._asked_at is None:
            self._send(snap)

    def close(self) -> None:
        """End the helper. Nobody waits for it: one that cannot die now is reaped when it can."""
        if self._process is not None:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    pipe.close()
            self._dying.append(self._process)
        self._process = None

    def _start(self, now: float) -> None:
        if now < self._start_after or len(self._dying) >= MOST_DYING:
            return
        # It imports what this agent would, and nothing else that lies about.
        environ = child.environ(os.environ) | {"PYTHONPATH": ":".join(child.search_path())}
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, cwd=child.FOLDER, env=environ
        )
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                os.set_blocking(pipe.fileno(), False)
                _widen(pipe.fileno())
        self._epoch = self._asked_at = None
        self._inbox.clear()
        self._outbox.clear()

    def _send(self, snap: Snapshot) -> None:
        benched = [name for name, (until, _) in self._benched.items() if snap.now < until]
        self._waiting = [name for name in self.names if name not in benched]
        if not self._waiting:
            return
        question = wire.question(snap, with_static=snap.epoch != self._epoch, benched=benched)
        self._outbox += wire.encode(question)
        self._epoch, self._asked_at = snap.epoch, snap.now
        self._pump()

    def _pump(self) -> int:
        """Move what the pipes can take and give, up to a limit; the bytes that came."""
        process, came = self._process, 0
        if process is None or process.stdin is None or process.stdout is None:
            return came
        try:
            while self._outbox and (sent := process.stdin.write(self._outbox)):
                del self._outbox[:sent]
            while came < MOST_READ and (chunk := process.stdout.read(PIPE_BYTES)):
                self._inbox += chunk
                came += len(chunk)
            for body in wire.frames(self._inbox):
                self._take(wire.decode(body, wire.Answer))
        except (OSError, ValueError) as e:  # a plugin that writes to stdout breaks the framing: the deadline ends it
            log.warning("plugin.garbled", error=str(e))
        return came

    def _take(self, answer: wire.Answer) -> None:
        if not answer.controller:
            self._asked_at = None
            return
        self._waiting = [name for name in self._waiting if name != answer.controller]
        if answer.error:
            self.faults[answer.controller] = answer.error
            return
        self.faults.pop(answer.controller, None)
        self._benched.pop(answer.controller, None)
        # Whatever it calls itself: advice is judged owner by owner, and each is told under its own name.
        self.proposals[answer.controller] = [p._replace(owner=answer.controller) for p in answer.proposals]

    def _bench(self, now: float, why: str) -> None:
        """The first that did not answer is the culprit: it sits out, the others go on with a fresh process."""
        culprit = self._waiting[0] if self._waiting else ""
        _, backoff = self._benched.get(culprit, (0.0, FIRST_BACKOFF_S / 2))
        backoff = min(backoff * 2, LONGEST_BACKOFF_S)
        if culprit:
            self._benched[culprit] = (now + backoff, backoff)
            self.faults[culprit] = why
        else:
            self._start_after = now + backoff
        self.restarts += 1
        log.warning("plugin.benched", controller=culprit or "(helper)", why=why, for_s=backoff)
        self.close()
