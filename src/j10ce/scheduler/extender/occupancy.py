"""What pods and unused units take of every node of a Kubernetes cluster: changed by events, read by answers.

Requests are what kube-scheduler reckons with, so they are what this reckons with. A pod that stands on a unit takes
what it asks for, at least the unit's shape; units that nobody stands on are held.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from j10ce.model.kinds import Selector
from j10ce.model.resource import NOTHING, RESOURCES, Resources
from j10ce.policy.payer import rank
from j10ce.policy.select import Labels, Test, compiled
from j10ce.scheduler.cluster import Amounts, Mask, Rows, Scores


class HeldPledge(NamedTuple):
    """What one policy holds, as far as its units have a place."""

    source: str
    namespace: str
    selector: Selector
    shape: Resources
    units: Mapping[str, int]  # by node, those in use included
    lends: bool = False  # to pods that give way
    until: float = math.inf  # wall clock


class Guest(NamedTuple):
    """A pod as it counts. Those that came first are seated first."""

    uid: str
    namespace: str
    name: str
    labels: Labels
    request: Resources
    node: str = ""  # empty until it is bound
    since: float = 0.0
    gives_way: bool = False  # best effort: runs on what is lent, and goes when that is wanted back
    ignored: bool = False  # by its labels: no policy counts for it


class Count(NamedTuple):
    """One node."""

    used: Resources
    held: Resources  # by units that nobody uses, and by what those in use are short of their shape
    lent: Resources  # the part of it that pods which give way may use
    unused: Mapping[str, int]  # units, by policy
    standing: frozenset[str]  # uids of the pods on units
    words: dict[tuple[bool, ...], str]  # why pods are refused, by which resources they ask for; made when needed


NO_COUNT: Final = Count(NOTHING, NOTHING, NOTHING, {}, frozenset(), {})


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
        self.pledges: dict[str, HeldPledge] = {}
        self._there: list[dict[str, Guest]] = []
        self._placed: list[dict[str, int]] = []  # units by row and policy
        self._by_namespace: dict[str, dict[str, tuple[Test, HeldPledge]]] = {}

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
        if self.pledges.get(pledge.source) == pledge:
            return
        touched = self._unplace(pledge.source) | {self._row(node) for node, units in pledge.units.items() if units > 0}
        self.pledges[pledge.source] = pledge
        self._by_namespace.setdefault(pledge.namespace, {})[pledge.source] = (compiled(pledge.selector), pledge)
        for node, units in pledge.units.items():
            if units > 0:
                self._placed[self.row[node]][pledge.source] = units
        for row in touched:
            self._recount(row)

    def remove_pledge(self, source: str) -> None:
        touched = self._unplace(source)
        pledge = self.pledges.pop(source, None)
        if pledge is not None:
            del self._by_namespace[pledge.namespace][source]
        for row in touched:
            self._recount(row)

    # -- questions

    def rows(self, names: Sequence[str]) -> Rows:
        """Of nodes by name; -1 for one that is not known."""
        try:
            return np.fromiter(map(self.row.__getitem__, names), np.int64, len(names))
        except KeyError:
            return np.fromiter((self.row.get(name, -1) for name in names), np.int64, len(names))

    def matching(self, guest: Guest) -> list[HeldPledge]:
        """Policies whose units the pod may take."""
        if guest.ignored:
            return []
        return [s for test, s in self._by_namespace.get(guest.namespace, {}).values() if test(guest.labels)]

    def payer(self, row: int, pledges: Sequence[HeldPledge]) -> HeldPledge | None:
        """Of these, the policy that pays on a node."""
        if len(pledges) <= 1:
            return pledges[0] if pledges else None
        whole = self.whole(row)
        return min(pledges, key=lambda s: rank(s.shape, s.source, whole))

    def whole(self, row: int) -> Resources:
        """All that a node has, as far as is known."""
        capacity = self.capacity.get(row, NOTHING)
        return capacity if any(capacity) else Resources._make(self.allocatable[row].tolist())

    def counted(self, row: int, without: Collection[str] = ()) -> Count:
        """A row as it is, or as it would be once some pods are gone."""
        left, there = dict(self._placed[row]), self._there[row].values()
        used, short, standing = NOTHING, NOTHING, set()
        for guest in sorted(there, key=lambda g: (g.since, g.uid)) if left else there:
            if guest.uid in without:
                continue
            used = used.plus(guest.request)
            if (payer := self._unit_for(row, guest, left)) is not None:
                left[payer.source] -= 1
                short = short.plus(payer.shape.minus(guest.request))
                standing.add(guest.uid)
        held, lent = self._sums(left)
        unused = {s: n for s, n in left.items() if n}
        return Count(used, held.plus(short), lent, unused, frozenset(standing), {})

    def there(self, row: int) -> Collection[Guest]:
        return self._there[row].values()

    # -- inside

    def _unit_for(self, row: int, guest: Guest, left: Mapping[str, int]) -> HeldPledge | None:
        if not any(left.values()):
            return None
        return self.payer(row, [pledge for pledge in self.matching(guest) if left.get(pledge.source)])

    def _sums(self, left: Mapping[str, int]) -> tuple[Resources, Resources]:
        held = lent = NOTHING
        for source, units in left.items():
            pledge = self.pledges[source]
            amount = Resources._make(n * units for n in pledge.shape)
            held = held.plus(amount)
            lent = lent.plus(amount) if pledge.lends else lent
        return held, lent

    def _recount(self, row: int) -> None:
        count = self.counts[row] = self.counted(row)
        self.used[row], self.held[row], self.lent[row] = count.used, count.held, count.lent
        self.holding[row] = any(count.held)

    def _unplace(self, source: str) -> set[int]:
        pledge = self.pledges.get(source)
        rows = {self.row[node] for node, units in pledge.units.items() if units > 0} if pledge else set()
        for row in rows:
            self._placed[row].pop(source, None)
        return rows

    def _row(self, name: str) -> int:
        if name not in self.row:
            row = self.row[name] = len(self.names)
            self.names.append(name)
            self.counts.append(NO_COUNT)
            self.moves.append(0)
            self._there.append({})
            self._placed.append({})
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
