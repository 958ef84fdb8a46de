"""What is lent to mid; when an amount is reported, and when it is taken back.

reclaim     = min(what prod is not expected to use, capacity − usage); 0 where either is unknown
unallocated = capacity − max(system, reserved) − what prod asked for, at least 0
mid         = reclaim + a share of unallocated, at most a share of the capacity
static      = a share of the capacity, at most another
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple


class MidLaw(NamedTuple):
    """Of one resource."""

    threshold_percent: int = 100
    unallocated_percent: int = 0
    static: bool = False
    static_percent: int = 0


class MidUse(NamedTuple):
    """Of one resource."""

    capacity: int
    prod_reclaimable: int | None = None
    node_usage: int | None = None
    system: int = 0  # with host applications of prod
    reserved: int = 0
    prod_request: int = 0


def mid(law: MidLaw, use: MidUse) -> int:
    cap = use.capacity * law.threshold_percent // 100
    if law.static:
        return min(use.capacity * law.static_percent // 100, cap)
    unused = 0 if use.node_usage is None else use.capacity - use.node_usage
    reclaim = min(use.prod_reclaimable or 0, unused)
    unallocated = max(use.capacity - max(use.system, use.reserved) - use.prod_request, 0)
    return max(0, min(reclaim + unallocated * law.unallocated_percent // 100, cap))


def degraded(age_s: float | None, degrade_minutes: int) -> bool:
    """Whether batch and mid are taken back: what is known of the node is missing, or too old."""
    return age_s is None or age_s > degrade_minutes * 60


def to_be_told(
    old: Mapping[str, int], new: Mapping[str, int], difference: float, age_s: float, refresh_s: float
) -> bool:
    """Whether amounts are written to the node: one moved far enough, or the last word is old."""
    share = Fraction(str(difference))
    moved = any(abs(new.get(n, 0) - old.get(n, 0)) > old.get(n, 0) * share for n in old.keys() | new.keys())
    return moved or old.keys() != new.keys() or age_s > refresh_s
