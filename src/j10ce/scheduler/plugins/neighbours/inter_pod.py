"""InterPodAffinity: beside these pods, far from those; and what the pods that are there wish of newcomers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.shape import Affinity, PodTerm
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
from j10ce.scheduler.plugins.neighbours.counts import KindCounts, PerRow, PodKind, by_domain, which_pods
from j10ce.scheduler.plugins.neighbours.wishes import PodWish, WishCounts, rather

NOT_NEAR: Final = Turned(("node(s) didn't match pod affinity rules",), resolvable=False)
TOO_NEAR: Final = Turned(("node(s) didn't match pod anti-affinity rules",))
UNWELCOME: Final = Turned(("node(s) didn't satisfy existing pods anti-affinity rules",))


class Tallies(NamedTuple):
    pods: KindCounts
    wishes: WishCounts


class InterPodAffinity:
    """`hard_weight`: what a required affinity of a pod that is there is worth as a wish. `own_wishes_alone`: wishes of
    pods that are there do not count where the newcomer has none."""

    name = "InterPodAffinity"
    reach = Reach.CLUSTER

    def __init__(self, hard_weight: int = 1, own_wishes_alone: bool = False) -> None:
        self._hard_weight, self._own_wishes_alone = hard_weight, own_wishes_alone
        self._book: Book | None = None
        self._kept: Tallies | None = None

    # -- filter

    def pre_filter(self, pod: PodFacts, book: Book, /) -> Skip | None:
        affinity = pod.shape.affinity
        if affinity.pods or affinity.anti_pods or self._forbidding(pod, self._tallies(book)):
            return None
        return Skip()

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        mask = np.ones(len(rows), np.bool_)
        for _, refused in self._refusals(pod, book, rows):
            mask &= ~refused
        return mask

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        return next(iter(self.whys(pod, book, np.array([row]))))[0]

    def whys(self, pod: PodFacts, book: Book, rows: Rows, /) -> Iterable[tuple[Turned, Rows]]:
        left = np.ones(len(rows), np.bool_)
        for turned, refused in self._refusals(pod, book, rows):
            if (left & refused).any():
                yield turned, rows[left & refused]
            left &= ~refused

    def _refusals(self, pod: PodFacts, book: Book, rows: Rows) -> Iterable[tuple[Turned, Mask]]:
        """In the order in which they are reasons."""
        tallies, affinity = self._tallies(book), pod.shape.affinity
        if affinity.pods:
            yield NOT_NEAR, ~_near(pod, book, affinity.pods, tallies.pods, rows)
        for term in affinity.anti_pods:
            counts = tallies.pods.of(PodKind((which_pods(term, pod.namespace),)))
            yield TOO_NEAR, _around(book, term.topology_key, counts, rows) > 0
        for wish in self._forbidding(pod, tallies):
            yield UNWELCOME, _around(book, wish.topology_key, tallies.wishes.of(wish), rows) > 0

    def _forbidding(self, pod: PodFacts, tallies: Tallies) -> list[PodWish]:
        return [w for w in tallies.wishes.about(pod) if w.force == "never" and tallies.wishes.had(w)]

    # -- score

    def pre_score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Skip | None:
        own = _prefers(pod.shape.affinity)
        return None if own or self._wished(pod, self._tallies(book)) else Skip()

    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores:
        tallies, raw = self._tallies(book), np.zeros(len(rows))
        for wish in rather(pod.shape.affinity, pod.namespace):
            counts = tallies.pods.of(PodKind((wish.which,)))
            raw += wish.weight * _around(book, wish.topology_key, counts, rows)
        for wish, weight in self._wished(pod, tallies):
            raw += weight * _around(book, wish.topology_key, tallies.wishes.of(wish), rows)
        if not len(rows) or (low := raw.min()) == (high := raw.max()):
            return np.zeros(len(rows))
        scores: Scores = np.trunc(MOST_SCORE * ((raw - low) / (high - low)))
        return scores

    def _wished(self, pod: PodFacts, tallies: Tallies) -> list[tuple[PodWish, int]]:
        """What those who are there wish, and how much."""
        if self._own_wishes_alone and not _prefers(pod.shape.affinity):
            return []
        weighed = ((w, self._hard_weight if w.force == "always" else w.weight) for w in tallies.wishes.about(pod))
        return [(w, weight) for w, weight in weighed if weight and tallies.wishes.had(w)]

    def _tallies(self, book: Book) -> Tallies:
        if self._kept is None or self._book is not book:
            self._book, self._kept = book, Tallies(KindCounts(book), WishCounts(book))
        return self._kept


def _prefers(affinity: Affinity) -> bool:
    return bool(affinity.preferred_pods or affinity.preferred_anti_pods)


def _around(book: Book, topology_key: str, counts: PerRow, rows: Rows) -> PerRow:
    """How many are in the domain of each row: none, where it is in no domain."""
    column = book.index.label(topology_key)
    around: PerRow = by_domain(counts, column.codes, len(column.values))[column.codes[rows]]
    return around


def _near(pod: PodFacts, book: Book, terms: tuple[PodTerm, ...], counts: KindCounts, rows: Rows) -> Mask:
    """Somebody who is all that the terms ask for is in the domain of each. The first of a series that wants to be
    beside its own kind may be alone."""
    kind = PodKind(tuple(which_pods(term, pod.namespace) for term in terms))
    there, inside, met, anybody = counts.of(kind), np.ones(len(rows), np.bool_), np.ones(len(rows), np.bool_), False
    for term in terms:
        column = book.index.label(term.topology_key)
        sums = by_domain(there, column.codes, len(column.values))
        codes = column.codes[rows]
        anybody = anybody or bool(sums.any())
        inside &= codes > 0
        met &= sums[codes] > 0
    return inside if not anybody and kind.counts(pod, book.around) else inside & met


_f: tuple[type[Filter], type[PreFilter], type[Groups]] = (InterPodAffinity, InterPodAffinity, InterPodAffinity)
_s: tuple[type[PreScore], type[Score]] = (InterPodAffinity, InterPodAffinity)
