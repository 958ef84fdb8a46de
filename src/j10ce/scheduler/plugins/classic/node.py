"""Looks at one node: whom would a pod take there? All filters are asked.

All that may go for it are thought away; if it fits then, they come back one by one as long as it still does: those
first whose disruption budgets forbid it, then those that count for their owner, then those that precede others.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cycle.framework import Preemptor
from j10ce.scheduler.plugins.classic.rules import Preemption, Wish, may_preempt, precedes, sort_key
from j10ce.scheduler.plugins.classic.standing import Rival, rivals
from j10ce.scheduler.plugins.classic.toll import Toll, victim
from j10ce.scheduler.plugins.queueing.reprieve import Away, violating


class NodeLook:
    """`margin` and `minimum` are those of the plugin's arguments."""

    def __init__(self, accounts: Accounts, margin: float, minimum: float) -> None:
        self._accounts, self._margin, self._minimum = accounts, margin, minimum

    def toll(self, mine: Rival, row: int, cycle: Preemptor, now: float) -> Toll | None:
        book = cycle.book
        there = rivals(self._accounts, iter(tuple(book.there(row))), cycle.spared, now)
        may_go = [each for each in there if self.may_go(mine, each).allowed]
        if not may_go:
            return None
        victims = self._not_reprieved(mine.pod, row, may_go, cycle)
        return None if victims is None else Toll(book.names[row], tuple(victim(v, self._margin) for v in victims))

    def may_go(self, mine: Rival, other: Rival) -> Preemption:
        a, b = mine.measure, other.measure
        if b.contributing and not precedes(a.metric, a.slo, b.metric, b.slo, self._margin):
            return Preemption(False, "it comes first itself")
        return may_preempt(Wish(mine.key == other.key, mine.approach, a.slo, b), self._margin, self._minimum)

    def _not_reprieved(self, pod: PodFacts, row: int, may_go: list[Rival], cycle: Preemptor) -> list[Rival] | None:
        in_turn = reprieved_first(may_go, cycle, self._margin)
        with ExitStack() as every:
            away = [every.enter_context(Away(cycle.book, each.pod)) for each in in_turn]
            if not cycle.fits(pod, row):
                return None
            victims = list[Rival]()
            for each, one in zip(in_turn, away, strict=True):
                one.back()
                if not cycle.fits(pod, row):
                    one.gone()
                    victims.append(each)
        return victims


def reprieved_first(may_go: Iterable[Rival], cycle: Preemptor, margin: float) -> list[Rival]:
    def key(each: Rival) -> tuple[bool, tuple[int, float, float], str]:
        measure = each.measure
        return not measure.contributing, sort_key(measure.metric, measure.slo, margin), each.pod.uid

    in_order = sorted(may_go, key=key)
    guarded = violating([each.pod for each in in_order], cycle)
    return sorted(in_order, key=lambda each: each.pod.uid not in guarded)
