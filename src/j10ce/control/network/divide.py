"""How a link ends up divided: strict priority above all floors, in one step.

    1. everyone has the floor that it wants; floors beyond the room are cut from the last level up, in proportion there
    2. what is left goes level by level, 0 first; within a level everyone gets the same on top of its floor, as far as
       it wants that

Several that are one share have its floor and its ceiling together, and divide what it gets by the same rule. What
nobody wants stays unused. The kernel does the same packet by packet; this is for whoever explains or checks it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class TrafficClaim(NamedTuple):
    """Bits per second of one workload, or of one share."""

    wants: float = math.inf
    floor: float = 0.0
    ceiling: float = math.inf
    level: int = 4
    share: str = ""

    @property
    def most(self) -> float:
        return max(0.0, min(self.wants, self.ceiling))


def divide(
    room: float, claims: Sequence[TrafficClaim], shares: Mapping[str, TrafficClaim] | None = None
) -> list[float]:
    """In the order of the claims. `shares` says what members have together; their own wants are what it wants."""
    together = shares or {}
    alone = [n for n, c in enumerate(claims) if c.share not in together]
    inside = {name: [n for n, c in enumerate(claims) if c.share == name] for name in together}
    whole = [_as_one(together[name], [claims[n] for n in inside[name]]) for name in together]
    parts = _flat(room, [*(claims[n] for n in alone), *whole])
    out = [0.0] * len(claims)
    for n, amount in zip(alone, parts, strict=False):
        out[n] = amount
    for name, amount in zip(together, parts[len(alone) :], strict=True):
        for n, own in zip(inside[name], _flat(amount, [claims[n] for n in inside[name]]), strict=True):
            out[n] = own
    return out


def _as_one(share: TrafficClaim, members: Sequence[TrafficClaim]) -> TrafficClaim:
    """It is served as its best member is, and has at least what they have each."""
    wants = math.fsum(c.most for c in members)
    floor = max(share.floor, math.fsum(min(c.floor, c.most) for c in members))
    return share._replace(wants=wants, floor=floor, level=min((c.level for c in members), default=share.level))


def _flat(room: float, claims: Sequence[TrafficClaim]) -> list[float]:
    out = _floors(room, claims)
    left = max(0.0, room - math.fsum(out))
    for level in sorted({c.level for c in claims}):
        here = [n for n, c in enumerate(claims) if c.level == level]
        for n, more in zip(here, _even(left, [max(0.0, claims[n].most - out[n]) for n in here]), strict=True):
            out[n] += more
        left = max(0.0, room - math.fsum(out))
    return out


def _floors(room: float, claims: Sequence[TrafficClaim]) -> list[float]:
    out = [min(c.floor, c.most) for c in claims]
    left = room
    for level in sorted({c.level for c in claims}):
        here = [n for n, c in enumerate(claims) if c.level == level]
        wanted = math.fsum(out[n] for n in here)
        scale = 1.0 if wanted <= left else max(0.0, left) / wanted
        for n in here:
            out[n] *= scale
        left -= min(wanted, max(0.0, left))
    return out


def _even(room: float, wants: Sequence[float]) -> list[float]:
    """The same for each, as far as it is wanted; what one leaves is for the others."""
    out, left = [0.0] * len(wants), room
    for done, n in enumerate(sorted(range(len(wants)), key=wants.__getitem__)):
        out[n] = min(wants[n], left / (len(wants) - done))
        left -= out[n]
    return out
