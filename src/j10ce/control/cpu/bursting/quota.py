"""What the next quota is.

It rises to three times itself while it throttles and the pool is idle, and falls to the limit when the pool is
overloaded or tokens are out; in between it stays. What is done shows in the use of the pool only after a while: a quota
that fell does not rise again soon after.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from j10ce.control.cpu.bursting.pool import State

UP: Final = 3.0
THROTTLED: Final = 0.005  # share of periods
REST_S: Final = 10.0  # after a fall, before it rises


class Quota(NamedTuple):
    us: float
    fell_at: float = -math.inf


class QuotaNeeds(NamedTuple):
    base: float  # µs, the limit
    most: float
    throttled: float  # share of periods
    allows: bool  # tokens


def next_quota(held: Quota, needs: QuotaNeeds, state: State, now: float) -> Quota:
    us = min(max(held.us, needs.base), needs.most)
    if us > needs.base and (state == "overload" or not needs.allows):
        return Quota(needs.base, now)
    rested = now - held.fell_at >= REST_S
    if needs.throttled > THROTTLED and state == "idle" and needs.allows and rested:
        us = min(needs.most, us * UP)
    return held._replace(us=us)
