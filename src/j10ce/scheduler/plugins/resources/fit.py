"""NodeResourcesFit: a node must have room for every resource that a pod asks for, and for one pod more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from j10ce.scheduler.book.book import MOST_VECTORS, Book, Requests, Vector
from j10ce.scheduler.book.columns import PODS
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Amounts, Mask, Rows, Scores
from j10ce.scheduler.cycle.framework import Filter, Groups, Reach, Score, Turned
from j10ce.scheduler.plugins.resources.strategies import Allocated, Strategy

LACKS: Final = -(1 << 62)
NO_IGNORED: Final[frozenset[str]] = frozenset()


class NodeResourcesFit:
    """`ignored`: extended resources that are looked at by others, by name or by the group before their slash."""

    name = "NodeResourcesFit"
    reach = Reach.SUMS

    def __init__(
        self,
        strategy: Strategy | None = None,
        ignored: frozenset[str] = NO_IGNORED,
        ignored_groups: frozenset[str] = NO_IGNORED,
    ) -> None:
        self._strategy = strategy if strategy is not None else Allocated()
        self._ignored, self._ignored_groups = ignored, ignored_groups
        self._remembered: dict[Requests, Amounts] = {}
        self._parted = 0  # as the numbers of columns were

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        needs = self._needs(pod, book)
        last = len(needs)
        free = book.allocatable.T[:last].take(rows, axis=1) - book.used.T[:last].take(rows, axis=1)
        return np.asarray((free >= needs).all(axis=0), np.bool_)

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
        if not self._ignored and not self._ignored_groups:
            return vector
        names = book.columns.names
        return tuple((column, n) for column, n in vector if not self._is_ignored(names[column]))

    def _is_ignored(self, resource: str) -> bool:
        group, slash, _ = resource.partition("/")
        return bool(slash) and (resource in self._ignored or group in self._ignored_groups)

    def _needs(self, pod: PodFacts, book: Book) -> Amounts:
        """By column, as far as any is asked for; of those that are not, no lack is too great."""
        if self._parted != book.columns.parted:
            self._parted = book.columns.parted
            self._remembered.clear()
        needs = self._remembered.get(pod.shape.requests)
        if needs is None:
            asked = dict(self._asked(pod, book)) | {PODS: 1}
            needs = np.array([[asked.get(column, LACKS)] for column in range(max(asked) + 1)], np.int64)
            if len(self._remembered) >= MOST_VECTORS:
                self._remembered.clear()
            self._remembered[pod.shape.requests] = needs
        return needs


_f: Filter = NodeResourcesFit()
_s: Score = NodeResourcesFit()
_g: Groups = NodeResourcesFit()
