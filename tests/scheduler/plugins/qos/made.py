"""Measures as tests need them."""

from __future__ import annotations

from j10ce.scheduler.accounts.measure import Measure, PodCounts, ServiceSums


def measure(
    effective: float = 0.0,
    waiting: float = 0.0,
    slo: float = 0.8,
    overhead: float = 2.0,
    metric: float = 0.0,
    contributing: bool = True,
    ran: float = 0.0,
) -> Measure:
    """Of one pod, whose starts took `overhead` seconds of its effective time."""
    sums = ServiceSums(effective, -overhead, waiting, overhead, 1)
    return Measure(sums, PodCounts(0, 1, 0, 1), slo, metric, 0.0, 1 - slo, contributing, ran)
