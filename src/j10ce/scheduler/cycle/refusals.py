"""Why no node will do, counted as Kubernetes counts: a node stands for the first filter that refuses it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Rows
from j10ce.scheduler.cycle.framework import Filter, Groups, Turned

AWAITED: Final = "NominatedPods"
FOR_OTHERS: Final = Turned(("node(s) had no room beside the pods that are awaited there",))
NO_ROWS: Final[Rows] = np.zeros(0, np.int64)


class NoFit(NamedTuple):
    nodes: int
    reasons: tuple[tuple[str, int], ...]  # and how many nodes
    helpful: Rows  # where evictions may help
    plugins: frozenset[str]  # that refused a node, or the pod as a whole

    def __str__(self) -> str:
        if not self.nodes:
            return "no nodes available to schedule pods"
        counted = ", ".join(sorted(f"{count} {reason}" for reason, count in self.reasons))
        return f"0/{self.nodes} nodes are available: {counted}."


def refused_whole(pod: PodFacts, book: Book, plugin: str, reason: str, resolvable: bool) -> NoFit:
    rows = np.flatnonzero(book.alive[: len(book)])
    return NoFit(len(rows), ((reason, len(rows)),), rows if resolvable else NO_ROWS, frozenset((plugin,)))


class Refusals:
    """Rows are turned down filter by filter."""

    def __init__(self, rows: Rows) -> None:
        self.left = rows
        self._nodes = len(rows)
        self._counts: Counter[str] = Counter()
        self._helpful: list[Rows] = []
        self._plugins: set[str] = set()

    def copied(self) -> Refusals:
        other = Refusals(self.left)
        other._nodes, other._counts = self._nodes, self._counts.copy()
        other._helpful, other._plugins = list(self._helpful), set(self._plugins)
        return other

    def ask(self, filters: Sequence[Filter], pod: PodFacts, book: Book) -> Refusals:
        for f in filters:
            if not len(self.left):
                break
            mask = f.filter(pod, book, self.left)
            if not mask.all():
                for turned, rows in _whys(f, pod, book, self.left[~mask]):
                    self.count(f.name, turned, rows)
                self.left = self.left[mask]
        return self

    def count(self, plugin: str, turned: Turned, rows: Rows) -> None:
        self._plugins.add(plugin)
        for reason in turned.reasons:
            self._counts[reason] += len(rows)
        if turned.resolvable:
            self._helpful.append(rows)

    def result(self) -> NoFit:
        """Whatever is left was held for others."""
        if len(self.left):
            self.count(AWAITED, FOR_OTHERS, self.left)
        helpful = np.sort(np.concatenate(self._helpful)) if self._helpful else NO_ROWS
        return NoFit(self._nodes, tuple(self._counts.items()), helpful, frozenset(self._plugins))


def _whys(f: Filter, pod: PodFacts, book: Book, rows: Rows) -> Iterable[tuple[Turned, Rows]]:
    if isinstance(f, Groups):
        return f.whys(pod, book, rows)
    groups: dict[Turned, list[int]] = {}
    for row in rows.tolist():
        groups.setdefault(f.why(pod, book, row), []).append(row)
    return [(turned, np.array(those)) for turned, those in groups.items()]
