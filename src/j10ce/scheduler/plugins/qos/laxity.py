"""The law of lazy mode: how long a pod can still wait until its owner misses its SLO, if it runs from then on.

SLOs are shares of time, so they are met or missed at the end of a period. Let R be what is left of it, n the pods of
an owner of which n_p do not run, and s its SLO. If all of them run from now on, the owner ends with

    spare = E − s·T + n·(1 − s)·R        seconds of service more than its SLO asks for

and each of its waiting pods uses up one second of it per second. So each of them can wait for

    laxity = spare / n_p − h             h: what a start takes

and a running one, that would be one more, for spare / (n_p + 1) − h. All pods of a concurrent owner count only
together: there each second of waiting costs N, and nothing at all when too few run anyway.

Whoever can wait is let wait, and whoever can wait longest is moved, so that there are as few starts as can be: about
one per owner and period. Rotation by the metric, for its own sake, would start pods many times more often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from j10ce.scheduler.accounts.measure import Measure


def laxity(measure: Measure, approach: str, running: bool, left: float) -> float:
    """Seconds. `running`: whether it is about a pod that would be moved. `left`: of the period."""
    sums, pods, slo = measure.sums, measure.pods, measure.slo
    several = max(pods.slots if approach == "concurrent" else pods.running + pods.pending, 1)
    if approach == "independent":
        several = 1
    spare = sums.effective - slo * sums.total + several * (1 - slo) * left
    if approach == "concurrent":
        if running and not measure.contributing:
            return math.inf
        return spare / several - sums.overhead
    waiting = 1 if approach == "independent" else max(pods.pending + running, 1)
    return spare / waiting - sums.overhead


def left_of_period(age: float, periods: Sequence[float]) -> float:
    """Of a cluster that is followed for so long. Periods end early at first, so that nobody is behind by much of its
    life; later they are all as long as the last one."""
    for end in periods:
        if age < end:
            return end - age
    return periods[-1] - age % periods[-1]
