"""PodTopologySpread: pods that a selector chooses are spread evenly over the domains of a label of nodes.

a node is allowed while  pods in its domain + 1, if the pod is one of them − the fewest of all domains ≤ maxSkew
cost of a node = Σ pods in its domain · ln(domains + 2) + maxSkew − 1;  the cheapest gets 100
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from j10ce.scheduler.book.around import Around
from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.selecting import chosen
from j10ce.scheduler.book.shape import LabelTest, Shape, SpreadConstraint
from j10ce.scheduler.book.suiting import tolerated, wanted
from j10ce.scheduler.cluster import Mask, Rows, Scores
from j10ce.scheduler.cycle.framework import (
    MOST_SCORE,
    Filter,
    Groups,
    PreFilter,
    PreScore,
    Reach,
    Score,
    Skip,
    Turned,
)
from j10ce.scheduler.plugins.neighbours.counts import KindCounts, PerRow, PodKind, WhichPods, by_domain
from j10ce.scheduler.plugins.neighbours.defaults import HOSTNAME, NOBODY, OF_THE_SYSTEM, alike

LOPSIDED: Final = Turned(("node(s) didn't match pod topology spread constraints",))
NO_DOMAIN: Final = Turned(
    ("node(s) didn't match pod topology spread constraints (missing required label)",), resolvable=False
)
MOST_SHAPES: Final = 512
MOST_PODS: Final = (1 << 31) - 1


class Domains(NamedTuple):
    """Of one constraint: the domain of each row, which rows count, and how many pods each domain has."""

    codes: Rows  # 0: no domain
    counted: Mask
    pods: PerRow  # by domain

    @property
    def fewest(self) -> int:
        return int(self.pods[self.there].min(initial=MOST_PODS))

    @property
    def there(self) -> Rows:
        """Those that have a row that counts."""
        rows = np.bincount(self.codes[self.counted], minlength=len(self.pods))
        rows[0] = 0
        return np.flatnonzero(rows)


class PodTopologySpread:
    """`defaults` are for pods that do not say how they are spread; their selectors are found by services and owner."""

    name = "PodTopologySpread"
    reach = Reach.CLUSTER

    def __init__(self, defaults: tuple[SpreadConstraint, ...] = OF_THE_SYSTEM) -> None:
        self._defaults, self._of_the_system = defaults, defaults == OF_THE_SYSTEM
        self._soft_defaults = any(c.when_unsatisfiable == "ScheduleAnyway" for c in defaults)
        self._hard_defaults = any(c.when_unsatisfiable == "DoNotSchedule" for c in defaults)
        self._book: Book | None = None
        self._counts: KindCounts | None = None
        self._suits: dict[tuple[int, str], tuple[Shape, int, Mask]] = {}

    # -- filter

    def pre_filter(self, pod: PodFacts, book: Book, /) -> Skip | None:
        return None if self._hard(pod, book.around) else Skip()

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        mask = np.ones(len(rows), np.bool_)
        hard = self._hard(pod, book.around)
        for constraint, domains in self._domains(pod, book, hard, whole=True):
            mask &= ~_lopsided(pod, constraint, domains, rows) & (domains.codes[rows] > 0)
        return mask

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        return next(iter(self.whys(pod, book, np.array([row]))))[0]

    def whys(self, pod: PodFacts, book: Book, rows: Rows, /) -> Iterable[tuple[Turned, Rows]]:
        """The first constraint that a node breaks is the reason."""
        hard = self._hard(pod, book.around)
        for constraint, domains in self._domains(pod, book, hard, whole=True):
            outside = domains.codes[rows] == 0
            lopsided = ~outside & _lopsided(pod, constraint, domains, rows)
            for turned, mask in ((NO_DOMAIN, outside), (LOPSIDED, lopsided)):
                if mask.any():
                    yield turned, rows[mask]
            rows = rows[~outside & ~lopsided]

    # -- score

    def pre_score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Skip | None:
        return None if self._soft(pod, book.around) else Skip()

    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores:
        soft = self._soft(pod, book.around)
        if not soft or not len(rows):
            return np.zeros(len(rows))
        whole = bool(pod.shape.spread) or not self._of_the_system
        kept, cost = np.ones(len(rows), np.bool_), np.zeros(len(rows))
        each = self._domains(pod, book, soft, whole=whole)
        if whole:
            for _, domains in each:
                kept &= domains.codes[rows] > 0
        for constraint, domains in each:
            cost += self._cost(pod, book, constraint, domains, rows, kept)
        return _cheapest_first(np.floor(cost + 0.5), kept)

    def _cost(
        self, pod: PodFacts, book: Book, constraint: SpreadConstraint, domains: Domains, rows: Rows, kept: Mask
    ) -> Scores:
        codes = domains.codes[rows]
        if constraint.topology_key == HOSTNAME:
            size, pods = int(kept.sum()), self._pods(pod, book, constraint)[rows]
        else:
            size, pods = len(np.unique(codes[kept])), domains.pods[codes]
        return np.where(codes > 0, pods * math.log(size + 2) + (constraint.max_skew - 1), 0.0)

    # -- inside

    def _hard(self, pod: PodFacts, around: Around) -> tuple[SpreadConstraint, ...]:
        if not pod.shape.spread and not self._hard_defaults:
            return ()
        return tuple(c for c in self._constraints(pod, around) if c.when_unsatisfiable == "DoNotSchedule")

    def _soft(self, pod: PodFacts, around: Around) -> tuple[SpreadConstraint, ...]:
        if not pod.shape.spread and not self._soft_defaults:
            return ()
        return tuple(c for c in self._constraints(pod, around) if c.when_unsatisfiable == "ScheduleAnyway")

    def _constraints(self, pod: PodFacts, around: Around) -> tuple[SpreadConstraint, ...]:
        if pod.shape.spread:
            return pod.shape.spread
        test = alike(pod, around)
        return () if test == NOBODY else tuple(c._replace(selector=test) for c in self._defaults)

    def _domains(
        self, pod: PodFacts, book: Book, constraints: Iterable[SpreadConstraint], *, whole: bool
    ) -> list[tuple[SpreadConstraint, Domains]]:
        """`whole`: only nodes that are in a domain of every constraint count."""
        columns = [(c, book.index.label(c.topology_key)) for c in constraints]
        inside = np.ones(len(book), np.bool_)
        for _, column in columns if whole else ():
            inside &= column.codes[: len(book)] > 0
        each = []
        for constraint, column in columns:
            codes = column.codes[: len(book)]
            counted = inside & self._counted(pod.shape, constraint, book)
            pods = np.where(counted, self._pods(pod, book, constraint), 0)
            each.append((constraint, Domains(codes, counted, by_domain(pods, codes, len(column.values)))))
        return each

    def _counted(self, shape: Shape, constraint: SpreadConstraint, book: Book) -> Mask:
        """Nodes that count for a constraint by its policies, as long as no node changes."""
        policies = constraint.node_affinity_policy + constraint.node_taints_policy
        known = self._suits.get((id(shape), policies))
        version = book.index.version
        if known is None or known[1] != version or len(known[2]) != len(book):
            rows = np.arange(len(book))
            mask = book.alive[: len(book)].copy()
            if constraint.node_affinity_policy == "Honor":
                mask &= wanted(shape, book, rows)
            if constraint.node_taints_policy == "Honor":
                mask &= tolerated(shape, book, rows)
            if len(self._suits) >= MOST_SHAPES:
                self._suits.clear()
            known = self._suits[id(shape), policies] = shape, version, mask
        return known[2]

    def _pods(self, pod: PodFacts, book: Book, constraint: SpreadConstraint) -> PerRow:
        """By row. A selector that chooses everything counts nobody, as in Kubernetes."""
        if constraint.selector is None or constraint.selector == LabelTest():
            return np.zeros(len(book), np.int64)
        if self._counts is None or self._book is not book:
            self._book, self._counts = book, KindCounts(book)
            self._suits.clear()
        kind = PodKind((WhichPods(constraint.selector, (pod.namespace,)),), living=True)
        return self._counts.of(kind)


def _lopsided(pod: PodFacts, constraint: SpreadConstraint, domains: Domains, rows: Rows) -> Mask:
    fewest = domains.fewest if len(domains.there) >= constraint.min_domains else 0
    own = int(chosen(constraint.selector, pod.labels))
    lopsided: Mask = domains.pods[domains.codes[rows]] + own - fewest > constraint.max_skew
    return lopsided


def _cheapest_first(cost: Scores, kept: Mask) -> Scores:
    """0 for nodes that are in no domain of some constraint."""
    low, high = cost[kept].min(initial=math.inf), cost[kept].max(initial=0.0)
    if high <= 0:
        return np.where(kept, MOST_SCORE, 0.0)
    return np.where(kept, np.floor(MOST_SCORE * (high + low - cost) / high), 0.0)


_f: tuple[type[Filter], type[PreFilter], type[Groups]] = (PodTopologySpread, PodTopologySpread, PodTopologySpread)
_s: tuple[type[PreScore], type[Score]] = (PodTopologySpread, PodTopologySpread)
