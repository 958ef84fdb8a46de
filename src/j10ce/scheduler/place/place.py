"""Where a workload should run, and why: filter, score, rank. Nothing is changed: every decision is also a what-if."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from j10ce.model.placement import NodeVerdict, Score
from j10ce.scheduler.cluster import Cluster, Mask, Scores
from j10ce.scheduler.place.demand import Demand, Request, demand
from j10ce.scheduler.place.fit import FILTERS, Filter
from j10ce.scheduler.place.score import SCORERS, Weighed


class PlaceDecision(NamedTuple):
    """How every node did. `ranking` holds the rows of those that can hold the workload, the best first."""

    demand: Demand
    cluster: Cluster
    ranking: tuple[int, ...]
    passes: tuple[tuple[Filter, Mask], ...]
    points: tuple[tuple[Weighed, Scores], ...]  # of 100 in all
    totals: Scores

    @property
    def chosen(self) -> str:
        return self.cluster.names[self.ranking[0]] if self.ranking else ""

    @property
    def refused(self) -> Counter[str]:
        """How many nodes each filter turned down."""
        return Counter({f.name: int((~mask).sum()) for f, mask in self.passes if not mask.all()})

    def verdicts(self, most: int) -> tuple[NodeVerdict, ...]:
        """The best first, then those that cannot hold it, by name."""
        fit = set(self.ranking)
        others = (n for n in range(len(self.cluster.names)) if n not in fit)
        return tuple(self.verdict(n) for n in [*self.ranking, *others][:most])

    def verdict(self, node: int) -> NodeVerdict:
        name = self.cluster.names[node]
        failing = [f for f, mask in self.passes if not mask[node]]
        if failing:
            reasons = "; ".join(f.why(self.demand, self.cluster, node) for f in failing)
            return NodeVerdict(node=name, fits=False, refused_by=tuple(f.name for f in failing), reason=reasons)
        scores = tuple(
            Score(name=w.scorer.name, points=_round(points[node]), of=_round(_most(w, self.points)), why=why)
            for w, points in self.points
            for why in (w.scorer.why(self.demand, self.cluster, node),)
        )
        return NodeVerdict(node=name, fits=True, score=_round(self.totals[node]), scores=scores)

    def __str__(self) -> str:
        """One sentence with numbers."""
        total, fitting = len(self.cluster.names), len(self.ranking)
        if self.ranking:
            return f"{self.chosen} is the best of {fitting} that fit among {total} nodes"
        if not total:
            return "no node has ever reported"
        closest = self.verdict(self._closest())
        counts = ", ".join(f"{name} {count}" for name, count in self.refused.items())
        return f"none of {total} nodes fits (turned down by {counts}); {closest.node}: {closest.reason}"

    def _closest(self) -> int:
        """The node with the fewest objections; the first by name of equals."""
        objections = sum((~mask).astype(np.int64) for _, mask in self.passes)
        return int(np.argmin(objections))


def place(
    wanted: Request, cluster: Cluster, filters: Sequence[Filter] = FILTERS, scorers: Iterable[Weighed] = SCORERS
) -> PlaceDecision:
    return decide(demand(wanted, cluster), cluster, filters, scorers)


def decide(
    asked: Demand, cluster: Cluster, filters: Sequence[Filter] = FILTERS, scorers: Iterable[Weighed] = SCORERS
) -> PlaceDecision:
    """Deterministic: ties go to the first name."""
    passes = tuple((f, f.filter(asked, cluster)) for f in filters)
    fits = np.ones(len(cluster.names), np.bool_)
    for _, mask in passes:
        fits &= mask
    points = weigh(asked, cluster, scorers)
    totals = total(points, len(cluster.names))
    return PlaceDecision(asked, cluster, _ranked(fits, totals), passes, points, totals)


def weigh(asked: Demand, cluster: Cluster, scorers: Iterable[Weighed] = SCORERS) -> tuple[tuple[Weighed, Scores], ...]:
    """What each scorer that has something to say gives each node; together at most 100."""
    weighed = [(w, scores) for w in scorers if (scores := w.scorer.score(asked, cluster)) is not None]
    whole = sum(w.weight for w, _ in weighed) or 1.0
    return tuple((w, scores * (100.0 * w.weight / whole)) for w, scores in weighed)


def total(points: Iterable[tuple[Weighed, Scores]], rows: int) -> Scores:
    totals = np.zeros(rows)
    for _, some in points:
        totals = totals + some
    return totals


def _ranked(fits: Mask, totals: Scores) -> tuple[int, ...]:
    """Rows stand in the order of names, and the sort is stable."""
    rows: npt.NDArray[np.int64] = np.flatnonzero(fits)
    order = np.argsort(-np.round(totals[rows], 9), kind="stable")
    return tuple(rows[order].tolist())


def _most(weighed: Weighed, points: Sequence[tuple[Weighed, Scores]]) -> float:
    return 100.0 * weighed.weight / (sum(w.weight for w, _ in points) or 1.0)


def _round(number: float) -> float:
    return round(float(number), 3)
