"""Chooses whom classic mode lets go for a pod: on every node whom it would take there, and then the node."""

from __future__ import annotations

import numpy as np

from j10ce.scheduler.accounts.accounts import Accounts
from j10ce.scheduler.book.around import BudgetFacts
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Mask, Rows
from j10ce.scheduler.cycle.framework import Alike, Candidate, Preemptor
from j10ce.scheduler.plugins.classic.many import ManyLook
from j10ce.scheduler.plugins.classic.node import NodeLook
from j10ce.scheduler.plugins.classic.sheet import Sheet
from j10ce.scheduler.plugins.classic.standing import Rival, rival, rivals
from j10ce.scheduler.plugins.classic.toll import Toll, cheapest


class Victims:
    """`margin` and `minimum` are those of the plugin's arguments."""

    def __init__(self, accounts: Accounts, margin: float, minimum: float) -> None:
        self._accounts = accounts
        self._sheet = Sheet(accounts)
        self._one = NodeLook(accounts, margin, minimum)
        self._many = ManyLook(self._sheet, margin, minimum)

    def choose(self, pod: PodFacts, rows: Rows, cycle: Preemptor, now: float) -> Candidate | str:
        mine = rival(self._accounts, pod, now)
        if mine is None:
            return "Nobody has to go for it: it is not followed."
        tolls = self._tolls(mine, rows, cycle, now)
        if not tolls:
            return "Nobody may be preempted for it, or not enough."
        best = cheapest(tolls)
        victims = tuple(cycle.book.pods[each.uid] for each in best.victims)
        going = rivals(self._accounts, iter(victims), cycle.spared, now)
        whys = {each.pod.uid: f"classic: {self._one.may_go(mine, each).rule}" for each in going}
        return Candidate(best.node, victims, whys)

    def _tolls(self, mine: Rival, rows: Rows, cycle: Preemptor, now: float) -> list[Toll]:
        """Of nodes that can be looked at together, the cheapest one."""
        alike = np.zeros(len(rows), np.bool_)
        if isinstance(cycle, Alike):
            alike = cycle.alike(mine.pod, rows) & ~guarded(rows, cycle)
        tolls = [toll for row in rows[~alike].tolist() if (toll := self._one.toll(mine, row, cycle, now)) is not None]
        if isinstance(cycle, Alike) and alike.any():
            self._sheet.look(cycle.book)
            best = self._many.cheapest(mine, rows[alike], cycle, now)
            tolls += [] if best is None else [best]
        return tolls


def guarded(rows: Rows, cycle: Preemptor) -> Mask:
    """Where budgets may tell pods apart."""
    namespaces = {budget.namespace for budget in cycle.book.around.every(BudgetFacts)}
    if not namespaces:
        return np.zeros(len(rows), np.bool_)
    there = (any(pod.namespace in namespaces for pod in cycle.book.there(row)) for row in rows.tolist())
    return np.fromiter(there, np.bool_, len(rows))
