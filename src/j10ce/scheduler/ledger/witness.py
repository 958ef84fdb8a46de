"""Where units go: packing of equal units onto nodes.

Rows are nodes in the order of their names, columns are resources. Everything here is deterministic: among rows that
are equally good the first one wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Amounts: TypeAlias = npt.NDArray[np.int64]  # [row, resource]
Vector: TypeAlias = npt.NDArray[np.int64]  # [resource], or [row]
Mask: TypeAlias = npt.NDArray[np.bool_]  # [row]
Placement: TypeAlias = dict[int, int]  # row -> units


class Item(NamedTuple):
    """Equal units that want a place."""

    name: str
    shape: Vector
    units: int
    rows: Mask  # that may take one
    at: Mapping[int, int] = {}  # where they stand, and may stay


def room(free: Amounts, shape: Vector, rows: Mask, most: int) -> Vector:
    """How many units each row takes, `most` at most."""
    counts = np.where(rows, most, 0)
    for n in np.flatnonzero(shape):
        np.minimum(counts, free[:, n] // shape[n], out=counts)
    return np.maximum(counts, 0, out=counts)


def stay(free: Amounts, shape: Vector, at: Mapping[int, int], most: int) -> Placement:
    """Units that can stay where they stand, taken from `free`."""
    placement: Placement = {}
    wanted = np.flatnonzero(shape)
    for row in sorted(at):
        units = min([most, at[row], *(int(free[row, n] // shape[n]) for n in wanted)])
        if units > 0:
            free[row] -= shape * units
            placement[row] = units
            most -= units
    return placement


def place(free: Amounts, item: Item, *, moving: bool = False) -> Placement:
    """As many units as fit, taken from `free`: where they stand unless `moving`, then on the tightest rows.

    The tightest first, since that leaves the large holes to the large units.
    """
    placement = {} if moving else stay(free, item.shape, item.at, item.units)
    left = item.units - sum(placement.values())
    fits = room(free, item.shape, item.rows, left)
    for row in _tightest(free, item.shape, fits) if left else ():
        units = min(left, int(fits[row]))
        free[row] -= item.shape * units
        placement[row] = placement.get(row, 0) + units
        left -= units
        if not left:
            break
    return placement


def _tightest(free: Amounts, shape: Vector, fits: Vector) -> Iterator[int]:
    """Rows with room, by how little of the wanted resources they have left."""
    rows = np.flatnonzero(fits)
    wanted = np.flatnonzero(shape)
    slack = (free[np.ix_(rows, wanted)] / shape[wanted]).sum(axis=1)
    return (int(rows[n]) for n in np.argsort(slack, kind="stable"))


def repack(free: Amounts, items: Sequence[Item], whole: Vector) -> list[Placement] | None:
    """Places for all units of all items, or None. `free` is what there is with none of them placed.

    First-fit decreasing by dominant share of `whole`: once so that units stay where they are if they can, once from
    scratch, once with the pickiest items first. In the order of `items`.
    """
    large = sorted(range(len(items)), key=lambda n: (-_share(items[n].shape, whole), items[n].name))
    picky = sorted(large, key=lambda n: int(items[n].rows.sum()))
    for order, moving in ((large, False), (large, True), (picky, True)):
        if (placements := _pack(free.copy(order="F"), items, order, moving=moving)) is not None:
            return placements
    return None


def _pack(free: Amounts, items: Sequence[Item], order: Sequence[int], *, moving: bool) -> list[Placement] | None:
    placements: list[Placement] = [{} for _ in items]
    for n in order:
        placements[n] = place(free, items[n], moving=moving)
        if sum(placements[n].values()) < items[n].units:
            return None
    return placements


def _share(shape: Vector, whole: Vector) -> float:
    """Of a resource that the fleet lacks, all that is asked for is a whole."""
    return max(float(s) / float(w) if w else float(s > 0) for s, w in zip(shape, whole, strict=True))


def hopeless(free: Amounts, items: Sequence[Item]) -> bool:
    """Certain that no arrangement exists: an item alone does not fit, or all together want more than there is."""
    if any(int(room(free, i.shape, i.rows, i.units).sum()) < i.units for i in items):
        return True
    if not items:
        return False
    anywhere = np.logical_or.reduce([i.rows for i in items])
    there = np.maximum(free[anywhere], 0)
    wanted = [sum(int(i.shape[n]) * i.units for i in items) for n in range(free.shape[1])]
    return any(want > sum(there[:, n].tolist()) for n, want in enumerate(wanted))
