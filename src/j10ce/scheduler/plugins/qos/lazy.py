"""Chooses whom lazy mode lets go: nobody, as long as the pod can wait; then who can wait longest.

A victim runs already. It can wait for longer than the pod by the hysteresis; if it is the more important one, for so
much longer than who is in need. If it is the less important one it goes also without, as the other cannot wait.
No disruption budget is broken, and the moves of all together stay within a budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Rows
from j10ce.scheduler.cycle.framework import Candidate, Preemptor
from j10ce.scheduler.plugins.classic.standing import Rival, rival, rivals
from j10ce.scheduler.plugins.qos.budget import PreemptionBudget
from j10ce.scheduler.plugins.qos.laxity import laxity, left_of_period
from j10ce.scheduler.plugins.qos.prospects import FEW_ROWS, MOST_ROWS, Prospect, Prospects
from j10ce.scheduler.plugins.qos.settings import QosSettings

GOING_S: Final = 30.0  # a victim that is still there after so long did not go


class Waiting(NamedTuple):
    """A pod and how long it can wait."""

    rival: Rival
    laxity: float


class Option(NamedTuple):
    node: str
    victims: tuple[Waiting, ...]

    @property
    def laxity(self) -> float:
        return min(each.laxity for each in self.victims)

    @property
    def order(self) -> tuple[int, float, str]:
        return len(self.victims), -self.laxity, self.node


class Lazy:
    def __init__(self, accounts: Accounts, settings: QosSettings) -> None:
        self._accounts, self._settings = accounts, settings
        self._budget = PreemptionBudget(settings.budget)
        self._going: dict[str, float] = {}  # by uid: when it was chosen
        self._prospects = Prospects()

    def laxity(self, pod: PodFacts, now: float) -> float | None:
        mine = rival(self._accounts, pod, now)
        return None if mine is None else self._laxity(mine, False, now)

    def needed_at(self, pod: PodFacts, now: float) -> float:
        """When it needs a node, if nothing changes: while it waits, its laxity falls by one second per second."""
        can_wait = self.laxity(pod, now)
        return now if can_wait is None else now + max(can_wait - self._settings.margin_s, 0.0)

    def gone(self, uid: str) -> None:
        self._going.pop(uid, None)

    def choose(self, pod: PodFacts, rows: Rows, cycle: Preemptor, now: float) -> Candidate | str:
        mine = rival(self._accounts, pod, now)
        if mine is None:
            return "Nobody has to go for it: it is not followed."
        it = Waiting(mine, self._laxity(mine, False, now))
        if it.laxity > self._settings.margin_s:
            return (
                f"It can wait {it.laxity - self._settings.margin_s:.0f} s more and meet its SLO {mine.measure.slo:g}."
            )
        level = self._budget.level(len(cycle.book.pods), mine.measure.sums.overhead, now)
        best = self._best(it, rows.tolist(), cycle, now)
        if best is None:
            return f"It can wait {it.laxity:.0f} s, and nobody {self._settings.hysteresis_s:g} s longer."
        if level < len(best.victims):
            return f"{len(best.victims)} would have to go; the budget of preemptions is used up ({level:.1f} left)."
        self._budget.spend(len(best.victims))
        self._going.update((each.rival.pod.uid, now) for each in best.victims)
        return Candidate(
            best.node,
            tuple(each.rival.pod for each in best.victims),
            {each.rival.pod.uid: self._why(it, each, level) for each in best.victims},
        )

    # -- inside

    def _laxity(self, of: Rival, running: bool, now: float) -> float:
        return laxity(of.measure, of.approach, running, self._left(now))

    def _left(self, now: float) -> float:
        since = now if self._accounts.since is None else self._accounts.since
        return left_of_period(max(now - since, 0.0), self._settings.periods_s)

    def _best(self, it: Waiting, rows: list[int], cycle: Preemptor, now: float) -> Option | None:
        """Of rows that are known until no other is better, and of some that are not."""
        known, options = self._prospects.known(rows, cycle.book, self._left(now), now), list[Option]()
        for each in known[:MOST_ROWS]:
            single = max((option.laxity for option in options if len(option.victims) == 1), default=it.laxity)
            if each.laxity <= single:
                break
            options += self._option(it, each.row, cycle, now)
        for row in self._prospects.unknown(rows, known, FEW_ROWS if options else MOST_ROWS):
            options += self._option(it, row, cycle, now)
        return min(options, key=lambda option: option.order, default=None)

    def _option(self, it: Waiting, row: int, cycle: Preemptor, now: float) -> list[Option]:
        """What is best there, if anybody may go."""
        book = cycle.book
        going = [pod for pod in book.there(row) if self._is_going(pod, now)]
        staying = self._staying(row, cycle, now)
        chosen = self._chosen(it, row, going, sorted((w for w in staying if self._may_go(it, w)), key=_longest), cycle)
        longest = max((each.laxity for each in staying), default=-math.inf)
        self._prospects.note(Prospect(row, longest, book.version, now))
        return [Option(book.names[row], chosen)] if chosen else []

    def _staying(self, row: int, cycle: Preemptor, now: float) -> list[Waiting]:
        """Who runs there and is not about to go."""
        staying = (pod for pod in tuple(cycle.book.there(row)) if pod.uid not in self._going)
        return [
            Waiting(each, self._laxity(each, True, now))
            for each in rivals(self._accounts, staying, cycle.spared, now)
            if each.measure.ran > 0
        ]

    def _chosen(
        self, it: Waiting, row: int, going: Sequence[PodFacts], may_go: Sequence[Waiting], cycle: Preemptor
    ) -> tuple[Waiting, ...]:
        """As few as it takes, those that can wait longest first; nobody, if all together are not enough."""
        chosen = list[Waiting]()
        for each in may_go:
            if cycle.budgets([*(other.rival.pod for other in chosen), each.rival.pod]):
                continue
            chosen.append(each)
            with cycle.book.without([*going, *(other.rival.pod for other in chosen)]):
                fits = cycle.fits(it.rival.pod, row)
            if fits:
                return self._needed(it, row, going, chosen, cycle)
        return ()

    def _needed(
        self, it: Waiting, row: int, going: Sequence[PodFacts], chosen: Sequence[Waiting], cycle: Preemptor
    ) -> tuple[Waiting, ...]:
        """Without those that were chosen in vain."""
        needed = list(chosen)
        for each in chosen[:-1]:
            fewer = [other for other in needed if other is not each]
            with cycle.book.without([*going, *(other.rival.pod for other in fewer)]):
                if cycle.fits(it.rival.pod, row):
                    needed = fewer
        return tuple(needed)

    def _may_go(self, it: Waiting, other: Waiting) -> bool:
        mine, its = it.rival, other.rival
        if mine.key == its.key and mine.approach != "independent":
            return False
        if its.measure.slo > mine.measure.slo:
            return other.laxity >= self._settings.margin_s + self._settings.hysteresis_s
        if its.measure.slo < mine.measure.slo and other.laxity > it.laxity:
            return True
        return other.laxity >= it.laxity + self._settings.hysteresis_s

    def _is_going(self, pod: PodFacts, now: float) -> bool:
        since = self._going.get(pod.uid)
        if since is not None and now - since > GOING_S and pod.deleted is None:
            del self._going[pod.uid]
            return False
        return since is not None or pod.deleted is not None

    def _why(self, it: Waiting, other: Waiting, level: float) -> str:
        mine, its = it.rival.measure, other.rival.measure
        return (
            f"lazy: {it.rival.pod.key} (SLO {mine.slo:g}, has {mine.qos:.3f}) can wait {it.laxity:.0f} s, "
            f"this pod (SLO {its.slo:g}, has {its.qos:.3f}) {other.laxity:.0f} s; "
            f"{self._settings.hysteresis_s:g} s of hysteresis, {level:.0f} preemptions left"
        )


def _longest(each: Waiting) -> tuple[float, str]:
    return -each.laxity, each.rival.pod.uid
