"""The arithmetic of the real-time floor. No clock, no files: all times come in, in seconds.

Credit of a workload, in CPU seconds:   credit ← min(credit + rate · passed − used, rate · SAVED)
Only what it used while it was real-time is taken off: the fair class is free. At zero all threads are fair, until
RETURN of the rate has come together again; so real-time use over any T is at most  rate · (T + SAVED)  and one tick.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

TICK_S: Final = 0.02
SAVED_S: Final = 0.25  # what a quiet workload may save up: bursts of this length at the full rate
RETURN_S: Final = 0.02
SPIN_S: Final = 0.05  # who has not slept for so long is fair until he sleeps
WINDOW_S: Final = 0.1
SHARE: Final = 0.9  # of the window that a CPU may be real-time
STEPS_S: Final = (TICK_S, 0.015, 0.01, 0.005)  # between two looks, the longest that is allowed
REST_S: Final = 0.01
EPSILON_S: Final = 1e-9
SILENCE_S: Final = 0.08  # of the agent, before all are fair; with a tick it is 100 ms
HEARING_S: Final = 1.0  # of silence, before the keeper ends


class Credit(NamedTuple):
    left_s: float
    realtime: bool


FRESH: Final = Credit(0.0, False)


def settle(credit: Credit, rate: float, used_s: float, passed_s: float) -> Credit:
    """After `passed_s` in which the workload used `used_s`; `rate` is min(floor, limit) in CPUs."""
    spent = used_s if credit.realtime else 0.0
    left = min(credit.left_s + rate * passed_s - spent, rate * SAVED_S)
    if credit.realtime:
        return Credit(left, left > 0.0)
    return Credit(left, rate > 0.0 and left >= rate * RETURN_S)


class Streak(NamedTuple):
    """A thread without sleep: how often it had slept when it was seen first, and when that was."""

    sleeps: int
    since: float


def awake(streak: Streak | None, sleeps: int, now: float, passed_s: float) -> Streak:
    """The thread ran for nearly all of the last `passed_s`."""
    return streak if streak is not None and streak.sleeps == sleeps else Streak(sleeps, now - passed_s)


def spins(streak: Streak, now: float) -> bool:
    return now - streak.since >= SPIN_S


class CpuWindow:
    """How long one CPU was real-time lately."""

    def __init__(self) -> None:
        self._uses: deque[tuple[float, float, float]] = deque()  # from, to, how long of it

    def add(self, start: float, end: float, used_s: float) -> None:
        if used_s > 0.0:
            self._uses.append((start, end, min(used_s, end - start)))
        while self._uses and self._uses[0][1] <= end - WINDOW_S:
            self._uses.popleft()

    def used_since(self, when: float) -> float:
        return sum(used * _part(start, end, when) for start, end, used in self._uses)

    def allowance(self, now: float, share: float = SHARE) -> float:
        """How long the CPU may go on being real-time, so that no window has more than its share; 0: it rests."""
        if not self._uses or self._uses[-1][1] <= now - WINDOW_S:
            self._uses.clear()
            return TICK_S
        budget = WINDOW_S * share + EPSILON_S
        return next((a for a in STEPS_S if self.used_since(now + a - WINDOW_S) + a <= budget), 0.0)


def _part(start: float, end: float, when: float) -> float:
    """Of a span, what lies after `when`."""
    return min(1.0, max(0.0, (end - when) / (end - start))) if end > start else 0.0
