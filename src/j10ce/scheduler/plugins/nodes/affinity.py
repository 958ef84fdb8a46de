"""NodeAffinity: a pod runs on nodes with the labels that it asks for, and rather on those that it prefers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.shape import NodeTerm, PreferredNodeTerm
from j10ce.scheduler.book.suiting import among, matches, wanted
from j10ce.scheduler.cluster import Mask, Rows, Scores
from j10ce.scheduler.cycle.framework import (
    Filter,
    Groups,
    Normalised,
    PreFilter,
    PreScore,
    Reach,
    Score,
    Skip,
    Turned,
)
from j10ce.scheduler.plugins.nodes.scale import scaled

UNWANTED: Final = Turned(("node(s) didn't match Pod's node affinity/selector",), resolvable=False)
NOT_ADDED: Final = Turned(("node(s) didn't match scheduler-enforced node affinity",), resolvable=False)


class NodeAffinity:
    """`required` and `preferred` are added to every pod's own, by the profile."""

    name = "NodeAffinity"
    reach = Reach.NODE

    def __init__(
        self, required: tuple[NodeTerm, ...] | None = None, preferred: tuple[PreferredNodeTerm, ...] = ()
    ) -> None:
        self._required, self._preferred = required, preferred

    def pre_filter(self, pod: PodFacts, book: Book, /) -> Skip | None:
        asks = pod.shape.node_selector or pod.shape.affinity.nodes is not None or self._required is not None
        return None if asks else Skip()

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        return among(self._required, book, rows) & wanted(pod.shape, book, rows)

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        return next(iter(self.whys(pod, book, np.array([row]))))[0]

    def whys(self, pod: PodFacts, book: Book, rows: Rows, /) -> Iterable[tuple[Turned, Rows]]:
        added = among(self._required, book, rows)
        if not added.all():
            yield NOT_ADDED, rows[~added]
        if added.any():
            yield UNWANTED, rows[added]

    def pre_score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Skip | None:
        return None if pod.shape.affinity.preferred_nodes or self._preferred else Skip()

    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores:
        raw = np.zeros(len(rows))
        for weight, term in (*self._preferred, *pod.shape.affinity.preferred_nodes):
            raw += weight * matches(term, book, rows)
        return raw

    def normalise(self, raw: Scores, /) -> Scores:
        return scaled(raw)


_f: tuple[type[Filter], type[PreFilter], type[Groups]] = (NodeAffinity, NodeAffinity, NodeAffinity)
_s: tuple[type[PreScore], type[Score], type[Normalised]] = (NodeAffinity, NodeAffinity, NodeAffinity)
