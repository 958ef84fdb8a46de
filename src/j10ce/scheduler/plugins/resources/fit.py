"""NodeResourcesFit: a node must have room for every resource that a pod asks for, and for one pod more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from j10ce.scheduler.book.book import Book, Vector
from j10ce.scheduler.book.columns import PODS
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Mask, Rows, Scores
from j10ce.scheduler.cycle.framework import Filter, Groups, Reach, Score, Turned
from j10ce.scheduler.plugins.resources.strategies import Allocated, Strategy

NO_IGNORED: Final[frozenset[str]] = frozenset()


class NodeResourcesFit:
    """`ignored`: extended resources that are looked at by others."""

    name = "NodeResourcesFit"
    reach = Reach.SUMS

    def __init__(self, strategy: Strategy | None = None, ignored: frozenset[str] = NO_IGNORED) -> None:
        self._strategy = strategy if strategy is not None else Allocated()
        self._ignored = ignored

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        fits = book.used[:, PODS].take(rows) < book.allocatable[:, PODS].take(rows)
        for column, amount in self._asked(pod, book):
            fits &= book.allocatable[:, column].take(rows) - book.used[:, column].take(rows) >= amount
        return fits

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        return next(iter(self.whys(pod, book, np.array([row]))))[0]

    def whys(self, pod: PodFacts, book: Book, rows: Rows, /) -> Iterable[tuple[Turned, Rows]]:
        """Evictions do not help where the empty node would be too small."""
        lacks, hopeless, reasons = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_), list[str]()
        for column, amount in ((PODS, 1), *self._asked(pod, book)):
            whole = book.allocatable[:, column].take(rows)
            lacking = whole - book.used[:, column].take(rows) < amount
            lacks |= lacking.astype(np.int64) << len(reasons)
            hopeless |= lacking & (whole < amount)
            reasons.append(f"Insufficient {book.columns.names[column]}" if column != PODS else "Too many pods")
        codes = lacks * 2 + hopeless
        for code in np.unique(codes).tolist():
            said = tuple(reason for n, reason in enumerate(reasons) if code >> n + 1 & 1)
            yield Turned(said, resolvable=not code & 1), rows[codes == code]

    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores:
        return self._strategy.score(pod, book, rows)

    def _asked(self, pod: PodFacts, book: Book) -> Vector:
        vector = book.vector(pod.shape.requests)
        if self._ignored:
            return tuple((column, n) for column, n in vector if book.columns.names[column] not in self._ignored)
        return vector


_f: Filter = NodeResourcesFit()
_s: Score = NodeResourcesFit()
_g: Groups = NodeResourcesFit()
