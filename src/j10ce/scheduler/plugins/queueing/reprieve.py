"""Which pods of a node have to go so that another fits, and which node is the one.

All that may go are thought away; if the pod fits then, they come back one by one while it still does: first those whose
budgets allow nobody to go, then the others, each the most important first.
"""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cycle.framework import Preemptor


class Evictees(NamedTuple):
    """The most important first. `broken`: budgets that do not allow it."""

    row: int
    pods: tuple[PodFacts, ...]
    broken: int

    @property
    def order(self) -> tuple[float, ...]:
        """The smallest is the one: fewest broken budgets, lowest priority of the most important victim, smallest sum of
        priorities, fewest victims, latest start of the most important."""
        most = self.pods[0]  # the most important, and of its equals the one that started first
        total = sum([pod.priority for pod in self.pods]) + (len(self.pods) << 31)
        return (self.broken, most.priority, total, len(self.pods), -since(most))


def importance(pod: PodFacts) -> tuple[float, float, str]:
    """The more important, the smaller."""
    return (-pod.priority, since(pod), pod.uid)


def since(pod: PodFacts) -> float:
    """Who has not started yet is the least to lose."""
    return math.inf if pod.started is None else pod.started


def select(pod: PodFacts, row: int, may_go: Container[str], cycle: Preemptor) -> Evictees | None:
    """`may_go`: uids. None: it does not fit there whoever of them goes, or nobody may go."""
    book = cycle.book
    going = sorted((p for p in book.there(row) if p.uid in may_go), key=importance)
    if not going:
        return None
    guarded = violating(going, cycle)
    with ExitStack() as every:
        away = {p.uid: every.enter_context(Away(book, p)) for p in going}
        if not cycle.fits(pod, row):
            return None
        victims = list[PodFacts]()
        for p in (*(g for g in going if g.uid in guarded), *(g for g in going if g.uid not in guarded)):
            away[p.uid].back()
            if not cycle.fits(pod, row):
                away[p.uid].gone()
                victims.append(p)
    if not victims:
        return None
    broken = sum(p.uid in guarded for p in victims)
    return Evictees(row, tuple(sorted(victims, key=importance)), broken)


def violating(pods: Sequence[PodFacts], cycle: Preemptor) -> set[str]:
    """Whose budgets do not allow them to go, if all that are named before them went."""
    guarded, broken = set[str](), 0
    if not any(True for pod in pods for _ in cycle.book.around.budgets_of(pod)):
        return guarded
    for n, pod in enumerate(pods):
        now_broken = cycle.budgets(pods[: n + 1])
        if now_broken > broken:
            guarded.add(pod.uid)
        broken = now_broken
    return guarded


def looks(row: int, going: Sequence[PodFacts], book: Book) -> Hashable:
    """Nodes of equal looks have equal victims, for a pod that looks at sums alone."""
    pods = tuple((id(pod.shape), pod.priority) for pod in going)
    return book.allocatable[row].tobytes(), book.used[row].tobytes(), pods


class Away:
    """A pod thought away, and back, and away again."""

    def __init__(self, book: Book, pod: PodFacts) -> None:
        self._book, self._pod = book, pod
        self._stack = ExitStack()

    def __enter__(self) -> Away:
        self.gone()
        return self

    def __exit__(self, *_: object) -> None:
        self.back()

    def gone(self) -> None:
        self._stack.enter_context(self._book.without((self._pod,)))

    def back(self) -> None:
        self._stack.close()
