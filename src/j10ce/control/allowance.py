"""What a CPU limit is on this node, and how far beyond it a workload may go: by its profile, the node's strategy, and
what is said of it alone.

A policy that the strategy or the workload says is for tiers sensitive and standard, and replaces what the profile lets
it save up. Whoever has CPUs of its own needs no burst, and best effort is to have none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final, NamedTuple

from msgspec import UNSET, UnsetType

from j10ce.model.kinds import Tier
from j10ce.model.knob import KNOBS, PERIOD_US, Setting, TargetId
from j10ce.model.knob import part as part_target
from j10ce.model.parts.strategy import BurstSection
from j10ce.model.quantity import Quantity
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement, Part, Workload
from j10ce.policy.profiles import BURSTS

STATIC_PERCENT: Final = 1000
QUOTA_PERCENT: Final = 300
POOL_PERCENT: Final = 50
# Whoever has CPUs of its own has whole ones, however fast they are; SYSTEM is never held back.
NORMALISED: Final = frozenset({Tier.SENSITIVE, Tier.STANDARD, Tier.BESTEFFORT})
NOTHING_SAID: Final = BurstSection()


class BurstAllowed(NamedTuple):
    """What a workload may save up, and to which multiple of its limit its quota may rise."""

    saved: Quantity | UnsetType = UNSET  # a share of the limit, or CPUs
    multiple: float = 1.0
    period_s: float = math.inf  # for how long at the highest quota
    pool_share: float = POOL_PERCENT / 100  # use of the shared CPUs above which nothing is raised


def allowed(e: Entitlement, w: Workload | None, node: BurstSection) -> BurstAllowed:
    own = w.overrides.burst if w is not None else NOTHING_SAID
    policy = node.policy if own.policy is UNSET else own.policy
    if e.tier not in BURSTS or (policy is UNSET and own.static_percent is UNSET):
        return BurstAllowed(e.cpu.burst)
    percent = _first(own.static_percent, node.static_percent, STATIC_PERCENT)
    saved = Quantity(percent if policy in ("static", "auto", UNSET) else 0, percent=True)
    raised = _first(own.quota_percent, node.quota_percent, QUOTA_PERCENT) if policy in ("quota", "auto") else 100
    period = node.period if own.period is UNSET else own.period
    pool = _first(own.share_pool_percent, node.share_pool_percent, POOL_PERCENT)
    return BurstAllowed(saved, raised / 100, math.inf if period is UNSET else period.seconds, pool / 100)


def _first(*said: int | UnsetType) -> int:
    return next(n for n in said if n is not UNSET)


def limited(snap: Snapshot, target: TargetId) -> Iterator[tuple[TargetId, float]]:
    """What its own limit throttles, with that limit in millicores: containers, or the workload where it has none."""
    w, whole = snap.workloads.get(target), snap.entitlements[target].ceiling.cpu
    if w is not None and not w.parts and whole != math.inf:
        yield target, whole
    for part_of, part in limited_parts(snap, w):
        if snap.settings.get(Setting(part_of, "cpu.max"), math.inf) != math.inf:
            yield part_of, part.limits.cpu


def quota_us(snap: Snapshot, e: Entitlement, limit: float) -> float:
    """Of a limit in millicores, on the CPUs of this node."""
    return float(max(KNOBS["cpu.max"].low, math.ceil(Fraction(limit) * PERIOD_US / 1000 / _ratio(snap, e))))


def _ratio(snap: Snapshot, e: Entitlement) -> Fraction:
    """What a CPU of this node does for it, in CPUs of the slowest of the fleet."""
    ratio = snap.strategy.normalization.ratio
    return Fraction(str(ratio)) if ratio is not UNSET and ratio > 1 and e.tier in NORMALISED else Fraction(1)


def worth(snap: Snapshot, e: Entitlement) -> str:
    """What to say of a limit that is less time here; nothing where it is as much."""
    ratio = _ratio(snap, e)
    return f", of CPUs that do {float(ratio):g} times as much" if ratio > 1 else ""


def limited_parts(snap: Snapshot, w: Workload | None) -> Iterator[tuple[TargetId, Part]]:
    """Those that have a cgroup and a limit; none while their maker is about to write it."""
    if w is None or w.resizing:
        return
    for p in w.parts:
        target = part_target(w.namespace, w.name, p.name)
        if p.limits.cpu != math.inf and target in snap.groups.by_target:
            yield target, p
