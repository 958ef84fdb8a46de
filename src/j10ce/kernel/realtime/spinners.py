"""Who of a workload ran how long, and who of them spins: a spinner is fair until it sleeps."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain, islice
from typing import Final, NamedTuple

from j10ce.kernel.realtime.law import Streak, awake, spins
from j10ce.kernel.realtime.machine import ThreadMachine

NEARLY: Final = 0.8  # of a span: who ran less has slept, or stood aside
ASKED_AT_ONCE: Final = 16  # spinners that are looked at in one tick, in turn
LOOKED_AT_ONCE: Final = 256  # threads, likewise: each costs some 10 µs of a process that comes before all others


class Ran(NamedTuple):
    thread: int
    ran_s: float
    span_s: float  # since the thread was looked at last


class Running:
    def __init__(self, machine: ThreadMachine) -> None:
        self._machine = machine
        self._seen: dict[int, tuple[float, float]] = {}  # how long each had run, and when that was read

    def look(self, threads: Collection[int], now: float) -> list[Ran]:
        """Of those that were looked at before; of many those that have waited longest."""
        fresh = (thread for thread in threads if thread not in self._seen)
        turn = [*islice(chain(fresh, (t for t in self._seen if t in threads)), LOOKED_AT_ONCE)]
        return [row for thread in turn if (row := self._row(thread, now))]

    def keep(self, threads: set[int]) -> None:
        for thread in self._seen.keys() - threads:
            del self._seen[thread]

    def _row(self, thread: int, now: float) -> Ran | None:
        ran, before = self._machine.ran_s(thread), self._seen.pop(thread, None)
        if ran is None:
            return None
        self._seen[thread] = ran, now
        return Ran(thread, ran - before[0], now - before[1]) if before else None


class Spinners:
    def __init__(self, machine: ThreadMachine) -> None:
        self._machine = machine
        self._streaks: dict[int, Streak] = {}
        self._caught: dict[int, int] = {}  # and how often each had slept by then

    @property
    def threads(self) -> frozenset[int]:
        return frozenset(self._caught)

    def keep(self, threads: set[int]) -> None:
        for past in (self._streaks, self._caught):
            for thread in past.keys() - threads:
                del past[thread]

    def catch(self, rows: Iterable[Ran], now: float) -> set[int]:
        """Those that have not slept for too long."""
        for thread, ran_s, span_s in rows:
            if ran_s >= NEARLY * span_s and (sleeps := self._machine.sleeps(thread)) is not None:
                streak = self._streaks[thread] = awake(self._streaks.get(thread), sleeps, now, span_s)
                if spins(streak, now):
                    self._caught[thread] = sleeps
        return {*self._caught}

    def pardon(self) -> set[int]:
        """Whoever has slept since is none any more; some are asked at a time, each in its turn."""
        pardoned: set[int] = set()
        for thread, caught in list(islice(self._caught.items(), ASKED_AT_ONCE)):
            del self._caught[thread]
            if self._machine.sleeps(thread) == caught:
                self._caught[thread] = caught
            else:
                pardoned.add(thread)
        return pardoned
