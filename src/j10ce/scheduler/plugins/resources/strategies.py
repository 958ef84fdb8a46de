"""How much of a node would be asked for with one pod more, as a score of 0 to 100 in whole numbers.

Of cpu and memory counts what pods are taken to need (`Shape.weighed`), of other resources what they ask for. A resource
that a node does not have, or an extended one that the pod does not ask for, has no say.

    LeastAllocated            Σ weight · ⌊100 · (allocatable − asked) / allocatable⌋ / Σ weight
    MostAllocated             Σ weight · ⌊100 · asked / allocatable⌋ / Σ weight
    RequestedToCapacityRatio  Σ weight · shape(⌊100 · asked / allocatable⌋) / Σ weight
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.columns import CPU, FIRST, MEMORY
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Rows, Scores

Asked: TypeAlias = tuple[Rows, Rows]  # by node: with one pod more, of how much
Towards: TypeAlias = Literal["least", "most"]

MOST: Final = 100
WEIGHED: Final = (CPU, MEMORY)  # the first two


class ResourceWeight(NamedTuple):
    resource: str
    weight: int = 1


CPU_AND_MEMORY: Final = (ResourceWeight("cpu"), ResourceWeight("memory"))


class Strategy(Protocol):
    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores: ...


class Allocated:
    """LeastAllocated and MostAllocated."""

    def __init__(self, towards: Towards = "least", resources: Sequence[ResourceWeight] = CPU_AND_MEMORY) -> None:
        self._towards, self._resources = towards, tuple(resources)
        self._usual = self._resources == CPU_AND_MEMORY

    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores:
        if self._usual and not book.lacking:
            points = self._points(*cpu_and_memory(pod, book, rows))
            mean: Rows = points[0] + points[1] >> 1
            return mean.astype(np.float64)
        return _mean(self._resources, pod, book, rows, self._points)

    def _points(self, asked: Rows, whole: Rows) -> Rows:
        if self._towards == "least":
            points: Rows = (whole - asked) * MOST // np.maximum(whole, 1)
            return np.maximum(points, 0)
        return np.minimum(asked, whole) * MOST // np.maximum(whole, 1)


def cpu_and_memory(pod: PodFacts, book: Book, rows: Rows) -> Asked:
    """Of both at once, which is what nearly everybody asks for: [resource, node]."""
    whole = book.allocatable.T[: len(WEIGHED)].take(rows, axis=1)
    asked = book.weighed.T.take(rows, axis=1)
    asked += np.array(pod.shape.weighed, np.int64)[:, None]
    return asked, whole


class ShapePoint(NamedTuple):
    utilisation: int  # per cent
    score: int  # 0 to 100


class ToCapacityRatio:
    def __init__(self, points: Sequence[ShapePoint], resources: Sequence[ResourceWeight] = CPU_AND_MEMORY) -> None:
        self._at, self._score = [p.utilisation for p in points], [p.score for p in points]
        self._resources = tuple(resources)

    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores:
        return _mean(self._resources, pod, book, rows, self._points)

    def _points(self, asked: Rows, whole: Rows) -> Rows:
        used = np.where(asked > whole, MOST, asked * MOST // np.maximum(whole, 1))
        return np.interp(used, self._at, self._score).astype(np.int64)


class Points(Protocol):
    def __call__(self, asked: Rows, whole: Rows, /) -> Rows: ...


def with_one_more(column: int, pod: PodFacts, book: Book, rows: Rows) -> Asked:
    """What would be asked for, of how much, as scores count it."""
    whole = book.allocatable[:, column].take(rows)
    if column in WEIGHED:
        return book.weighed[:, column].take(rows) + pod.shape.weighed[column], whole
    own = dict(book.vector(pod.shape.requests)).get(column, 0)
    if not own and column >= len(FIRST):
        return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    return book.used[:, column].take(rows) + own, whole


def _mean(weights: Sequence[ResourceWeight], pod: PodFacts, book: Book, rows: Rows, points: Points) -> Scores:
    total, weighing = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for resource, weight in weights:
        asked, whole = with_one_more(book.column(resource), pod, book, rows)
        has = (whole > 0) * weight
        total += points(asked, whole) * has
        weighing += has
    return (total // np.maximum(weighing, 1)).astype(np.float64)
