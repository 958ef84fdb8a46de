"""ImageLocality: rather where the images of a pod are already, as far as they are large and not everywhere.

sum over containers of ⌊size · share of nodes that have it⌋, from 23 MB (0) to 1000 MB a container (100)
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.index import Coded
from j10ce.scheduler.cluster import Rows, Scores
from j10ce.scheduler.cycle.framework import MOST_SCORE, PreScore, Reach, Score, Skip

MIB: Final = 1 << 20
SMALL: Final = 23 * MIB
LARGE: Final = 1000 * MIB  # for each container
MOST_REMEMBERED: Final = 256  # sets of images


class ImageLocality:
    """Nodes that pull an image change what it is worth everywhere, so that nothing holds for one node alone."""

    name = "ImageLocality"
    reach = Reach.CLUSTER

    def __init__(self) -> None:
        self._book: Book | None = None
        self._version = -1
        self._known: OrderedDict[tuple[str, ...], Scores | None] = OrderedDict()

    def pre_score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Skip | None:
        return Skip() if self._of(pod.shape.images, book) is None else None

    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores:
        scores = self._of(pod.shape.images, book)
        return np.zeros(len(rows)) if scores is None else scores[rows]

    def _of(self, images: tuple[str, ...], book: Book) -> Scores | None:
        """By row; None where no node has enough of any."""
        if self._book is not book or self._version != book.changed:
            self._book, self._version = book, book.changed
            self._known.clear()
        if images not in self._known:
            self._known[images] = _scores(images, book)
            if len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
        return self._known[images]


def _scores(images: tuple[str, ...], book: Book) -> Scores | None:
    columns = [_column(image, book) for image in images]
    there = [column for column in columns if len(column.values) > 1]
    if not there:
        return None
    nodes = int(book.alive.sum())
    total = np.zeros(len(there[0].codes))
    for column in there:
        sizes = np.array([0, *column.values[1:]], np.float64)[column.codes]
        total += np.floor(sizes * (np.count_nonzero(column.codes) / max(1, nodes)))
    bounded = np.clip(total, SMALL, LARGE * len(images))
    scores: Scores = np.floor(MOST_SCORE * (bounded - SMALL) / (LARGE * len(images) - SMALL))
    return scores if scores.any() else None


def _column(image: str, book: Book) -> Coded:
    def size(node: NodeFacts) -> int | None:
        return node.images.get(image)

    return book.index.column(("image", image), size)


_: tuple[type[PreScore], type[Score]] = (ImageLocality, ImageLocality)
