"""NodeResourcesBalancedAllocation: resources run out together, so that none is stranded.

score = ⌊100 · (1 − σ)⌋,  σ the standard deviation of the shares that would be asked for, each at most 1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from j10ce.scheduler.book.book import Book, Vector
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Rows, Scores
from j10ce.scheduler.cycle.framework import MOST_SCORE, PreScore, Reach, Score, Skip
from j10ce.scheduler.plugins.resources.strategies import CPU_AND_MEMORY, ResourceWeight

NOTHING: Final = 1e-9  # so that 100 · (1 − 0.3) is 70


class BalancedAllocation:
    name = "NodeResourcesBalancedAllocation"
    reach = Reach.SUMS

    def __init__(self, resources: Sequence[ResourceWeight] = CPU_AND_MEMORY) -> None:
        self._resources = tuple(r.resource for r in resources)
        self._usual = self._resources == tuple(r.resource for r in CPU_AND_MEMORY)

    def pre_score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Skip | None:
        """Who asks for none of the resources shifts no balance."""
        asked = {name for name, _ in pod.shape.requests}
        return None if asked.intersection(self._resources) else Skip()

    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores:
        if self._usual and not book.lacking:
            used, whole = book.used.T[:2].take(rows, axis=1), book.allocatable.T[:2].take(rows, axis=1)
            return _of_two(used, whole, book.vector(pod.shape.requests))
        deviation = _deviation(np.array([self._share(name, pod, book, rows) for name in self._resources]))
        return np.floor((1.0 - deviation) * MOST_SCORE + NOTHING)

    def _share(self, name: str, pod: PodFacts, book: Book, rows: Rows) -> Scores:
        """NaN: the node does not have it."""
        column = book.column(name)
        whole = book.allocatable[:, column].take(rows)
        own = dict(book.vector(pod.shape.requests)).get(column, 0)
        asked = book.used[:, column].take(rows) + own
        share = np.minimum(asked / np.maximum(whole, 1), 1.0)
        return share if whole.all() else np.where(whole > 0, share, np.nan)


def _of_two(used: Rows, whole: Rows, own: Vector) -> Scores:
    """Of [resource, node], which all nodes have: σ is half of what lies between the two shares."""
    for column, amount in own:
        if column < len(used):
            used[column] += amount
    shares = np.minimum(used / whole, 1.0)
    apart: Scores = np.abs(shares[0] - shares[1])
    return np.floor(MOST_SCORE + NOTHING - MOST_SCORE / 2 * apart)


def _deviation(shares: Scores) -> Scores:
    """[resource, node]: over the resources that each node has."""
    there = ~np.isnan(shares)
    count = np.maximum(there.sum(axis=0), 1)
    known = np.where(there, shares, 0.0)
    mean = known.sum(axis=0) / count
    deviation: Scores = np.sqrt((np.where(there, known - mean, 0.0) ** 2).sum(axis=0) / count)
    return deviation


_s: Score = BalancedAllocation()
_p: PreScore = BalancedAllocation()
