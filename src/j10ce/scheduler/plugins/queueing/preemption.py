"""DefaultPreemption: where no node will do, pods of lower priority go, as few and as unimportant as can be.

It does not look at every node: at a tenth of them, and a hundred at least, beginning after those that it looked at the
time before.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable
from types import MappingProxyType
from typing import Final

import numpy as np

from j10ce.scheduler.book.around import BudgetFacts
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Rows
from j10ce.scheduler.cycle.framework import Alike, Candidate, PostFilter, Preemptor
from j10ce.scheduler.plugins.queueing.reprieve import Evictees, importance, looks, select

NEVER: Final = "preemption: not eligible due to preemptionPolicy=Never."
PERCENT: Final = 10
LEAST: Final = 100


def nobody(_: PodFacts) -> bool:
    return False


class DefaultPreemption:
    """`percent` and `least` of the nodes are looked at. `stays`: whether a pod goes for nobody, whatever its
    priority."""

    name = "DefaultPreemption"

    def __init__(self, percent: int = PERCENT, least: int = LEAST, stays: Callable[[PodFacts], bool] = nobody) -> None:
        self._percent, self._least, self._stays = percent, least, stays
        self._after = 0

    def post_filter(self, pod: PodFacts, rows: Rows, cycle: Preemptor, now: float, /) -> Candidate | str:
        if not pod.preempts:
            return NEVER
        best = self._best(pod, rows, cycle)
        if best is None:
            nodes = int(cycle.book.alive[: len(cycle.book)].sum())
            return f"preemption: 0/{nodes} nodes are available: {nodes} No preemption victims found for incoming pod."
        why = f"priority {{}} is below {pod.priority} of {pod.key}, which needs its room"
        node = cycle.book.names[best.row]
        return Candidate(node, best.pods, MappingProxyType({p.uid: why.format(p.priority) for p in best.pods}))

    def _best(self, pod: PodFacts, rows: Rows, cycle: Preemptor) -> Evictees | None:
        alike = cycle.alike(pod, rows) if isinstance(cycle, Alike) else np.zeros(len(rows), np.bool_)
        wanted = max(self._least, len(cycle.book) * self._percent // 100)
        start = int(np.searchsorted(rows, self._after))
        known: dict[Hashable, Evictees | None] = {}
        guarded = {budget.namespace for budget in cycle.book.around.every(BudgetFacts)}
        best: Evictees | None = None
        least: tuple[float, ...] = ()
        for at in (*range(start, len(rows)), *range(start)):
            row = int(rows[at])
            victims = self._victims(pod, row, cycle, known, guarded, bool(alike[at]))
            if victims is None:
                continue
            order = victims.order
            if best is None or order < least or (order == least and cycle.book.names[row] < cycle.book.names[best.row]):
                best, least = victims, order
            wanted -= 1
            if not wanted:
                self._after = row + 1
                break
        return best

    def _victims(
        self,
        pod: PodFacts,
        row: int,
        cycle: Preemptor,
        known: dict[Hashable, Evictees | None],
        guarded: Container[str],
        alike: bool,
    ) -> Evictees | None:
        """What was worked out for a node that looks the same is not worked out again: unless a budget of one of the
        namespaces `guarded` may tell its pods apart."""
        going = self._lower(pod, row, cycle)
        if not going:
            return None
        if not alike or any(p.namespace in guarded for p in going):
            return select(pod, row, {p.uid for p in going}, cycle)
        look = looks(row, going, cycle.book)
        if look not in known:
            known[look] = select(pod, row, {p.uid for p in going}, cycle)
        pattern = known[look]
        if pattern is None or pattern.row == row:
            return pattern
        victims = {p.uid for p in pattern.pods}
        pairs = zip(going, self._lower(pod, pattern.row, cycle), strict=True)
        return Evictees(row, tuple(p for p, other in pairs if other.uid in victims), pattern.broken)

    def _lower(self, pod: PodFacts, row: int, cycle: Preemptor) -> list[PodFacts]:
        """The most important first."""
        lower = (p for p in cycle.book.there(row) if p.priority < pod.priority)
        return sorted((p for p in lower if not self._stays(p) and not cycle.spared(p)), key=importance)


_: type[PostFilter] = DefaultPreemption
