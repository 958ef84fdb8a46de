"""What the pods that are there wish for themselves: whom beside them, whom far away. Counted by row."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from j10ce.scheduler.book.book import Book, PodListener
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.shape import NO_AFFINITY, Affinity
from j10ce.scheduler.plugins.neighbours.counts import MOST_LOOKS, PerRow, WhichPods, grown, look, which_pods

MOST_IDLE: Final = 1024  # wishes that nobody has any more, kept because somebody will have them again
Force: TypeAlias = Literal["never", "always", "rather"]


class PodWish(NamedTuple):
    """About pods in the same domain of `topology_key`. `weight` of those that are no more than preferences; below zero:
    rather not."""

    force: Force
    topology_key: str
    which: WhichPods
    weight: int = 0


class WishCounts:
    def __init__(self, book: Book) -> None:
        self._book = book
        self._rows: dict[PodWish, PerRow] = {}
        self._total: dict[PodWish, int] = {}
        self._read: dict[tuple[int, str], tuple[Affinity, tuple[PodWish, ...]]] = {}  # by identity of the affinity
        self._about: dict[Hashable, tuple[PodWish, ...]] = {}
        self._around = book.around.version
        book.listen(self)

    def about(self, pod: PodFacts) -> tuple[PodWish, ...]:
        """Those that others have about a newcomer like this."""
        if not self._rows:
            return ()
        if self._around != self._book.around.version:
            self._around = self._book.around.version
            self._about.clear()
        key = look(pod)
        wishes = self._about.get(key)
        if wishes is None:
            if len(self._about) >= MOST_LOOKS:
                self._about.clear()
            wishes = self._about[key] = tuple(w for w in self._rows if w.which.chooses(pod, self._book.around))
        return wishes

    def of(self, wish: PodWish) -> PerRow:
        """How many pods of each row have it."""
        rows = self._rows[wish]
        if len(rows) < len(self._book):
            rows = self._rows[wish] = grown(rows, len(self._book))
        return rows[: len(self._book)]

    def had(self, wish: PodWish) -> bool:
        return self._total.get(wish, 0) > 0

    def added(self, pod: PodFacts, row: int, /) -> None:
        for wish in self._wishes_of(pod):
            if wish not in self._rows:
                self._begin(wish)
            rows = self._rows[wish]
            if row >= len(rows):
                rows = self._rows[wish] = grown(rows, row + 1)
            rows[row] += 1
            self._total[wish] += 1

    def removed(self, pod: PodFacts, row: int, /) -> None:
        for wish in self._wishes_of(pod):
            self._rows[wish][row] -= 1
            self._total[wish] -= 1

    def _begin(self, wish: PodWish) -> None:
        idle = [w for w, total in self._total.items() if not total] if len(self._rows) >= MOST_IDLE else []
        for gone in idle:
            del self._rows[gone], self._total[gone]
        self._rows[wish], self._total[wish] = np.zeros(len(self._book), np.int64), 0
        self._about.clear()

    def _wishes_of(self, pod: PodFacts) -> tuple[PodWish, ...]:
        affinity = pod.shape.affinity
        if affinity is NO_AFFINITY:
            return ()
        key = (id(affinity), pod.namespace)
        known = self._read.get(key)
        if known is None:
            if len(self._read) >= MOST_LOOKS:
                self._read.clear()
            known = self._read[key] = affinity, wishes(affinity, pod.namespace)
        return known[1]


def wishes(affinity: Affinity, namespace: str) -> tuple[PodWish, ...]:
    """Of a pod of that namespace. One that is written twice counts twice."""
    return (
        *(PodWish("never", t.topology_key, which_pods(t, namespace)) for t in affinity.anti_pods),
        *(PodWish("always", t.topology_key, which_pods(t, namespace)) for t in affinity.pods),
        *rather(affinity, namespace),
    )


def rather(affinity: Affinity, namespace: str) -> tuple[PodWish, ...]:
    return (
        *(PodWish("rather", t.topology_key, which_pods(t, namespace), w) for w, t in affinity.preferred_pods),
        *(PodWish("rather", t.topology_key, which_pods(t, namespace), -w) for w, t in affinity.preferred_anti_pods),
    )


_: type[PodListener] = WishCounts
