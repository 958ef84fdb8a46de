"""The present state of a fleet's ledger: nodes as rows of arrays, pledges with their places, and the moves between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import sub
from typing import Final

import numpy as np

from j10ce.model.resource import NOTHING, RESOURCES, Resources
from j10ce.policy.select import Test
from j10ce.scheduler.cluster import MOST as MOST
from j10ce.scheduler.ledger.pledge import Charge, FleetNode, Pledge
from j10ce.scheduler.ledger.witness import Amounts, Item, Mask, Placement, Vector, place

LARGEST: Final = 2**63 - 1


class PlacedPledge:
    """One pledge: where its workloads run, which of them sit on its units, and where the unused units are; by row."""

    def __init__(self, pledge: Pledge, rows: Mask, charged: Placement, seats: Placement, cut: Placement) -> None:
        self.pledge = pledge
        self.shape = vector(pledge.shape)
        self.rows = rows  # whose labels pass
        self.charged = charged  # workloads that it pays for
        self.cut = cut  # of those, which their node is too small for
        self.seats = seats  # of the others, which use a unit
        self.unused: Placement = {}
        self.used = self.idle = 0  # units on seats, and unused ones with a place
        self._topped: Resources | None = None  # by all its workloads; a fleet asks far more often than they change
        self.seat()

    @property
    def source(self) -> str:
        return self.pledge.source

    @property
    def wanting(self) -> int:
        """Units that nobody uses."""
        return self.pledge.units - self.used

    @property
    def missing(self) -> int:
        """Units without a place; below zero: so many have two."""
        return self.wanting - self.idle

    def seat(self) -> None:
        """Give units to workloads: first to those who have one or run where one is, then in the order of nodes.

        Only where labels pass: elsewhere workloads lose their floor as soon as the node hears of this pledge, and a
        unit that they sat on would be without a place.
        """
        left = self.pledge.units
        seats: Placement = {}
        passing = (row for row in sorted(self.charged) if self.rows[row])
        there = {row: n for row in passing if (n := self.charged[row] - self.cut.get(row, 0)) > 0}
        for first in (True, False):
            for row, n in there.items():
                near = min(n, self.seats.get(row, 0) + self.unused.get(row, 0))
                more = min(left, near if first else n - seats.get(row, 0))
                if more > 0:
                    seats[row] = seats.get(row, 0) + more
                    left -= more
        self.seats, self.used = seats, self.pledge.units - left

    def reindex(self, rows: Mask, to: Mapping[int, int]) -> None:
        """The rows have other numbers; what stood on those that are no more is gone."""
        self.rows = rows
        self.charged, self.cut, self.seats, self.unused = (
            {to[row]: n for row, n in units.items() if row in to}
            for units in (self.charged, self.cut, self.seats, self.unused)
        )
        self.used, self.idle = sum(self.seats.values()), sum(self.unused.values())

    def covers(self, other: PlacedPledge) -> bool:
        """Whether `other` asks for no more of anything, anywhere."""
        fewer = other.pledge.units <= self.pledge.units and bool((other.shape <= self.shape).all())
        return fewer and not bool((self.rows & ~other.rows).any())

    def beyond(self, charges: Mapping[str, Charge], nodes: Mapping[str, FleetNode]) -> Resources:
        """What it reserves beyond what its workloads have claimed; both by name of the node."""
        if self._topped is None:
            self._topped = NOTHING
            for name, charge in charges.items():
                self._topped = self._topped.plus(topping(self.pledge, nodes[name], charge))
        return _times(self.pledge.shape, self.wanting).plus(self._topped)

    def recharge(self, row: int, workloads: int) -> None:
        """It pays for so many workloads there, whatever they have claimed."""
        self.charged[row], self._topped = workloads, None

    def relabel(self, row: int, passes: bool) -> None:
        """The node there has other labels."""
        self.rows[row], self._topped = passes, None


def topping(pledge: Pledge, node: FleetNode, charge: Charge) -> Resources:
    """What workloads on units are short of their shape: it stays reserved for them."""
    if not pledge.selects(node.labels):
        return NOTHING  # they sit on none
    return _times(pledge.shape, min(charge.workloads, pledge.units)).minus(charge.amount)


def _times(amount: Resources, units: int) -> Resources:
    return Resources._make(map(units.__mul__, amount))


def vector(amount: Resources, most: int = LARGEST) -> Vector:
    return np.array([min(n, most) for n in amount], np.int64)


def left_of(node: FleetNode, occupied: Resources) -> Vector:
    return vector(node.capacity, MOST) - vector(occupied, MOST)


class FleetLayout:
    """`base` is what running workloads leave of each node, `free` what unused units leave of that.

    Below zero: more is promised there than the node has.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, FleetNode] = {}
        self.names: list[str] = []
        self.row: dict[str, int] = {}
        self.base: Amounts = _table(0)
        self.free: Amounts = _table(0)
        self.open: Mask = np.zeros(0, np.bool_)
        self.whole = NOTHING  # of all nodes together
        self.pledges: dict[str, PlacedPledge] = {}  # the senior ones first
        self.changed: set[str] = set()  # pledges whose standing may have changed

    # -- nodes

    def index(self, names: Iterable[str]) -> None:
        """Have rows for exactly these nodes; a row that comes is empty, one that goes takes all along."""
        before, old = self.row, (self.base, self.free, self.open)
        self.names = sorted(names)
        self.row = {name: n for n, name in enumerate(self.names)}
        to = {before[name]: n for name, n in self.row.items() if name in before}
        self.base, self.free = _table(len(self.names)), _table(len(self.names))
        self.open = np.zeros(len(self.names), np.bool_)
        for new, kept in zip((self.base, self.free, self.open), old, strict=True):
            new[list(to.values())] = kept[list(to)]
        for placed in self.pledges.values():
            mask = np.zeros(len(self.names), np.bool_)
            mask[list(to.values())] = placed.rows[list(to)]
            placed.reindex(mask, to)

    def put(self, node: FleetNode, occupied: Resources) -> None:
        """The node as it is, and what its workloads take."""
        row = self.row[node.name]
        before = self.nodes[node.name].capacity if node.name in self.nodes else NOTHING
        self.whole = Resources._make(map(sub, self.whole.plus(node.capacity), before))
        self.nodes[node.name] = node
        self.open[row] = node.open
        base = left_of(node, occupied)
        self.free[row] += base - self.base[row]
        self.base[row] = base

    def mask(self, test: Test | None) -> Mask:
        """Rows whose labels pass."""
        if test is None:
            return np.ones(len(self.names), np.bool_)
        return np.array([test(self.nodes[name].labels) for name in self.names], np.bool_)

    # -- pledges

    def enter(self, placed: PlacedPledge, base: Amounts, unused: Placement) -> None:
        """Put a pledge in place of its predecessor."""
        self.leave(placed.source)
        self.free += base - self.base
        self.base = base
        self.pledges[placed.source] = placed
        self.pledges = dict(sorted(self.pledges.items(), key=lambda e: e[1].pledge.seniority))
        for row, units in unused.items():
            self.move(placed, row, units)
        self.changed.add(placed.source)

    def leave(self, source: str) -> None:
        if (placed := self.pledges.pop(source, None)) is not None:
            for row, units in list(placed.unused.items()):
                self.move(placed, row, -units)

    def move(self, placed: PlacedPledge, row: int, units: int) -> None:
        """Unused units come to a row, or leave it."""
        if not units:
            return
        left = placed.unused.get(row, 0) + units
        if left:
            placed.unused[row] = left
        else:
            del placed.unused[row]
        placed.idle += units
        self.free[row] -= placed.shape * units
        self.changed.add(placed.source)

    def reseat(self, placed: PlacedPledge) -> None:
        """Give units to workloads again; who gets one takes it from where it runs, if it is there."""
        before = placed.seats
        placed.seat()
        for row, seats in placed.seats.items():
            taken = seats - before.get(row, 0)
            self.move(placed, row, -max(0, min(taken, placed.unused.get(row, 0))))
        self.changed.add(placed.source)

    def relabel(self, placed: PlacedPledge, row: int, passes: bool) -> None:
        """Units may be on this row, or not any more: then they leave it, used or not."""
        if passes != bool(placed.rows[row]):
            placed.relabel(row, passes)
            self.reseat(placed)
        if not passes:
            self.move(placed, row, -placed.unused.get(row, 0))

    def item(self, placed: PlacedPledge, units: int, at: Mapping[int, int]) -> Item:
        return Item(placed.source, placed.shape, units, placed.rows & self.open, at)

    def fill(self, placed: PlacedPledge, but: int | None = None) -> None:
        """Places for the units that miss one, without moving anyone; as many as there are, `but` on one row."""
        if placed.missing <= 0:
            return
        item = self.item(placed, placed.missing, {})
        if but is not None:
            item.rows[but] = False
        for row, units in place(self.free.copy(order="F"), item).items():
            self.move(placed, row, units)


def _table(rows: int) -> Amounts:
    """By column in memory: packing goes through one resource of all nodes at a time."""
    return np.zeros((rows, len(RESOURCES)), np.int64, order="F")
