"""Pieces that control laws are made of. Pure: whatever a law remembers is passed in and handed back."""

from __future__ import annotations

import math
from collections.abc import Collection


def clamp(value: float, low: float, high: float) -> float:
    """`low` wins where the two cross: a floor is a promise, a ceiling is a wish."""
    return max(low, min(high, value))


def dead_band(held: float, value: float, width: float) -> float:
    """Stay where we are until the wish is at least `width` away: noise moves nothing."""
    return held if abs(value - held) < width else value


def ramp(held: float, value: float, *, rise: float, fall: float = math.inf) -> float:
    """One step towards `value`, at most `rise` up or `fall` down: give back at once, take slowly."""
    return clamp(value, held - fall, held + rise)


def smooth(held: float, value: float, elapsed_s: float, settle_s: float) -> float:
    """Exponential mean that forgets with time, not with samples: after `settle_s`, 63 % of a step is in."""
    if settle_s <= 0:
        return value
    return value + (held - value) * math.exp(-max(0.0, elapsed_s) / settle_s)


def step_up(value: float, steps: int) -> float:
    """The next of so many even steps per doubling, at or above a positive value: small changes rarely cross one."""
    return math.pow(2.0, math.ceil(math.log2(value) * steps - 1e-9) / steps)


def quantile(samples: Collection[float], q: float) -> float:
    """The nearest rank of a collection that is not empty."""
    rank = max(1, math.ceil(q * len(samples)))
    return sorted(samples)[rank - 1]


def pages_down(size: float, page: int) -> float:
    return size if size == math.inf else float(size // page * page)


def pages_up(size: float, page: int) -> float:
    return size if size == math.inf else float(-(-size // page) * page)
