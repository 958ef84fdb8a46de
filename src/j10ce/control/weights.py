"""Weights that keep promises: how many shares each sibling needs when all of them want the CPU at once.

    One share buys `price` millicores.  A sibling with floor f and base b gets  b + f/price  shares and so at least
    f + b·price.  Every price at which all can be paid,  price · Σ shares ≤ capacity,  keeps every floor, because
    share_i · capacity / Σ shares ≥ share_i · price ≥ f_i.

The price is a power of two, so small changes among the siblings leave the other weights as they are.
A sibling that is not ours keeps its weight, and is only ever raised, to what the floors inside it need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from j10ce.control.law import clamp, latch, power_of_two
from j10ce.model.knob import KNOBS, MOST_WEIGHT, Support, shares_of, weight_of

# Where the floors exceed the capacity, each is cut in proportion to what leaves this much for everyone else.
LEAST_LEFT: Final = 0.05
# Bases give way to floors: they shrink in these steps when a weight would leave the kernel's range.
SHRINK: Final = tuple(4.0**-n for n in range(9))


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
    division = Division((), 0.0, 0.0, False)
    for shrink in SHRINK:
        lean = members if shrink == 1 else [m._replace(base=m.base * shrink) if m.free else m for m in members]
        division = _best(lean, capacity, on, held)
        if division.holds:
            break
    return division._replace(holds=division.holds and fits)


def _best(members: Sequence[Member], capacity: float, on: Grid, held: float) -> Division:
    """The division at the highest price that all can pay, or at the held one while that will do."""
    floors = math.fsum(m.floor for m in members)
    price = power_of_two((capacity - floors) / max(1.0, math.fsum(m.base for m in members)))
    division = _at(price, members, capacity, on)
    # A sibling that is only raised pays with its floor first, so the bases overstate what all must pay.
    while any(m.floor and not m.free for m in members):
        dearer = _at(division.price * 2, members, capacity, on)
        if dearer.price * dearer.total > capacity:
            break
        division = dearer
    dearest = max(m.floor for m in members)
    while division.price * division.total > capacity and dearest / division.price < on.high:
        division = _at(division.price / 2, members, capacity, on)
    if (kept := latch(held, division.price)) != division.price:
        before = _at(kept, members, capacity, on)
        return before if before.holds else division
    return division


def _at(price: float, members: Sequence[Member], capacity: float, on: Grid) -> Division:
    shares = tuple(
        (on.up(m.base + m.floor / price) if m.free else max(m.base, on.up(m.floor / price)))
        if m.floor
        else (on.near(m.base) if m.free else m.base)
        for m in members
    )
    total = math.fsum(shares)
    holds = all(s * capacity >= m.floor * total for s, m in zip(shares, members, strict=True))
    return Division(shares, total, price, holds)
