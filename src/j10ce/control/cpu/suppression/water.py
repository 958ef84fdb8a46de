"""A room divided like water: nobody gets more than it wants while another, with as good a claim, wants more.

    share_i   = room · parts_i / Σ parts
    portion_i = min(wants_i, level · parts_i),  the level such that all of the room is used

So min(wants_i, share_i) is never taken by a neighbour. What is left when all have what they want is divided by parts.

What someone wants is read from what it uses. Whoever is at its cap may want anything; everyone else wants a little more
than it uses, so that wanting more can show, and never less than a part of its share, so that it can wake up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

AT_CAP: Final = 0.9  # of a cap, or of what it was taken to want: from here on it may want more
FADED: Final = 0.5  # of what it was taken to want: below it, it wants less
HEADROOM: Final = 1.25  # above what is used; AT_CAP · HEADROOM > 1, so that noise moves nothing
ASLEEP: Final = 0.1  # of its share, for whoever uses nothing


class RoomClaim(NamedTuple):
    parts: int  # how many equal claims it stands for
    wants: float


def fill(room: float, claims: Sequence[RoomClaim]) -> list[float]:
    """In the order of the claims; the portions add up to the room."""
    left, parts = room, sum(c.parts for c in claims)
    portions = [0.0] * len(claims)
    for n in sorted(range(len(claims)), key=lambda n: claims[n].wants / claims[n].parts):
        claim = claims[n]
        portions[n] = min(claim.wants, left * claim.parts / parts)
        left, parts = left - portions[n], parts - claim.parts
    every = sum(c.parts for c in claims)
    return [p + left * c.parts / every for p, c in zip(portions, claims, strict=True)]


def wants(held: float, used: float, cap: float, share: float) -> float:
    """`held`: what it was last taken to want; infinite at first. `cap`: what it had until now."""
    if used >= AT_CAP * cap:
        return math.inf
    if FADED * held <= used < AT_CAP * held:
        return held
    return max(HEADROOM * used, ASLEEP * share)
