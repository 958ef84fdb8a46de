"""Equal pods, one after another, without a look at all nodes for each.

A pod more changes the points of one node alone. So of k equal pods none goes to a node that is not among the best k,
and a heap of those tells where each goes. What a node is worth with j pods more is imagined for many at a time: for
many nodes where pods spread, for many pods where they pile up.
"""

from __future__ import annotations

from heapq import heappop, heapreplace
from typing import Final

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cycle.outlook import NAMES, Outlook

AT_A_TIME: Final = 512  # rungs
FIRST_WIDTH: Final = 256  # nodes


class Ladder:
    def __init__(self, outlook: Outlook, pod: PodFacts, book: Book, most: int) -> None:
        self._outlook, self._pod, self._book = outlook, pod, book
        points = outlook.points
        count = min(most, len(points))
        best = np.argpartition(points, len(points) - count)[len(points) - count :] if count else np.zeros(0, np.int64)
        values = points[best].tolist()
        self._row = {point % NAMES: row for point, row in zip(values, best.tolist(), strict=True) if point >= 0}
        self._heap = sorted(-point for point in values if point >= 0)  # the best first
        self._placed: dict[int, int] = {}  # by row
        self._rungs: dict[int, list[int]] = {}  # by row: its next points, the last first

    def climb(self, most: int) -> list[tuple[int, int]]:
        """(row, points) of one pod after the other; fewer than `most` where no other fits, or nobody knows where."""
        heap, row_of, placed, rungs = self._heap, self._row, self._placed, self._rungs
        taken: list[tuple[int, int]] = []
        since = 0
        while heap and len(taken) < most:
            point = -heap[0]
            row = row_of[point % NAMES]
            taken.append((row, point))
            placed[row] = placed.get(row, 0) + 1
            if not rungs.get(row):
                lately = len({r for r, _ in taken[since:]}) if since else FIRST_WIDTH // 2  # as if pods spread
                self._imagine(row, 2 * lately)
                since = len(taken)
            following = rungs[row].pop()
            if following >= 0:
                heapreplace(heap, -following)
                continue
            heappop(heap)
            if not self._outlook.steady_bands:
                break
        return taken

    def _imagine(self, row: int, width: int) -> None:
        """This row's next rungs, and those of the rows that are likely to be next."""
        width = min(AT_A_TIME, width)
        depth = AT_A_TIME // width
        likely = (self._row[-point % NAMES] for point in self._heap[: 2 * width])
        rows = [row, *[r for r in likely if r != row and not self._rungs.get(r)][: width - 1]]
        first = np.array([self._placed.get(r, 0) + 1 for r in rows])
        first[0] -= 1  # it has been counted for the pod that goes there next
        points = self._outlook.imagine(
            self._pod, self._book, np.repeat(rows, depth), (first[:, None] + np.arange(depth)).ravel()
        )
        for r, rungs in zip(rows, points.reshape(len(rows), depth)[:, ::-1].tolist(), strict=True):
            self._rungs[r] = rungs
