"""NodeName: a pod that names its node runs there or nowhere."""

from __future__ import annotations

from typing import Final

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Mask, Rows
from j10ce.scheduler.cycle.framework import Filter, PreFilter, Reach, Skip, Turned

ANOTHER: Final = Turned(("node(s) didn't match the requested node name",), resolvable=False)


class NodeName:
    name = "NodeName"
    reach = Reach.NODE

    def pre_filter(self, pod: PodFacts, book: Book, /) -> Skip | None:
        return None if pod.shape.node_name else Skip()

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        if not pod.shape.node_name:
            return np.ones(len(rows), np.bool_)
        mask: Mask = rows == book.row.get(pod.shape.node_name, -1)
        return mask

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        return ANOTHER


_: tuple[type[Filter], type[PreFilter]] = (NodeName, NodeName)
