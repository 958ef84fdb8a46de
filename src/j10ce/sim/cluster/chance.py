"""Numbers that look random and depend on nothing but their names: the n-th start of an owner takes as long under every
policy, so that what differs between two runs is what the policies did."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping
from itertools import accumulate
from typing import Final

MASK: Final = (1 << 64) - 1
STEP: Final = 0x9E3779B97F4A7C15
SPREAD: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
STARTS, ARRIVALS, ORDER, FAILURES, VICTIMS = range(5)  # what numbers are drawn for


def share(seed: int, *what: int) -> float:
    """From 0 up to, and without, 1."""
    state = seed & MASK
    for number in what:
        state = _mixed(state ^ _mixed((number * STEP) & MASK))
    return _mixed(state) / 2**64


def _mixed(state: int) -> int:
    """The finisher of SplitMix64."""
    state = (state + STEP) & MASK
    for shift, factor in SPREAD:
        state = ((state ^ (state >> shift)) * factor) & MASK
    return state ^ (state >> 31)


class Spans:
    """Draws from a histogram of seconds; nothing takes any time where it is empty."""

    def __init__(self, histogram: Mapping[float, int], more: float = 0.0) -> None:
        self._spans = sorted(histogram)
        self._until = [*accumulate(histogram[span] for span in self._spans)]
        self._more = more

    def draw(self, seed: int, *what: int) -> float:
        if not self._spans:
            return self._more
        at = share(seed, STARTS, *what) * self._until[-1]
        return self._spans[bisect(self._until, at)] + self._more
