"""The process that keeps real-time workloads within their floors. It is started by the agent, and ends with it.

    python -m j10ce.kernel.realtime.keeper FD [TASKS]

FD is the socket to the agent; TASKS is the file of the root cgroup that takes threads, where cgroup v1 has budgets of
real-time: the agent's own cgroup has none, and this process needs none there.
It has its memory locked and runs one priority above what it keeps, so that nothing which it keeps can hold it up.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from j10ce.kernel.realtime import wire
from j10ce.kernel.realtime.crowding import Crowding, Use
from j10ce.kernel.realtime.law import HEARING_S, REST_S, SHARE, SILENCE_S, TICK_S
from j10ce.kernel.realtime.machine import PRIORITY, Linux, ThreadMachine, WardPlace
from j10ce.kernel.realtime.ward import Ward

STATES_S: Final = 0.25  # between two reports of one workload's state
_LOCK_ALL: Final = 1 | 2  # MCL_CURRENT | MCL_FUTURE


class RealtimeKeeper:
    """One look at everything is `step`. Returns when to look again; raises Ended when the agent is gone."""

    def __init__(self, peer: socket.socket, machine: ThreadMachine, now: float, cpus: list[int]) -> None:
        self.wards: dict[str, Ward] = {}
        self._peer = peer
        self._machine = machine
        self._whose: dict[int, Ward] = {}
        self._cpus = cpus
        self._crowding = Crowding(cpus)
        self._own: dict[str, Crowding] = {}  # by workload: where the kernel gives each a budget of its own
        self._heard = self._reported = now
        self._states: dict[str, tuple[str, ...]] = {}

    def step(self, now: float) -> float:
        for command, *fields in wire.receive(self._peer):
            self._heard = now
            self._obey(command, fields, now)
        wire.send(self._peer, wire.BEAT)
        if now - self._heard >= SILENCE_S:
            self.release()
            if now - self._heard >= HEARING_S:
                raise wire.Ended
            return TICK_S
        return self._keep(now)

    def release(self) -> None:
        for ward in self.wards.values():
            ward.release()

    def _obey(self, command: str, fields: list[str], now: float) -> None:
        if command == wire.KEEP:
            key, rate, share, *place = fields
            ward = self.wards.get(key)
            if ward is None or ward.place != WardPlace(*place):
                self._drop(key)
                ward = self.wards[key] = Ward(WardPlace(*place), self._machine, now, self._whose)
            ward.rate = float(rate)
            self._budget(key, float(share))
        elif command == wire.DROP:
            self._drop(fields[0])
            wire.send(self._peer, wire.DROPPED, fields[0])

    def _budget(self, key: str, share: float) -> None:
        """Beside that of all together, where the kernel gives it less."""
        if share >= SHARE:
            self._own.pop(key, None)
        else:
            self._own.setdefault(key, Crowding(self._cpus)).share = share

    def _drop(self, key: str) -> None:
        if ward := self.wards.pop(key, None):
            ward.release()
            self._machine.forget(ward.place)
        self._states.pop(key, None)
        self._own.pop(key, None)

    def _keep(self, now: float) -> float:
        self._crowding.take(self._measure(now))
        together = self._crowding.allowance(now)
        least, births = together, self._machine.births() if self.wards else 0
        for key, ward in self.wards.items():
            own = self._own.get(key)
            allowed = min(together, own.allowance(now)) if own else together
            ward.act(now, births, resting=not allowed)
            least = min(least, allowed or REST_S)
        if now - self._reported >= STATES_S:
            self._report(now)
        return least or REST_S

    def _measure(self, now: float) -> list[Use]:
        crowded = self._crowding.crowded(now)
        uses: list[Use] = []
        for key, ward in list(self.wards.items()):
            try:
                own = self._own.get(key)
                use = ward.measure(now, crowded=crowded or own is not None)
            except FileNotFoundError:
                self._drop(key)
                wire.send(self._peer, wire.DROPPED, key)
                continue
            if use:
                uses.append(use)
                if own:
                    own.take([use])
        return uses

    def _report(self, now: float) -> None:
        self._reported = now
        for key, ward in self.wards.items():
            state = (str(len(ward.realtime)), str(len(ward.spinners)), ward.refused)
            if state != self._states.get(key):
                self._states[key] = state
                wire.send(self._peer, wire.STATE, key, *state)


def run(
    keeper: RealtimeKeeper,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Until the agent is gone, or this process is asked to end. All threads are fair in the end."""
    at = clock()
    try:
        while True:
            at = max(at + keeper.step(clock()), clock())
            sleep(max(0.0, at - clock()))
    except wire.Ended:
        pass
    finally:
        keeper.release()


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the agent, which takes its time
    peer = socket.socket(fileno=int(sys.argv[1]))
    keeper = RealtimeKeeper(peer, Linux(), time.monotonic(), sorted(os.sched_getaffinity(0)))
    come_first(*sys.argv[2:])
    run(keeper)


def come_first(tasks: str = "") -> None:
    """Where a right is missing it works all the same, if less surely."""
    gc.collect()
    gc.freeze()
    gc.disable()
    ctypes.CDLL(None).mlockall(_LOCK_ALL)
    with suppress(OSError):
        if tasks:
            with open(tasks, "w") as f:
                f.write("0")
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY + 1))


if __name__ == "__main__":
    main()
