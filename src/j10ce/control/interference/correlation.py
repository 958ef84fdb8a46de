"""Series of numbers, compared by their ranks: neither units nor outliers matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

TimedValue: TypeAlias = tuple[float, float]  # the end of the interval that the value is a mean of, and the value


def aligned(intervals: Sequence[TimedValue], use: Sequence[TimedValue]) -> list[float] | None:
    """The mean of `use` in each interval but the first, whose beginning nobody knows; None where one has no sample."""
    means, at, count = [], 0, len(use)
    while at < count and use[at][0] <= intervals[0][0]:
        at += 1
    for end, _ in intervals[1:]:
        total, first = 0.0, at
        while at < count and use[at][0] <= end:
            total += use[at][1]
            at += 1
        if at == first:
            return None
        means.append(total / (at - first))
    return means


def ranks(values: Sequence[float]) -> list[float]:
    """From 0 on; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranked = [0.0] * len(values)
    first = 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and values[order[last + 1]] == values[order[first]]:
            last += 1
        for n in range(first, last + 1):
            ranked[order[n]] = (first + last) / 2
        first = last + 1
    return ranked


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's: 1 where both rise and fall together, -1 where one rises as the other falls, 0 where one stays."""
    x, y = ranks(a), ranks(b)
    middle = (len(a) - 1) / 2
    spread = math.sqrt(sum((v - middle) ** 2 for v in x) * sum((v - middle) ** 2 for v in y))
    together = sum((v - middle) * (w - middle) for v, w in zip(x, y, strict=True))
    return max(-1.0, min(1.0, together / spread)) if spread else 0.0


def thirds(values: Sequence[float]) -> tuple[list[int], list[int]]:
    """(indices of the lowest third, of the highest)"""
    order = sorted(range(len(values)), key=values.__getitem__)
    third = max(1, len(order) // 3)
    return order[:third], order[-third:]


def mean_at(values: Sequence[float], indices: Sequence[int]) -> float:
    return math.fsum(values[n] for n in indices) / len(indices)
