"""Percentiles of what was measured, as koordlet's metric cache takes them."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value at a share of the ascending list, cut to the one before it; None of nothing.

    The position is reckoned in 32 bits, as theirs is.
    """
    if not values:
        return None
    position = _single(_single(len(values)) * _single(share))
    return sorted(values)[min(max(int(position) - 1, 0), len(values) - 1)]


def average(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def covers(first_s: float, last_s: float, window_s: float) -> bool:
    """Whether samples from one time to another are enough for a window: more than half of it."""
    return (last_s - first_s) * 2 > window_s


def _single(value: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded
