"""Chooses among pods, node by node, whom classic mode lets go.

On each node all that may go for the pod are thought away; if it fits then, they are given back one by one as long as
it still does, those first whose disruption budget forbids it and that precede others. Of the nodes the one without
victims is taken, else the one whose victims can bear it best, by the importance of who cannot: the most important
first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.accounts.measure import Measure
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Rows
from j10ce.scheduler.cycle.framework import Candidate, Preemptor
from j10ce.scheduler.plugins.qos.rules import Wish, may_preempt, precedes, sort_key
from j10ce.scheduler.plugins.qos.standing import Rival, rival, rivals


class Toll(NamedTuple):
    """What a node costs."""

    node: str
    victims: tuple[Rival, ...]
    reasons: dict[str, str]


class Victims:
    """`margin` and `minimum` are those of the plugin's arguments."""

    def __init__(self, accounts: Accounts, margin: float, minimum: float) -> None:
        self._accounts, self._margin, self._minimum = accounts, margin, minimum

    def choose(self, pod: PodFacts, rows: Rows, cycle: Preemptor, now: float) -> Candidate | str:
        mine = rival(self._accounts, pod, now)
        if mine is None:
            return "Nobody has to go for it: it is not followed."
        tolls = [toll for row in rows.tolist() if (toll := self._toll(mine, row, cycle, now)) is not None]
        if not tolls:
            return "Nobody may be preempted for it, or not enough."
        best = cheapest(tolls, self._margin)
        return Candidate(best.node, tuple(each.pod for each in best.victims), best.reasons)

    def _toll(self, mine: Rival, row: int, cycle: Preemptor, now: float) -> Toll | None:
        book, reasons, may_go = cycle.book, dict[str, str](), list[Rival]()
        for each in rivals(self._accounts, iter(tuple(book.there(row))), cycle.spared, now):
            if (rule := self._may_go(mine, each)) is not None:
                may_go.append(each)
                reasons[each.pod.uid] = f"classic: {rule}"
        if not may_go:
            return None
        victims = self._not_reprieved(mine.pod, row, may_go, cycle)
        if victims is None:
            return None
        return Toll(book.names[row], victims, {each.pod.uid: reasons[each.pod.uid] for each in victims})

    def _may_go(self, mine: Rival, other: Rival) -> str | None:
        a, b = mine.measure, other.measure
        if b.contributing and not precedes(a.metric, a.slo, b.metric, b.slo, self._margin):
            return None
        wish = Wish(mine.key == other.key, mine.approach, a.slo, b)
        allowed, rule = may_preempt(wish, self._margin, self._minimum)
        return rule if allowed else None

    def _not_reprieved(
        self, pod: PodFacts, row: int, may_go: Sequence[Rival], cycle: Preemptor
    ) -> tuple[Rival, ...] | None:
        gone = list(may_go)
        with cycle.book.without(each.pod for each in gone):
            if not cycle.fits(pod, row):
                return None
        for each in reprieved_first(may_go, cycle, self._margin):
            fewer = [other for other in gone if other is not each]
            with cycle.book.without(other.pod for other in fewer):
                if cycle.fits(pod, row):
                    gone = fewer
        return tuple(gone)


def reprieved_first(may_go: Iterable[Rival], cycle: Preemptor, margin: float) -> list[Rival]:
    """Those that a budget protects, those that count for their owner, those that precede."""

    def key(each: Rival) -> tuple[bool, bool, tuple[int, float, float], str]:
        measure = each.measure
        in_order = sort_key(measure.metric, measure.slo, margin)
        return not cycle.budgets([each.pod]), not measure.contributing, in_order, each.pod.uid

    return sorted(may_go, key=key)


def cheapest(tolls: Sequence[Toll], margin: float) -> Toll:
    """Ties go by the number of victims, then by the name of the node."""
    left = [toll for toll in tolls if not toll.victims] or list(tolls)
    scores = {toll.node: classes(toll.victims, margin) for toll in left}
    known = {importance for score in scores.values() for importance in score}
    for importance in sorted(known, reverse=True):
        scored = partial(_of_class, scores, importance)
        most = max(map(scored, left))
        left = [toll for toll in left if scored(toll) == most]
    return min(left, key=lambda toll: (len(toll.victims), toll.node))


def _of_class(scores: dict[str, dict[float, float]], importance: float, toll: Toll) -> float:
    return scores[toll.node].get(importance, 0.0)


GENERAL = -1.0  # a class below every importance


def classes(victims: Collection[Rival], margin: float) -> dict[float, float]:
    """By importance: how far those in contention are below the margin; and in general, what all of them have."""
    score = defaultdict[float, float](float)
    for each in victims:
        bears = _bears(each.measure, margin)
        score[GENERAL] += bears
        if bears < 0:
            score[each.measure.slo] += bears
    return score


def _bears(measure: Measure, margin: float) -> float:
    return measure.metric - margin if measure.contributing else 0.0
