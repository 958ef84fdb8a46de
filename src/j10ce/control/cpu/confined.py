"""Siblings of which some may not use all CPUs: what weights give each of them, and the least that give each its need.

Everyone's time grows with its own weight and shrinks with those of others. So if all start too light, and whoever has
too little is raised to what it needs beside the others, again and again, they end at the least weights that any
solution has; whoever stays as it is has its need then, or in no solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from j10ce.control.cpu.field import Cpus, Field
from j10ce.control.cpu.weights import EXACT, LEAST_LEFT, SHRINK, STEPS, Division, Grid, Member
from j10ce.control.law import step_up

Divide = Callable[[Sequence[Member], float, Grid], Division]
Floats = Sequence[float]
ROUNDS: Final = 100  # of raising everybody: whoever has not enough by then will hardly ever have
HALVINGS: Final = 6  # to find by how much needs are cut that do not fit


class ConfinedSiblings(NamedTuple):
    here: float  # millicores that they share
    room: Cpus
    cpus: Sequence[Cpus]  # of each

    def divide(
        self, members: Sequence[Member], on: Grid, by_weight: Divide, beside: float = 0.0, headroom: float = 0.0
    ) -> Division:
        """Weights for the members, the last of which are strangers. `beside` and `headroom` as in `weights.divide`."""
        if self._everywhere or not any(m.floor or m.counted for m in members):
            return by_weight(members, self.here, on)
        sets = [*self.cpus, *[self.room] * (len(members) - len(self.cpus))]
        weights = _Contest(Field(self.here, self.room, sets), members, on).least(beside, headroom)
        total = math.fsum(weights)
        times = self.times(Division(tuple(weights), total, 0.0, True))
        holds = all(t >= m.floor * EXACT for t, m in zip(times, members, strict=False))
        return Division(tuple(weights), total, 0.0, holds)

    def times(self, division: Division) -> list[float]:
        """Millicores of each, in their order, without the strangers."""
        shares = division.shares[: len(self.cpus)]
        if not division.total:  # deserted tiers alone weigh nothing
            return [0.0] * len(shares)
        if self._everywhere:
            return [self.here * s / division.total for s in shares]
        strangers = math.fsum(division.shares[len(shares) :])  # may run anywhere
        field = Field(self.here, self.room, [*self.cpus, self.room])
        met = field.met([*shares, strangers])
        return [field.time(n, share, met) for n, share in enumerate(shares)]

    @property
    def _everywhere(self) -> bool:
        return all(own == self.room for own in self.cpus)


class _Contest(NamedTuple):
    field: Field
    members: Sequence[Member]
    on: Grid

    def least(self, beside: float, headroom: float) -> list[float]:
        most = self._most()
        kept = [m.floor if m.floor <= t else 0.0 for m, t in zip(self.members, most, strict=True)]
        # One of ours with too few CPUs for its floor has almost all of them, as long as that costs no other floor.
        almost = [
            (k or t * (1 - LEAST_LEFT)) if m.floor and (m.free or m.raised) else k
            for k, m, t in zip(kept, self.members, most, strict=True)
        ]
        for floors in (almost, kept) if almost != kept else (kept,):
            if self._risen(0.0, floors, floors, 0.0, self.on.up) is None:
                continue
            for needs, bounds, others in self._attempts(floors, most, beside, headroom):
                if (weights := self._lightest(needs, bounds, others)) is not None:
                    return weights
        return self._cut(kept)

    def _most(self) -> list[float]:
        """What each would have if it were as heavy as can be and all others as light."""
        light = self._light(0.0)
        met = self.field.met(light)
        return [self._at_best(n, m, light[n], met) for n, m in enumerate(self.members)]

    def _at_best(self, n: int, m: Member, light: float, met: Floats) -> float:
        heavy = self.on.high if m.free or m.raised else m.base
        beside = [*met]
        self.field.add(n, heavy - light, beside)
        return self.field.time(n, heavy, beside)

    def _light(self, by: float) -> list[float]:
        """Everyone as if it needed nothing, with the bases of what is ours at a part of their size."""
        return [self.on.near(by * (m.base or m.also)) if m.free else m.base for m in self.members]

    def _attempts(
        self, floors: Floats, most: Floats, beside: float, headroom: float
    ) -> Iterator[tuple[Floats, Floats, float]]:
        """What raises, what all must have, and what else is met: from all that would be good down to floors alone."""
        rows = list(zip(self.members, floors, most, strict=True))
        counted = [max(f, m.counted if m.counted <= t else 0.0) for m, f, t in rows]
        eased = [(f + m.ease if f == m.floor else f) * (1 + headroom) for m, f, _ in rows]
        unmet = max(0.0, beside - math.fsum(m.base for m in self.members if not m.free))
        for bounds in (counted, floors):
            yield eased, [bound * (1 + headroom) for bound in bounds], unmet
            yield floors, bounds, 0.0

    def _lightest(self, needs: Floats, bounds: Floats, others: float) -> list[float] | None:
        """With bases as large as can be; a little above the least, so that it lasts."""
        if self._risen(0.0, needs, bounds, others, self.on.up) is None:
            return None  # nor would it with larger bases
        for by in SHRINK:
            for up in (lambda shares: self.on.up(step_up(shares, STEPS)), self.on.up):
                if (risen := self._risen(by, needs, bounds, others, up)) is not None:
                    return risen
        return None

    def _risen(
        self, by: float, needs: Floats, bounds: Floats, others: float, up: Callable[[float], float]
    ) -> list[float] | None:
        ours = [n for n, m in enumerate(self.members) if needs[n] and (m.free or m.raised)]
        if not self.field.room_for(needs):
            return None
        # What it weighs for those inside who are promised nothing is met like a stranger's weight on the same CPUs.
        also = {n: by * self.members[n].also for n in ours}
        shares = [0.0 if also.get(n) else share for n, share in enumerate(self._light(by))]
        met = self.field.met([share + also.get(n, 0.0) for n, share in enumerate(shares)], others / self.field.cpus)
        for _ in range(ROUNDS):
            short = [n for n in ours if self.field.time(n, shares[n], met) < needs[n] * EXACT]
            for n in short:
                more = self.field.closer(n, needs[n], shares[n], met) + also[n]
                if more > self.on.high:
                    return None
                shares[n], was = max(shares[n], up(more) - also[n]), shares[n]
                self.field.add(n, shares[n] - was, met)
            if not short:
                every = range(len(shares))
                kept = all(self.field.time(n, shares[n], met) >= bounds[n] * EXACT for n in every)
                return [share + also.get(n, 0.0) for n, share in enumerate(shares)] if kept else None
        return None

    def _cut(self, floors: Floats) -> list[float]:
        """Not all can be kept: all are cut alike, by as little as will do."""
        best, low, high = self._light(0.0), 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            cut = [floor * middle for floor in floors]
            tried = self._risen(0.0, cut, cut, 0.0, self.on.up)
            if tried is None:
                high = middle
            else:
                best, low = tried, middle
        return best
