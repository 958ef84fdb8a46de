"""What pods and unused units take of every node of a Kubernetes cluster: changed by events, read by answers.

Requests are what kube-scheduler reckons with, so they are what this reckons with. A pod that stands on a unit takes
what it asks for, at least the unit's shape; units that nobody stands on are held.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from j10ce.model.resource import NOTHING, RESOURCES, Resources
from j10ce.scheduler.book.units import NO_COUNT, Count, Guest, HeldPledge, Units
from j10ce.scheduler.cluster import Amounts, Mask, Rows, Scores


class Occupancy:
    """Rows are for life: a node that goes leaves an empty one behind, which it finds again when it is back."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.row: dict[str, int] = {}
        self.allocatable = self.used = self.held = self.lent = table_of(0)
        self.capacity: dict[int, Resources] = {}  # by row: all that there is, where an agent has measured it
        self.load: Scores = np.zeros(0)  # 0 to 1: the peak to expect
        self.holding: Mask = np.zeros(0, np.bool_)  # by row: whether anything is held there
        self.counts: list[Count] = []
        self.moves: list[int] = []  # by row: how often a pod came, went or changed
        self.guests: dict[str, Guest] = {}
        self._there: list[dict[str, Guest]] = []
        self.units = Units(self._row, self.whole)

    # -- events

    def put_node(self, name: str, allocatable: Resources) -> None:
        row = self._row(name)
        if tuple(self.allocatable[row].tolist()) != allocatable:
            self.allocatable[row] = allocatable
            self._recount(row)

    def put_report(self, name: str, load: float, capacity: Resources) -> None:
        """What the agent of a node says."""
        row = self._row(name)
        self.load[row] = load
        if capacity != self.capacity.get(row, NOTHING):
            self.capacity[row] = capacity
            self._recount(row)

    def put_guest(self, guest: Guest) -> None:
        before = self.guests.get(guest.uid)
        if before == guest:
            return
        self.guests[guest.uid] = guest
        for node in {guest.node, before.node if before else ""} - {""}:
            row = self._row(node)
            self._there[row].pop(guest.uid, None)
            if node == guest.node:
                self._there[row][guest.uid] = guest
            self.moves[row] += 1
            self._recount(row)

    def remove_guest(self, uid: str) -> None:
        guest = self.guests.pop(uid, None)
        if guest is not None and guest.node:
            row = self._row(guest.node)
            self._there[row].pop(uid, None)
            self.moves[row] += 1
            self._recount(row)

    def put_pledge(self, pledge: HeldPledge) -> None:
        for row in self.units.put(pledge):
            self._recount(row)

    def remove_pledge(self, source: str) -> None:
        for row in self.units.remove(source):
            self._recount(row)

    # -- questions

    def rows(self, names: Sequence[str]) -> Rows:
        """Of nodes by name; -1 for one that is not known."""
        try:
            return np.fromiter(map(self.row.__getitem__, names), np.int64, len(names))
        except KeyError:
            return np.fromiter((self.row.get(name, -1) for name in names), np.int64, len(names))

    def whole(self, row: int) -> Resources:
        """All that a node has, as far as is known."""
        capacity = self.capacity.get(row, NOTHING)
        return capacity if any(capacity) else Resources._make(self.allocatable[row].tolist())

    def counted(self, row: int, without: Collection[str] = ()) -> Count:
        """A row as it is, or as it would be once some pods are gone."""
        there = self._there[row].values()
        return self.units.counted(row, [guest for guest in there if guest.uid not in without] if without else there)

    def there(self, row: int) -> Collection[Guest]:
        return self._there[row].values()

    # -- inside

    def _recount(self, row: int) -> None:
        count = self.counts[row] = self.counted(row)
        self.used[row], self.held[row], self.lent[row] = count.used, count.held, count.lent
        self.holding[row] = any(count.held)

    def _row(self, name: str) -> int:
        if name not in self.row:
            row = self.row[name] = len(self.names)
            self.names.append(name)
            self.counts.append(NO_COUNT)
            self.moves.append(0)
            self._there.append({})
            if row == len(self.allocatable):
                tables = (self.allocatable, self.used, self.held, self.lent)
                more = max(64, row)
                self.allocatable, self.used, self.held, self.lent = (grown(table, row + more) for table in tables)
                self.load = np.concatenate([self.load, np.zeros(more)])
                self.holding = np.concatenate([self.holding, np.zeros(more, np.bool_)])
        return self.row[name]


def table_of(rows: int) -> Amounts:
    """Column by column: answers look at one resource of all nodes."""
    return np.zeros((rows, len(RESOURCES)), np.int64, order="F")


def grown(table: Amounts, rows: int) -> Amounts:
    """With room for so many."""
    larger = table_of(rows)
    larger[: len(table)] = table
    return larger
