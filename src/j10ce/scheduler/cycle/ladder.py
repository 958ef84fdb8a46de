"""Equal pods, one after another, without a look at all nodes for each.

A pod more changes the points of one node alone. So of k equal pods none goes to a node that is not among the best k,
and a heap of those tells where each goes. What a node is worth with j pods more is imagined for many at a time: for
many nodes where pods spread, for many pods where they pile up.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from typing import Final

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cycle.outlook import NAMES, Outlook

AT_A_TIME: Final = 512  # rungs


class Ladder:
    def __init__(self, outlook: Outlook, pod: PodFacts, book: Book, most: int) -> None:
        self._outlook, self._pod, self._book = outlook, pod, book
        points = outlook.points
        count = min(most, len(points))
        best = np.argpartition(points, len(points) - count)[len(points) - count :] if count else np.zeros(0, np.int64)
        values = points[best].tolist()
        self._row = {point % NAMES: row for point, row in zip(values, best.tolist(), strict=True) if point >= 0}
        self._heap = [-point for point in values if point >= 0]  # the best first
        heapify(self._heap)
        self._placed: dict[int, int] = {}
        self._rungs: dict[int, list[int]] = {}  # by row: its next points, the last first
        self._lately: set[int] = set()

    def take(self) -> tuple[int, int] | None:
        """The next pod's row, and its points there. None: no other pod of the kind fits, or nobody knows where."""
        if not self._heap:
            return None
        point = -self._heap[0]
        row = self._row[point % NAMES]
        self._placed[row] = self._placed.get(row, 0) + 1
        self._lately.add(row)
        rungs = self._rungs.get(row)
        if not rungs:
            self._imagine(row)
            rungs = self._rungs[row]
        following = rungs.pop()
        if following >= 0:
            heapreplace(self._heap, -following)
        else:
            heappop(self._heap)
            if not self._outlook.steady_bands:
                self._heap.clear()
        return row, point

    def _imagine(self, row: int) -> None:
        width = min(AT_A_TIME, 2 * len(self._lately))
        depth = AT_A_TIME // width
        self._lately.clear()
        likely = (self._row[-point % NAMES] for point in self._heap[: 2 * width])
        rows = [row, *[r for r in likely if r != row and not self._rungs.get(r)][: width - 1]]
        first = [max(self._placed.get(r, 0), 1) if r == row else self._placed.get(r, 0) + 1 for r in rows]
        times = np.array(first)[:, None] + np.arange(depth)
        points = self._outlook.imagine(self._pod, self._book, np.repeat(rows, depth), times.ravel())
        for r, rungs in zip(rows, points.reshape(len(rows), depth)[:, ::-1].tolist(), strict=True):
            self._rungs[r] = rungs
