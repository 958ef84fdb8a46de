"""Who has used more than an equal part of what a class of callers has together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import exp
from typing import Final

LATELY_S: Final = 5.0  # what was used before that counts for a third, and soon for nothing
FORGOTTEN_S: Final = 3 * LATELY_S
ALIKE: Final = 0.999  # sums are not exact


class Parts:
    """What each caller used lately; at most `most` of them, the longest rested goes first."""

    def __init__(self, clock: Callable[[], float], most: int) -> None:
        self._clock, self._most = clock, most
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()  # name -> (seconds, when)
        self._total, self._at = 0.0, 0.0

    def add(self, name: str, seconds: float) -> None:
        now = self._clock()
        self._used[name] = (self._lately(name, now) + seconds, now)
        self._used.move_to_end(name)
        self._total, self._at = self._faded(self._total, self._at, now) + seconds, now
        self._forget(now)

    def is_over(self, name: str, per_s: float) -> bool:
        """Whether it is no less than an equal part: of so much a second, or of what was used where that is less."""
        now = self._clock()
        self._forget(now)
        whole, used = min(per_s * LATELY_S, self._faded(self._total, self._at, now)), self._lately(name, now)
        return used > 0 and used * len(self._used) >= whole * ALIKE

    def _lately(self, name: str, now: float) -> float:
        used, at = self._used.get(name, (0.0, now))
        return self._faded(used, at, now)

    @staticmethod
    def _faded(used: float, at: float, now: float) -> float:
        return used * exp((at - now) / LATELY_S)

    def _forget(self, now: float) -> None:
        while self._used:
            name, (_, at) = next(iter(self._used.items()))
            if len(self._used) <= self._most and now - at < FORGOTTEN_S:
                return
            self._total -= self._faded(*self._used.pop(name), self._at)
