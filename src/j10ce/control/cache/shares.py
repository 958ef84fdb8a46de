"""Percentages as ways of a cache, and as bandwidth in what the CPU counts in."""

from __future__ import annotations

import math
from typing import Final

from msgspec import UNSET

from j10ce.model.kinds import CacheSection
from j10ce.model.machine.cache import Bandwidth, Ways

WHOLE: Final = 100
DIE_EIGHTHS: Final = 160  # eighths of a GB/s that a die of AMD's can use: 0.8 of 25 GB/s


def ways(cache: CacheSection, offered: Ways) -> frozenset[int] | None:
    """From one percentage to another, both rounded up, and never fewer than the CPU needs; None: nothing is said."""
    start, end = cache.llc_start_percent, cache.llc_end_percent
    if start is UNSET and end is UNSET:
        return None
    first, last = (-(-offered.count * p // WHOLE) for p in (start or 0, WHOLE if end is UNSET else end))
    last = min(offered.count, max(last, first + offered.least))
    return frozenset(range(max(0, min(first, last - offered.least)), last))


def bandwidth(cache: CacheSection, offered: Bandwidth) -> float | None:
    """Rounded up to the step of the CPU, never below its least; None: nothing is said, or it cannot be said here."""
    percent = cache.memory_bandwidth_percent
    if percent is UNSET or offered.unit == "MB/s":
        return None
    if percent == WHOLE:
        return float(offered.most)
    amount = percent if offered.unit == "percent" else DIE_EIGHTHS * percent // WHOLE
    return float(min(offered.most, max(offered.least, math.ceil(amount / offered.step) * offered.step)))
