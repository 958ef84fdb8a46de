"""TaintToleration: a taint keeps away who does not bear it, or asks to come to another node if there is one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import NodeFacts, NodeTaint, PodFacts
from j10ce.scheduler.book.shape import Toleration
from j10ce.scheduler.book.suiting import as_taints, bears, tolerated
from j10ce.scheduler.cluster import Mask, Rows, Scores
from j10ce.scheduler.cycle.framework import Filter, Normalised, Reach, Score, Turned
from j10ce.scheduler.plugins.nodes.scale import reversed_scaled

KEPT_AWAY: Final = Turned(("node(s) had untolerated taint(s)",), resolvable=False)


class TaintToleration:
    name = "TaintToleration"
    reach = Reach.NODE

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        return tolerated(pod.shape, book, rows)

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        return KEPT_AWAY

    def score(self, pod: PodFacts, book: Book, rows: Rows, /) -> Scores:
        """How many of its wishes not to come are not borne."""
        column = book.index.column("shy taints", _shy)
        soft = tuple(t for t in pod.shape.tolerations if t.effect in ("", "PreferNoSchedule"))
        codes = column.codes[rows]
        counts: npt.NDArray[np.float64] = np.zeros(len(column.values))
        for code in np.unique(codes).tolist():
            counts[code] = _unborne(soft, as_taints(column.values[code]))
        raw: Scores = counts[codes]
        return raw

    def normalise(self, raw: Scores, /) -> Scores:
        return reversed_scaled(raw)


def _shy(node: NodeFacts) -> tuple[NodeTaint, ...]:
    return tuple(taint for taint in node.taints if taint.effect == "PreferNoSchedule")


def _unborne(soft: Iterable[Toleration], taints: Iterable[NodeTaint]) -> int:
    return sum(not bears(soft, taint) for taint in taints)


_: tuple[type[Filter], type[Score], type[Normalised]] = (TaintToleration, TaintToleration, TaintToleration)
