"""A solver that knows better: whether units fit at all, by integer programming."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import highspy
import numpy as np

from j10ce.scheduler.ledger.fleet import Fleet
from j10ce.scheduler.ledger.pledge import Pledge


class Ask(NamedTuple):
    shape: Sequence[int]
    units: int
    rows: Sequence[int]  # that may take a unit


def feasible(free: Sequence[Sequence[int]], asks: Sequence[Ask]) -> bool:
    """Whether every unit of every ask has a place next to all others."""
    solver = highspy.Highs()
    solver.silent()
    columns = {
        (n, row): solver.addIntegral(lb=0, ub=ask.units) for n, ask in enumerate(asks) for row in sorted(set(ask.rows))
    }
    for n, ask in enumerate(asks):
        mine = [columns[n, row] for row in sorted(set(ask.rows))]
        if not mine and ask.units:
            return False
        if mine:
            solver.addConstr(sum(mine) == ask.units)
    for row, there in enumerate(free):
        for r, amount in enumerate(there):
            used = [
                columns[n, row] * ask.shape[r] for n, ask in enumerate(asks) if (n, row) in columns and ask.shape[r]
            ]
            if used:
                solver.addConstr(sum(used) <= max(0, amount))
    solver.minimize(sum(columns.values()) * 0 if columns else None)
    return bool(solver.getModelStatus() == highspy.HighsModelStatus.kOptimal) if columns else True


def fits_all(fleet: Fleet, coming: Pledge | None = None) -> bool:
    """Whether all units of a fleet, and of one pledge more, have a place; units on closed nodes may stay there."""
    layout = fleet.layout
    free = layout.base.tolist()
    asks = []
    for placed in layout.pledges.values():
        if coming is None or placed.source != coming.source:
            pinned = {row: n for row, n in placed.unused.items() if not layout.open[row]}
            for row, units in pinned.items():
                free[row] = [f - s * units for f, s in zip(free[row], placed.pledge.shape, strict=True)]
            rows = np.flatnonzero(placed.rows & layout.open).tolist()
            asks.append(Ask(placed.pledge.shape, placed.wanting - sum(pinned.values()), rows))
    if coming is not None:
        rows = np.flatnonzero(layout.mask(coming.test) & layout.open).tolist()
        asks.append(Ask(coming.shape, coming.units, rows))
    return feasible(free, asks)
