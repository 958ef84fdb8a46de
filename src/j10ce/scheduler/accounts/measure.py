"""Sums made an availability, and the seconds to its violation.

    T = E + D + W + B        QoS = E / T        h = 2.4 s until a binding was seen, else B per incarnation

    independent           M = E/s − (E + W + B) − h
    average, aggregate    QoS = s: 0;  QoS < s: M = E/s − T − h
                          QoS > s: M = (E − s·T) / ((n_r + n_p)·s − k) − h, or infinite when k of them are enough
    concurrent            QoS < s: M = E/s − T − h;  else M = E/(N·s) − T/N

    whatever it is        s = 0: infinite for who ran, else 0

`M` is the time to violation of who meets its SLO `s`, and else what it has to run without a break to recover.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

FIRST_OVERHEAD_S: Final = 2.4  # what a start costs, as long as none was seen


class ServiceSums(NamedTuple):
    """Seconds: effective, discarded, waiting and binding."""

    effective: float
    discarded: float
    waiting: float
    binding: float
    incarnations: int

    @property
    def total(self) -> float:
        return self.effective + self.discarded + self.waiting + self.binding

    @property
    def qos(self) -> float:
        return self.effective / self.total if self.total else 0.0

    @property
    def overhead(self) -> float:
        """Seconds that a start of one of them takes."""
        return self.binding / self.incarnations if self.binding and self.incarnations else FIRST_OVERHEAD_S


class PodCounts(NamedTuple):
    """How many of an owner's pods hold a slot: running, and not; those that would run without the one in question;
    and how many it is to have."""

    running: int
    pending: int
    residual: int
    slots: int


class Measure(NamedTuple):
    """Of an owner, seen from one of its pods. `preemption_overhead` is NaN while nothing was bound or ran."""

    sums: ServiceSums
    pods: PodCounts
    slo: float
    metric: float
    preemption_overhead: float
    acceptable: float
    contributing: bool = True  # false: too few of a concurrent owner's pods run for any to count
    ran: float = 0.0  # the pod itself, in its present incarnation

    @property
    def qos(self) -> float:
        return self.sums.qos


def metric(approach: str, sums: ServiceSums, slo: float, pods: PodCounts) -> float:
    match approach:
        case "independent" | "average" | "aggregate" | "concurrent" if not slo:
            return share(sums.effective, slo)
        case "independent":
            return sums.effective / slo - (sums.effective + sums.waiting + sums.binding) - sums.overhead
        case "average" | "aggregate":
            return _of_several(sums, slo, pods)
        case "concurrent":
            return _of_all_at_once(sums, slo, pods.slots)
        case _:
            return math.nan


def share(effective: float, slo: float) -> float:
    """How long its effective time lasts. Who asks for nothing and got nothing has used nothing up."""
    if slo:
        return effective / slo
    return math.inf if effective > 0 else 0.0


def preemption_overhead(approach: str, sums: ServiceSums) -> float:
    """The share of its time with a node that starts took, and, of tasks, what was done in vain."""
    lost = sums.binding + (sums.discarded if approach == "aggregate" else 0.0)
    held = sums.binding + sums.effective + sums.discarded
    return lost / held if held else math.nan


def _of_several(sums: ServiceSums, slo: float, pods: PodCounts) -> float:
    if sums.qos == slo:
        return 0.0
    if sums.qos < slo:
        return sums.effective / slo - sums.total - sums.overhead
    several = pods.running + pods.pending
    if several == pods.residual == 0 or (several and pods.residual / several >= slo):
        return math.inf
    return (sums.effective - slo * sums.total) / (several * slo - pods.residual) - sums.overhead


def _of_all_at_once(sums: ServiceSums, slo: float, slots: int) -> float:
    if sums.total and sums.qos < slo:
        return sums.effective / slo - sums.total - sums.overhead
    several = max(slots, 1)
    return (sums.effective / slo - sums.total) / several
