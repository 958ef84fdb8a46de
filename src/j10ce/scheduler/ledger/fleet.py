"""The book of reservations of a fleet: who is promised units of which shape, and on which node each unit is.

The witness is that last part: an assignment of every unused unit to a node that fits next to all that runs and to all
other units. A pledge is admitted only with a witness for everything. Units move only when they must: a witness that
holds is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from j10ce.model.resource import NOTHING, Resources
from j10ce.scheduler.ledger.exact import BUDGET
from j10ce.scheduler.ledger.layout import FleetLayout, PlacedPledge, left_of, topping
from j10ce.scheduler.ledger.pledge import NAMESPACE_LIMIT, Charge, FleetNode, Pledge, PledgeRefusal, Standing
from j10ce.scheduler.ledger.settle import arrange, beside, rearrange, settle
from j10ce.scheduler.ledger.shortage import at_limit, creditors, no_room, nothing_promised, over_limit, owed
from j10ce.scheduler.ledger.witness import Amounts, Mask, Placement, place


class Fleet:
    """A mutable book. After every call each unit has its place, or its pledge is short of it and says so.

    `repack=False` keeps a call short: nothing moves but what has to, and what needs more waits for a later call.
    """

    def __init__(self, *, limit_percent: int = NAMESPACE_LIMIT, budget: int = BUDGET) -> None:
        self.limit_percent = limit_percent
        self.budget = budget
        self.layout = FleetLayout()
        self._charges: dict[str, dict[str, Charge]] = {}  # by policy and node
        self._waiting: dict[str, dict[str, int]] = {}  # workloads without a floor, by policy and node
        self._claimed: dict[str, Resources] = {}  # by namespace, as far as it is believed

    def __iter__(self) -> Iterator[Pledge]:
        """The senior ones first."""
        return (e.pledge for e in self.layout.pledges.values())

    def __contains__(self, source: str) -> bool:
        return source in self.layout.pledges

    @property
    def whole(self) -> Resources:
        """What all nodes together may promise."""
        return self.layout.whole

    def pledge(self, source: str) -> Pledge:
        return self.layout.pledges[source].pledge

    def node(self, name: str) -> FleetNode:
        return self.layout.nodes[name]

    def shortage(self, source: str) -> PledgeRefusal | None:
        """What an admitted pledge lacks to be whole."""
        placed = self.layout.pledges[source]
        return no_room(self.layout, placed, placed.missing, self.layout.free) if placed.missing > 0 else None

    def standing(self, source: str) -> Standing:
        """Raises KeyError for a pledge that is not admitted."""
        placed, names = self.layout.pledges[source], self.layout.names
        used, unused = ({names[row]: n for row, n in units.items()} for units in (placed.seats, placed.unused))
        return Standing(used, unused, placed.missing)

    def free(self, node: str) -> Resources:
        """What neither workloads nor units have."""
        return Resources._make(max(0, n) for n in self.layout.free[self.layout.row[node]].tolist())

    def reserved(self, namespace: str) -> Resources:
        """By its workloads and its units."""
        total = self._claimed.get(namespace, NOTHING)
        for placed in self.layout.pledges.values():
            if placed.pledge.namespace == namespace:
                total = total.plus(placed.beyond(self._charges.get(placed.source, {}), self.layout.nodes))
        return total

    def full(self) -> dict[str, str]:
        """Namespaces that reserve as much as they may, and how much that is."""
        namespaces = {*self._claimed, *(p.namespace for p in self)}
        amounts = {ns: at_limit(self.reserved(ns), self.whole, self.limit_percent) for ns in sorted(namespaces)}
        return {ns: full for ns, full in amounts.items() if full}

    def changed(self) -> set[str]:
        """Pledges whose standing may have changed since the last call."""
        changed, self.layout.changed = self.layout.changed, set()
        return changed

    # -- nodes

    def update(self, nodes: Iterable[FleetNode] = (), gone: Iterable[str] = (), *, repack: bool = True) -> None:
        """Nodes that came or changed, and those that are no more; the witness follows."""
        coming = sorted(nodes, key=lambda n: n.name)
        going = sorted(set(gone) & self.layout.nodes.keys())
        self._take_in([FleetNode(name, NOTHING, open=False) for name in going])
        for name in going:
            del self.layout.nodes[name]
        names = {*self.layout.nodes, *(n.name for n in coming)}
        if names != self.layout.row.keys():
            self.layout.index(names)
        self._take_in(coming)
        self._settle(repack=repack)

    def _take_in(self, nodes: Iterable[FleetNode]) -> None:
        recharged: dict[str, list[FleetNode]] = {}
        for node in nodes:
            before = self.layout.nodes.get(node.name)
            charged = before.charged if before else {}
            self._put(node, before)
            for source in {**charged, **node.charged}:
                if charged.get(source) != node.charged.get(source):
                    recharged.setdefault(source, []).append(node)
        for source, concerned in recharged.items():
            self._recharge(source, concerned)

    def _put(self, node: FleetNode, before: FleetNode | None) -> None:
        layout, row = self.layout, self.layout.row[node.name]
        for claimed, sign in ((before.believed() if before else {}, -1), (node.believed(), 1)):
            for namespace, amount in claimed.items():
                has = self._claimed.get(namespace, NOTHING)
                self._claimed[namespace] = Resources._make(h + sign * a for h, a in zip(has, amount, strict=True))
        layout.put(node, self._occupied(node))
        if before is None or before.labels != node.labels:
            for placed in layout.pledges.values():
                layout.relabel(placed, row, placed.pledge.selects(node.labels))

    def _occupied(self, node: FleetNode, coming: Pledge | None = None) -> Resources:
        """What runs there, each used unit at its full shape."""
        total = NOTHING
        for amount in (*node.claimed.values(), *node.occupied.values()):
            total = total.plus(amount)
        for source, charge in node.charged.items():
            if coming is not None and coming.source == source:
                total = total.plus(topping(coming, node, charge))
            elif source in self.layout.pledges:
                total = total.plus(topping(self.pledge(source), node, charge))
        return total

    def _recharge(self, source: str, nodes: Sequence[FleetNode]) -> None:
        """Workloads take the units that are on their node, and leave them there when they go."""
        layout, placed = self.layout, self.layout.pledges.get(source)
        charges, waiting = self._charges.setdefault(source, {}), self._waiting.setdefault(source, {})
        for node in nodes:
            charge = node.charged.get(source)
            _set(charges, node.name, charge)
            _set(waiting, node.name, charge.waiting if charge else None)
            if placed is not None:
                placed.recharge(layout.row[node.name], charge.workloads if charge else 0)
        if placed is None:
            return
        before = placed.seats
        layout.reseat(placed)
        for node in nodes:
            row = layout.row[node.name]
            if node.open and placed.rows[row]:
                left = before.get(row, 0) - placed.seats.get(row, 0)
                layout.move(placed, row, max(0, min(left, placed.missing)))

    # -- pledges

    def admit(self, pledge: Pledge, *, repack: bool = True) -> PledgeRefusal | None:
        """Hold `pledge`, in place of what its source has; None when done, else nothing has changed.

        Asking for less or the same always succeeds.
        """
        if not any(pledge.shape):
            return nothing_promised(pledge)
        old, base = self.layout.pledges.get(pledge.source), self._rebased(pledge)
        seats, cut = dict(old.seats) if old else {}, dict(self._cut(pledge, old, base))
        new = PlacedPledge(pledge, self.layout.mask(pledge.test), self._charged(pledge), seats, cut)
        less = old is not None and old.covers(new)
        if not less and (refusal := self._over_limit(new, old)) is not None:
            return refusal
        before = [] if less else creditors(self.layout, new)
        shut = np.logical_or.reduce([e.rows for e in before], initial=False)  # theirs first: nobody new comes there
        free = self._without(old, base)
        at = {row: n for row, n in old.unused.items() if new.rows[row]} if old else {}
        placement = place(free.copy(order="F"), beside(self.layout.item(new, new.wanting, at), shut))
        if not less and (sum(placement.values()) < new.wanting or self._overdrawn(free, base)):
            refusal = no_room(self.layout, new, new.wanting, free)
            if repack and not self._overdrawn(base, base):
                refusal = self._admit_by_moving(new, base, free, at, shut)
            return owed(self.layout, new, before[0]) if refusal and before else refusal
        self.layout.enter(new, base, placement)
        self._settle(repack=repack)
        return None

    def amend(self, source: str, within_s: float | None) -> None:
        """Whether unused units are lent takes room from nobody, so it needs no admission."""
        placed = self.layout.pledges[source]
        placed.pledge = placed.pledge._replace(within_s=within_s)

    def carry(self, pledge: Pledge, units: Mapping[str, int]) -> None:
        """Take over a pledge made earlier, with its units by node, used ones included.

        What has become impossible of it is put right by the next `update`.
        """
        if not any(pledge.shape):
            return
        by_row = {self.layout.row[name]: n for name, n in units.items() if name in self.layout.row}
        rows, charged = self.layout.mask(pledge.test), self._charged(pledge)
        # A witness does not say which of them are used: all are unused until the next `update` seats the workloads.
        placed = PlacedPledge(pledge, rows, charged, {}, dict(charged))
        self.layout.enter(placed, self._rebased(pledge), {})
        for row in sorted(row for row in by_row if rows[row]):
            self.layout.move(placed, row, min(by_row[row], max(0, placed.missing)))

    def release(self, source: str, *, repack: bool = True) -> Pledge | None:
        """Free what `source` has; None when it had nothing."""
        placed = self.layout.pledges.get(source)
        if placed is None:
            return None
        self.layout.leave(source)
        for name in self._charges.get(source, ()):
            node = self.layout.nodes[name]
            self.layout.put(node, self._occupied(node))
        self._settle(repack=repack)
        return placed.pledge

    def _charged(self, pledge: Pledge) -> Placement:
        charges = self._charges.get(pledge.source, {})
        return {self.layout.row[name]: charge.workloads for name, charge in charges.items()}

    def _cut(self, pledge: Pledge, old: PlacedPledge | None, base: Amounts) -> Placement:
        """Workloads that count as using no unit, as their node has not even room for what runs."""
        if old is not None and pledge.shape.fits(old.pledge.shape):
            return old.cut
        return {row: n for row, n in self._charged(pledge).items() if bool((base[row] < 0).any())}

    def _over_limit(self, new: PlacedPledge, old: PlacedPledge | None) -> PledgeRefusal | None:
        charges, nodes = self._charges.get(new.source, {}), self.layout.nodes
        more = new.beyond(charges, nodes).minus(old.beyond(charges, nodes) if old else NOTHING)
        has, whole = self.reserved(new.pledge.namespace), self.layout.whole
        return over_limit(new, has, more, whole, self.limit_percent)

    def _rebased(self, new: Pledge) -> Amounts:
        """What running workloads leave of each node once `new` is in force."""
        base = self.layout.base.copy(order="F")
        for name in self._charges.get(new.source, ()):
            node = self.layout.nodes[name]
            base[self.layout.row[name]] = left_of(node, self._occupied(node, new))
        return base

    def _without(self, old: PlacedPledge | None, base: Amounts) -> Amounts:
        """What all others leave."""
        free: Amounts = self.layout.free + (base - self.layout.base)
        if old is not None:
            for row, units in old.unused.items():
                free[row] += old.shape * units
        return free

    def _overdrawn(self, amounts: Amounts, base: Amounts) -> bool:
        """Whether units in use ask for more than their node has."""
        return bool(((amounts < 0) & (base < self.layout.base)).any())

    def _admit_by_moving(
        self, new: PlacedPledge, base: Amounts, free: Amounts, at: Placement, shut: Mask
    ) -> PledgeRefusal | None:
        others = [e for e in self.layout.pledges.values() if e.source != new.source]
        new.unused, new.idle = at, sum(at.values())
        wanted = [(new, new.wanting), *((e, min(e.wanting, e.idle)) for e in others)]
        placements, proven = arrange(self.layout, base, wanted, self.budget, shut)
        new.unused, new.idle = {}, 0
        if placements is None:
            return no_room(self.layout, new, new.wanting, free, proven=proven)
        self.layout.enter(new, base, {})
        rearrange(self.layout, {e.source: f for (e, _), f in zip(wanted, placements, strict=True)})
        self._settle(repack=True)
        return None

    def _settle(self, *, repack: bool) -> None:
        row = self.layout.row
        waiting = {
            source: {row[name]: n for name, n in nodes.items()}
            for source, nodes in self._waiting.items()
            if nodes and source in self.layout.pledges
        }
        settle(self.layout, waiting, self.budget, move=repack)


V = TypeVar("V")


def _set(table: dict[str, V], name: str, value: V | None) -> None:
    if value:
        table[name] = value
    else:
        table.pop(name, None)
