"""Siblings of which some may not use all CPUs: what weights give each of them, and weights that give each its need.

A weight counts on the CPUs that its owner may use, evenly. Of `here` millicores on all CPUs a sibling has
    here · part · weight / Σ weights that it meets on its CPUs,   part = its CPUs / all CPUs
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

from j10ce.control.weights import EXACT, Division, Grid, Member

Cpus = frozenset[int]
Divide = Callable[[Sequence[Member], float, Grid], Division]
# Whoever may run everywhere has more than its share of all where others are confined: less weight may do for it.
LESS: Final = tuple(0.9**n for n in range(1, 60))


class Siblings(NamedTuple):
    here: float  # millicores that they share
    room: Cpus
    cpus: Sequence[Cpus]  # of each

    def divide(self, members: Sequence[Member], on: Grid, by_weight: Divide) -> Division:
        """Weights for the members, the last of which are strangers; the first choice is as if all were everywhere."""
        if self._everywhere:
            return by_weight(members, self.here, on)
        parts = [*(len(own) / len(self.room) for own in self.cpus), *[1.0] * (len(members) - len(self.cpus))]
        confined = [self._confined(m, part) for m, part in zip(members, parts, strict=True)]
        first = by_weight(confined, self.here, on)
        lighter = (_lighter(first, members, part, on) for part in LESS)
        return next((tried for tried in chain([first], lighter) if self._holds(members, tried)), first)

    def times(self, division: Division) -> list[float]:
        """Millicores of each, in their order, without the strangers."""
        shares = division.shares[: len(self.cpus)]
        if not division.total:  # deserted tiers alone weigh nothing
            return [0.0] * len(shares)
        if self._everywhere:
            return [self.here * s / division.total for s in shares]
        strangers = math.fsum(division.shares[len(shares) :])  # may run anywhere
        on: dict[Cpus, float] = {}
        for s, own in zip(shares, self.cpus, strict=True):
            on[own] = on.get(own, 0.0) + s
        cells = _cells(self.room, on)
        each = self.here / len(self.room)
        met = {cell: math.fsum(w / len(own) for own, w in on.items() if cell <= own) for cell in cells}
        met = {cell: density + strangers / len(self.room) for cell, density in met.items()}
        per_share = {
            own: math.fsum(each * len(cell) / len(own) / met[cell] for cell in cells if cell <= own and met[cell])
            for own in on
        }
        return [s * per_share[own] for s, own in zip(shares, self.cpus, strict=True)]

    @property
    def _everywhere(self) -> bool:
        return all(own == self.room for own in self.cpus)

    def _holds(self, members: Sequence[Member], division: Division) -> bool:
        return all(t >= m.floor * EXACT for t, m in zip(self.times(division), members, strict=False))

    def _confined(self, m: Member, part: float) -> Member:
        """What it must have of all CPUs, among siblings that are everywhere, to have its need on that part of them."""
        if part == 1.0 or not (m.floor or m.counted):
            return m

        def of_all(need: float) -> float:
            left = self.here - need * (1 / part - 1)
            return need * self.here / left if left > 0 else math.inf

        return m._replace(floor=of_all(m.floor), counted=of_all(m.counted))


def _lighter(division: Division, members: Sequence[Member], part: float, on: Grid) -> Division:
    """With what is ours to weigh at a part of its weight."""
    shares = tuple(on.near(s * part) if m.free else s for s, m in zip(division.shares, members, strict=True))
    return division._replace(shares=shares, total=math.fsum(shares), holds=True)


def _cells(room: Cpus, sets: Iterable[Cpus]) -> list[Cpus]:
    """The coarsest parts of the CPUs that none of the sets divides."""
    found: dict[tuple[bool, ...], set[int]] = {}
    for cpu in room:
        found.setdefault(tuple(cpu in own for own in sets), set()).add(cpu)
    return [frozenset(cell) for cell in found.values()]
