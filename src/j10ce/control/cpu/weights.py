"""The least weights that keep promises among siblings, when all of them want the CPU at once. See docs/adr/0004.

    `rate` shares stand for one millicore.  Who is ours, or may be raised, weighs  max(base, also + need · rate),
    everyone else what it has.  Every rate with  Σ weights ≤ rate · capacity  keeps all needs of the former, because
    weight · capacity / Σ weights ≥ weight / rate ≥ need;  a sibling that stays as it is has its need as long as
    rate ≤ weight / need.

Weights and their sum rise with the rate, so the least rate gives the least weights: no other choice leaves more to the
others, and where it breaks the need of one that stays as it is, every choice does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from j10ce.control.law import clamp, step_up
from j10ce.model.knob import KNOBS, MOST_WEIGHT, Support, shares_of, weight_of

LEAST_LEFT: Final = 0.05  # where the needs exceed the capacity, each is cut in proportion, and this much is left
# Bases give way to needs: they shrink in these steps where they stand in the way of one.
SHRINK: Final = (*(4.0**-n for n in range(9)), 0.0)
HEADROOM: Final = 0.01  # more than is needed, where it fits: the scheduler is not exact, and weights are rounded
STEPS: Final = 16  # rates are rounded up to so many steps per doubling, so that small changes move no weight
KEPT_STEPS: Final = 3  # and a rate is kept until the least one is that many steps below
NATIVE: Final = 1.024  # shares per millicore by Kubernetes' rule; where nobody competes any rate will do
EXACT: Final = 1 - 1e-9


class Member(NamedTuple):
    """One sibling. `free`: its weight is ours to choose, and `base` divides what is left; else it weighs `base`."""

    base: float
    floor: float = 0.0  # millicores that it must have for what is promised inside
    free: bool = False
    raised: bool = False  # not free, but may be raised to what its floor needs
    counted: float = 0.0  # millicores that it must have for requests, too; they hold others down and raise nobody
    ease: float = 0.0  # millicores on top of the floor that make the weights inside moderate
    also: float = 0.0  # shares on top of what its floor needs, for those inside who are promised nothing


class Division(NamedTuple):
    """Weights in the order of the members. `total` counts everyone; `holds` False: not all floors are kept."""

    shares: tuple[float, ...]
    total: float
    rate: float
    holds: bool


class Grid(NamedTuple):
    """The weights that the kernel can hold: single shares on cgroup v1, a hundredth of 1024 elsewhere."""

    low: float
    high: float
    fine: bool

    def up(self, shares: float) -> float:
        if shares >= self.high:
            return self.high
        if self.fine:
            return max(self.low, float(math.ceil(shares)))
        rounded = shares_of(weight_of(shares))
        return rounded if rounded >= shares else shares_of(weight_of(shares) + 1)

    def near(self, shares: float) -> float:
        whole = float(round(shares)) if self.fine else shares_of(weight_of(shares))
        return clamp(whole, self.low, self.high)


FINE: Final = Grid(float(KNOBS["cpu.weight"].low), float(KNOBS["cpu.weight"].high), fine=True)
COARSE: Final = Grid(shares_of(1), shares_of(MOST_WEIGHT), fine=False)


def grid(support: Mapping[str, Support]) -> Grid:
    weight = support.get("cpu.weight")
    return FINE if weight is not None and weight.via == "cgroup1" else COARSE


def divide(
    members: Sequence[Member],
    capacity: float,
    on: Grid,
    *,
    held: float = 0.0,
    beside: float = 0.0,
    headroom: float = HEADROOM,
) -> Division:
    """Weights for one set of siblings that share `capacity` millicores.

    `held` is the rate of the last time. `beside`: weigh as if the others weighed at least this much, where that fits.
    """
    if not any(m.floor or m.counted for m in members):
        shares = tuple(on.near(max(m.base, m.also)) if m.free else m.base for m in members)
        return Division(shares, math.fsum(shares), 0.0, True)
    for contest in _contests(members, capacity, on, beside, headroom):
        for by in SHRINK:
            if division := contest.shrunk(by).least(held):
                return division._replace(holds=_floors_hold(members, division, capacity))
    return _cut(members, capacity, on)


def _contests(
    members: Sequence[Member], capacity: float, on: Grid, beside: float, headroom: float
) -> Iterator[_Contest]:
    """What all should have, from all that would be good down to the floors alone."""
    least = math.fsum(on.low if m.free else m.base for m in members)

    def possible(m: Member, need: float) -> bool:
        return m.base * capacity >= need * least * EXACT

    # Each by itself: a request that nothing can keep takes no floor beside it along.
    floors = [m.floor if m.free or m.raised or possible(m, m.floor) else 0.0 for m in members]
    counted = [max(f, m.counted if possible(m, m.counted) else 0.0) for f, m in zip(floors, members, strict=True)]
    eased = [(m.floor + m.ease) * (1 + headroom) for m in members]
    for bounds in (counted, floors):
        roomy = [bound * (1 + headroom) for bound in bounds]  # inside them weights are rounded, too
        yield _Contest(members, eased, roomy, capacity, on, beside)
        yield _Contest(members, eased, bounds, capacity, on, beside)
        yield _Contest(members, [m.floor * (1 + headroom) for m in members], bounds, capacity, on, 0.0)
        yield _Contest(members, [m.floor for m in members], bounds, capacity, on, 0.0)


def _floors_hold(members: Sequence[Member], d: Division, capacity: float) -> bool:
    return all(s * capacity >= m.floor * d.total * EXACT for s, m in zip(d.shares, members, strict=True))


def _cut(members: Sequence[Member], capacity: float, on: Grid) -> Division:
    """Not all can be kept: those that could be kept alone are cut alike, the others have what is left."""
    promised = math.fsum(m.floor for m in members if m.free or m.raised)
    by = min(1.0, capacity * (1 - LEAST_LEFT) / promised) if promised else 1.0
    needs = [m.floor * by for m in members]
    least = math.fsum(on.low if m.free else m.base for m in members)
    possible = [m.free or m.raised or m.base * capacity >= m.floor * by * least for m in members]
    bounds = [need if ok else 0.0 for need, ok in zip(needs, possible, strict=True)]
    contest = _Contest(members, needs, bounds, capacity, on, 0.0)
    least_of_all = contest.shrunk(0.0)
    return least_of_all.at(min(least_of_all.rate(), least_of_all.most()))._replace(holds=False)


class _Contest(NamedTuple):
    """One set of siblings. `needs` raise those that may be raised, `bounds` are what the others must be left."""

    members: Sequence[Member]
    needs: Sequence[float]
    bounds: Sequence[float]
    capacity: float
    on: Grid
    beside: float
    bases: Sequence[float] = ()  # what each weighs at least
    also: Sequence[float] = ()  # and on top of its need

    def shrunk(self, by: float) -> _Contest:
        """The same with the bases of what is ours at a part of their size."""
        near = self.on.near
        bases = [near(by * (m.base or m.also)) if m.free else m.base for m in self.members]
        return self._replace(bases=bases, also=[by * m.also for m in self.members])

    def least(self, held: float) -> Division | None:
        """At the least rate, a little above it so that it lasts, or None where some need cannot be kept."""
        rate, most = self.rate(), self.most()
        if rate > most:
            return None
        lasting = [held] if rate <= held <= rate * 2 ** (KEPT_STEPS / STEPS) else []
        for candidate in (*lasting, step_up(rate, STEPS)):
            if candidate <= most and self.holds(division := self.at(candidate)):
                return division
        exact = self._settled(rate)
        if self.holds(exact):
            return exact
        return division if most < math.inf and self.holds(division := self.at(most)) else None

    def rate(self) -> float:
        """The least one at which the capacity pays for all weights, before what needs add is rounded."""
        rising: list[tuple[float, float, float, float]] = []
        ours = others = slope = 0.0
        for m, need, base, also in zip(self.members, self.needs, self.bases, self.also, strict=True):
            if m.free:
                ours += base
            else:
                others += base
            if need and (m.free or m.raised):
                rising.append((max(0.0, base - also) / need, base, also, need))
        weight = ours + max(others, self.beside)
        rate = _ratio(weight, self.capacity)
        for threshold, base, also, need in sorted(rising):  # from here on its need weighs more than its base
            if rate < threshold:
                break
            weight, slope = weight - base + also, slope + need
            rate = _ratio(weight, self.capacity - slope)
        return rate or NATIVE

    def most(self) -> float:
        """The highest rate that the kernel's range can express and that leaves the others their bounds."""
        rate = math.inf
        for m, need, bound, also in zip(self.members, self.needs, self.bounds, self.also, strict=True):
            if need and (m.free or m.raised):
                rate = min(rate, (self.on.high - also) / need)
            if bound > (need if m.raised else 0.0) and not m.free:
                rate = min(rate, m.base / bound)
        return rate

    def at(self, rate: float) -> Division:
        up, rows = self.on.up, zip(self.members, self.needs, self.bases, self.also, strict=True)
        shares = tuple(
            [
                max(base, up(also + need * rate)) if need and (m.free or m.raised) else base
                for m, need, base, also in rows
            ]
        )
        return Division(shares, math.fsum(shares), rate, True)

    def holds(self, d: Division) -> bool:
        for m, share, need, bound in zip(self.members, d.shares, self.needs, self.bounds, strict=True):
            wanted = need if m.free else max(need, bound) if m.raised else bound
            if share * self.capacity < wanted * d.total * EXACT:
                return False
        return True

    def _settled(self, rate: float) -> Division:
        """Rounding up adds to what has to be paid: up to the least rate at which the rounded weights hold."""
        division = self.at(rate)
        for _ in range(64):
            if division.total <= rate * self.capacity / EXACT:
                break
            rate = division.total / self.capacity
            division = self.at(rate)
        return division


def _ratio(weight: float, left: float) -> float:
    return weight / left if left > 0 else math.inf
