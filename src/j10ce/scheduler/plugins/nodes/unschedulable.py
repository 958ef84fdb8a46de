"""NodeUnschedulable: a node that is cordoned takes pods that bear its taint alone."""

from __future__ import annotations

from typing import Final

import numpy as np

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import NodeFacts, NodeTaint, PodFacts
from j10ce.scheduler.book.index import judge
from j10ce.scheduler.book.suiting import bears
from j10ce.scheduler.cluster import Mask, Rows
from j10ce.scheduler.cycle.framework import Filter, PreFilter, Reach, Skip, Turned

CORDONED: Final = NodeTaint("node.kubernetes.io/unschedulable", "", "NoSchedule")
CLOSED: Final = Turned(("node(s) were unschedulable",), resolvable=False)


class NodeUnschedulable:
    name = "NodeUnschedulable"
    reach = Reach.NODE

    def pre_filter(self, pod: PodFacts, book: Book, /) -> Skip | None:
        return Skip() if bears(pod.shape.tolerations, CORDONED) else None

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        if bears(pod.shape.tolerations, CORDONED):
            return np.ones(len(rows), np.bool_)
        return judge(book.index.column("cordoned", _cordoned), rows, lambda cordoned: cordoned is not True)

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        return CLOSED


def _cordoned(node: NodeFacts) -> bool:
    return node.unschedulable


_: tuple[type[Filter], type[PreFilter]] = (NodeUnschedulable, NodeUnschedulable)
