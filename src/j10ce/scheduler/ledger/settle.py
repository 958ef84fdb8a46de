"""How a witness follows what happens: nodes shrink, vanish and come back, workloads arrive where they like.

Every step changes as little as it can, and goes through pledges by seniority and through rows by name, so that equal
fleets end up equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from j10ce.model.resource import Resources
from j10ce.scheduler.ledger.exact import search
from j10ce.scheduler.ledger.layout import MOST, FleetLayout, PlacedPledge, vector
from j10ce.scheduler.ledger.witness import Amounts, Item, Mask, Placement, Vector, hopeless, place, repack, stay


def settle(layout: FleetLayout, waiting: dict[str, Placement], budget: int, *, move: bool = True) -> None:
    """Give every unit a place, or as many as can have one: the senior pledges first.

    `waiting` are workloads without a floor, by source and row. Without `move` nothing moves that may stay.
    """
    _cut(layout)
    _evict(layout)
    _trim(layout)
    short = [e for e in layout.pledges.values() if e.missing > 0]
    for placed in short:
        layout.fill(placed)
    if any(e.missing > 0 for e in short) and not (move and _repack_all(layout, budget)):
        _displace(layout)
    _leave_closed(layout)
    brought = [_bring(layout, layout.pledges[source], rows) for source, rows in sorted(waiting.items()) if rows]
    if any(brought) and any(e.missing > 0 for e in layout.pledges.values()):
        _displace(layout)  # where a unit left, someone may find room


def _cut(layout: FleetLayout) -> None:
    """On a node that is too small for its workloads, units of the junior pledges do not count as used."""
    cuts: dict[str, Placement] = {}
    for row in np.flatnonzero((layout.base < 0).any(axis=1)).tolist():
        lack, charged = -layout.base[row], layout.nodes[layout.names[row]].charged
        for placed in reversed(layout.pledges.values()):
            if (charge := charged.get(placed.source)) is not None and charge.workloads:
                units = Resources._make(n * charge.workloads * bool(placed.rows[row]) for n in placed.pledge.shape)
                there = np.maximum(vector(units, MOST), vector(charge.amount, MOST))
                each = -(-there // charge.workloads)  # as a rule a unit; more where an earlier generation is obeyed
                if count := min(charge.workloads, _enough(lack, each)):
                    cuts.setdefault(placed.source, {})[row] = count
                    lack = lack - np.minimum(there, each * count)
    for source, placed in layout.pledges.items():
        if (cut := cuts.get(source, {})) != placed.cut:
            placed.cut = cut
            layout.reseat(placed)


def _enough(lack: Vector, shape: Vector) -> int:
    """How many units make up for what lacks, as far as this shape can."""
    return max((-(-int(lack[n]) // int(shape[n])) for n in np.flatnonzero((lack > 0) & (shape > 0))), default=0)


def _evict(layout: FleetLayout) -> None:
    """Where there is less than promised, unused units of the junior pledges go first."""
    for row in np.flatnonzero((layout.free < 0).any(axis=1)):
        _make_room(layout, int(row), np.zeros_like(layout.free[row]), list(layout.pledges.values()))


def _make_room(layout: FleetLayout, row: int, wanted: Vector, among: list[PlacedPledge]) -> None:
    """Take unused units off a row until `wanted` fits, the junior ones first."""
    for placed in reversed(among):
        units = min(placed.unused.get(row, 0), _enough(wanted - layout.free[row], placed.shape))
        layout.move(placed, row, -units)


def _trim(layout: FleetLayout) -> None:
    """Drop units that became one too many, as a workload took a unit on another node: first where none can be used."""
    for placed in layout.pledges.values():
        surplus = -placed.missing
        for row in sorted(placed.unused, key=lambda r: (bool(layout.open[r]), -r)) if surplus > 0 else ():
            units = min(surplus, placed.unused[row])
            layout.move(placed, row, -units)
            surplus -= units


def beside(item: Item, shut: Mask) -> Item:
    """The same, and no unit comes to rows that are shut; those that stand there may stay."""
    return item._replace(rows=item.rows & ~shut)


def arrange(
    layout: FleetLayout,
    base: Amounts,
    wanted: Sequence[tuple[PlacedPledge, int]],
    budget: int,
    shut: Mask | None = None,
) -> tuple[list[Placement] | None, bool]:
    """Places for so many units of each pledge; without them, whether it is certain that there are none.

    Units on closed rows stay there: nobody else could use the place. No unit comes to rows that are `shut`.
    """
    free = base.copy(order="F")
    kept, items = [], []
    for placed, units in wanted:
        closed = {r: n for r, n in placed.unused.items() if not layout.open[r]}
        kept.append(stay(free, placed.shape, closed, units))
        opened = {r: n for r, n in placed.unused.items() if layout.open[r]}
        item = layout.item(placed, units - sum(kept[-1].values()), opened)
        items.append(item if shut is None else beside(item, shut))
    if hopeless(free, items):
        return None, True
    placements, proven = repack(free, items, vector(layout.whole)), False
    if placements is None:
        placements, proven, _ = search(free, items, budget)
    return [{**k, **f} for k, f in zip(kept, placements, strict=True)] if placements else None, proven


def _repack_all(layout: FleetLayout, budget: int) -> bool:
    placements, _ = arrange(layout, layout.base, [(e, e.wanting) for e in layout.pledges.values()], budget)
    if placements is None:
        return False
    rearrange(layout, dict(zip(layout.pledges, placements, strict=True)))
    return True


def rearrange(layout: FleetLayout, placements: Mapping[str, Placement]) -> None:
    for source, placement in placements.items():
        placed = layout.pledges[source]
        for row in {**placed.unused, **placement}:
            layout.move(placed, row, placement.get(row, 0) - placed.unused.get(row, 0))


def _displace(layout: FleetLayout) -> None:
    """There is not enough for all: whoever comes first takes the places of those who came later."""
    every = list(layout.pledges.values())
    later = np.zeros_like(layout.free)  # what the unused units of later pledges hold
    for placed in every:
        _count(later, placed, 1)
    for n, placed in enumerate(every):
        _count(later, placed, -1)
        layout.fill(placed)
        if placed.missing <= 0:
            continue
        for row, units in place(layout.free + later, layout.item(placed, placed.missing, {})).items():
            before = layout.free[row].copy()
            _make_room(layout, row, placed.shape * units, every[n + 1 :])
            later[row] -= layout.free[row] - before
            layout.move(placed, row, units)


def _count(amounts: Amounts, placed: PlacedPledge, sign: int) -> None:
    for row, units in placed.unused.items():
        amounts[row] += placed.shape * (units * sign)


def _leave_closed(layout: FleetLayout) -> None:
    """A unit on a cordoned node is safe and useless: it goes as soon as there is a place elsewhere."""
    if bool(layout.open.all()):
        return
    for placed in layout.pledges.values():
        for row in [r for r in sorted(placed.unused) if not layout.open[r]]:
            elsewhere = place(layout.free.copy(order="F"), layout.item(placed, placed.unused[row], {}))
            for to, units in elsewhere.items():
                layout.move(placed, row, -units)
                layout.move(placed, to, units)


def _bring(layout: FleetLayout, placed: PlacedPledge, waiting: Placement) -> bool:
    """Units that wait elsewhere come to workloads that lack one, and others make room if they can."""
    brought = False
    for row in sorted(waiting):
        while placed.unused.get(row, 0) < waiting[row] and layout.open[row] and placed.rows[row]:
            donors = [r for r in sorted(placed.unused) if placed.unused[r] > waiting.get(r, 0)]
            if not donors or not _swap(layout, placed, donors[-1], row):
                break
            brought = True
    return brought


def _swap(layout: FleetLayout, placed: PlacedPledge, donor: int, row: int) -> bool:
    """Move one unit, and on its new row others out of its way; all or nothing."""
    others = [e for e in layout.pledges.values() if e is not placed and row in e.unused]
    before = {e: dict(e.unused) for e in (placed, *others)}
    layout.move(placed, donor, -1)
    if make_way(layout, row, placed.shape, others):
        layout.move(placed, row, 1)
        return True
    rearrange(layout, {e.source: unused for e, unused in before.items()})
    return False


def make_way(layout: FleetLayout, row: int, wanted: Vector, others: list[PlacedPledge]) -> bool:
    """Move units of others from a row until `wanted` fits; whether all of them found another place."""
    short = {e: e.missing for e in others}
    _make_room(layout, row, wanted, others)
    for placed in others:
        layout.fill(placed, but=row)
    fits = bool(((wanted <= layout.free[row]) | (wanted == 0)).all())
    return fits and all(placed.missing <= short[placed] for placed in others)
