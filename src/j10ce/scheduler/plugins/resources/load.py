"""LoadAware: away from machines that are expected to be busy, whatever was asked for there.

score = 100 · (1 − load),  load the dominant share of the peak that the agent predicts
"""

from __future__ import annotations

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Rows, Scores
from j10ce.scheduler.cycle.framework import MOST_SCORE, Reach, Score


class LoadAware:
    """The book takes a node for another when its load is another. One without an agent is taken for idle."""

    name = "LoadAware"
    reach = Reach.NODE

    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores:
        return MOST_SCORE * (1.0 - book.load.take(rows))


_: type[Score] = LoadAware
