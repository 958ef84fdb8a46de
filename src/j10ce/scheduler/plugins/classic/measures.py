"""Measures of many pods at once, from their lines: number for number what `OwnerAccount.measure` says of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from j10ce.scheduler.accounts.measure import FIRST_OVERHEAD_S
from j10ce.scheduler.cluster import Mask
from j10ce.scheduler.plugins.classic.sheet import AGGREGATE, CONCURRENT, INDEPENDENT, Numbers, PodLine


class Measures(NamedTuple):
    metric: Numbers
    slo: Numbers
    preemption_overhead: Numbers
    acceptable: Numbers
    contributing: Mask
    ran: Numbers


class Sums(NamedTuple):
    effective: Numbers
    discarded: Numbers
    waiting: Numbers
    binding: Numbers
    total: Numbers
    overhead: Numbers


def measures(of: PodLine[Numbers], now: float) -> Measures:
    with np.errstate(divide="ignore", invalid="ignore"):
        ran = np.where(np.isinf(of.run_start), 0.0, now - of.run_start)
        sums = _sums(of, ran, now)
        lost = sums.binding + np.where(of.approach == AGGREGATE, sums.discarded, 0.0)
        share = lost / (sums.binding + sums.effective + sums.discarded)  # nothing of nothing is no number
        metric = np.where(of.slo == 0, np.where(sums.effective > 0, np.inf, 0.0), _metric(of, sums))
        return Measures(metric, of.slo, share, of.acceptable, of.contributing != 0, ran)


def _sums(of: PodLine[Numbers], ran: Numbers, now: float) -> Sums:
    since = now - of.origin
    running, waiting = of.ran + of.ran_open * since, of.waited + of.waited_open * since
    binding = of.bound + of.bound_open * since
    at_stake, passed = np.where(of.in_phase != 0, ran, 0.0), np.maximum(now - of.until, 0.0)
    effective = np.select(
        [of.approach == AGGREGATE, of.approach == CONCURRENT],
        [running - of.killed - at_stake, of.effective + of.effective_open * passed],
        running,
    )
    discarded = np.select(
        [of.approach == AGGREGATE, of.approach == CONCURRENT],
        [of.killed + at_stake, of.discarded + of.discarded_open * passed],
        0.0,
    )
    seen = (binding != 0) & (of.incarnations != 0)
    overhead = np.where(seen, binding / of.incarnations, FIRST_OVERHEAD_S)
    return Sums(effective, discarded, waiting, binding, effective + discarded + waiting + binding, overhead)


def _metric(of: PodLine[Numbers], sums: Sums) -> Numbers:
    effective, total, h = sums.effective, sums.total, sums.overhead
    lasts, qos = effective / of.slo, np.where(total != 0, effective / total, 0.0)
    short = lasts - total - h
    alone = lasts - (effective + sums.waiting + sums.binding) - h
    at_once = np.where((total != 0) & (qos < of.slo), short, (lasts - total) / np.maximum(of.slots, 1.0))
    several, residual = of.running + of.pending, of.running - of.in_phase
    safe = np.where(several != 0, residual / several >= of.slo, residual == 0)
    slack = (effective - of.slo * total) / (several * of.slo - residual) - h
    together = np.where(qos == of.slo, 0.0, np.where(qos < of.slo, short, np.where(safe, np.inf, slack)))
    chosen: Numbers = np.select([of.approach == INDEPENDENT, of.approach == CONCURRENT], [alone, at_once], together)
    return chosen
