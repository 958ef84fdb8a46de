"""Weights that keep promises: how many shares each sibling needs when all of them want the CPU at once.

    One share buys `price` millicores.  A sibling with floor f and base b gets  b + f/price  shares and so at least
    f + b·price.  Every price at which all can be paid,  price · Σ shares ≤ capacity,  keeps every floor, because
    share_i · capacity / Σ shares ≥ share_i · price ≥ f_i.

The price is a power of two, so small changes among the siblings leave the other weights as they are.
A sibling that is not ours keeps its weight, and is only ever raised, to what the floors inside it need.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from j10ce.control.law import clamp, latch, power_of_two
from j10ce.model.knob import KNOBS, MOST_WEIGHT, Support, shares_of, weight_of

# Where the floors exceed the capacity, each is cut in proportion to what leaves this much for everyone else.
LEAST_LEFT: Final = 0.05
# Bases give way to floors: they shrink in these steps when a weight would leave the kernel's range.
SHRINK: Final = tuple(4.0**-n for n in range(9))
FINER: Final = (2.0, 1.75, 1.5, 1.25, 1.0)  # where no power of two will do, prices between two of them
HEADROOM: Final = 1.01  # a group without a base to speak of still leaves its children room to differ


class Member(NamedTuple):
    """One sibling. `free`: its weight is ours to choose; else `base` is what it has, and only more is asked for."""

    base: float
    floor: float = 0.0  # millicores promised to it, or to what is inside it
    free: bool = False


class Division(NamedTuple):
    """Weights in the order of the members. `total` counts everyone; `holds` False: the floors do not fit."""

    shares: tuple[float, ...]
    total: float
    price: float
    holds: bool
    headroom: float = 1.0

    def least(self, m: Member, on: Grid) -> float:
        """The shares that a sibling needs for the floors inside it, with no base of its own."""
        return on.up(m.floor * self.headroom / self.price)


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
        found = shares_of(weight_of(shares))
        return found if found >= shares else shares_of(weight_of(shares) + 1)

    def near(self, shares: float) -> float:
        whole = float(round(shares)) if self.fine else shares_of(weight_of(shares))
        return clamp(whole, self.low, self.high)


FINE: Final = Grid(float(KNOBS["cpu.weight"].low), float(KNOBS["cpu.weight"].high), fine=True)
COARSE: Final = Grid(shares_of(1), shares_of(MOST_WEIGHT), fine=False)


def grid(support: Mapping[str, Support]) -> Grid:
    found = support.get("cpu.weight")
    return FINE if found is not None and found.via == "cgroup1" else COARSE


def divide(members: Sequence[Member], capacity: float, on: Grid, held: float = 0.0) -> Division:
    """Weights for one set of siblings that share `capacity` millicores. `held` is the price of the last division."""
    promised = math.fsum(m.floor for m in members)
    if not promised:
        shares = tuple(on.near(m.base) if m.free else m.base for m in members)
        return Division(shares, math.fsum(shares), 0.0, True)
    fits = promised < capacity
    if not fits:
        cut = capacity * (1 - LEAST_LEFT) / promised
        members = [m._replace(floor=m.floor * cut) for m in members]
        promised *= cut
    siblings = _Siblings(members, capacity, on, min(HEADROOM, (1 + capacity / promised) / 2))
    division = next(siblings.attempts(held))
    return division._replace(holds=division.holds and fits)


class _Siblings(NamedTuple):
    """One set of siblings with at least one floor; the floors fit."""

    members: Sequence[Member]
    capacity: float
    on: Grid
    headroom: float

    def attempts(self, held: float) -> Iterator[Division]:
        """The first one is the answer: all paid in full, else at least all floors kept, else as near as we get."""
        tried: list[tuple[_Siblings, Division]] = []
        for by in SHRINK:
            siblings = self.shrunk(by)
            division = siblings.best(held)
            if siblings.affords(division) and division.holds:
                yield division
            tried.append((siblings, division))
        for siblings, division in tried:
            yield from (d for f in FINER if (d := siblings.at(division.price * f)).holds)
        yield tried[0][1]

    def shrunk(self, by: float) -> _Siblings:
        if by == 1:
            return self
        return self._replace(members=[m._replace(base=m.base * by) if m.free else m for m in self.members])

    def best(self, held: float) -> Division:
        """At the highest price that all can pay, or at the held one while that will do."""
        left = self.capacity - math.fsum(m.floor for m in self.members)
        found = self.at(power_of_two(left / max(1.0, math.fsum(m.base for m in self.members))))
        # A sibling that is only raised pays with its floor first, so the bases overstate what all must pay.
        while any(m.floor and not m.free for m in self.members):
            dearer = self.at(found.price * 2)
            if not self.affords(dearer):
                break
            found = dearer
        largest = max(m.floor for m in self.members)
        while not self.affords(found) and largest / found.price < self.on.high:
            found = self.at(found.price / 2)
        if (kept := latch(held, found.price)) != found.price:
            before = self.at(kept)
            return before if before.holds and self.affords(before) else found
        return found

    def affords(self, d: Division) -> bool:
        return d.price * d.total <= self.capacity

    def at(self, price: float) -> Division:
        on, room = self.on, self.headroom
        shares = tuple(
            max(on.up(m.base + m.floor / price) if m.free else m.base, on.up(m.floor * room / price))
            if m.floor
            else (on.near(m.base) if m.free else m.base)
            for m in self.members
        )
        total = math.fsum(shares)
        holds = all(s * self.capacity >= m.floor * total for s, m in zip(shares, self.members, strict=True))
        return Division(shares, total, price, holds, room)
