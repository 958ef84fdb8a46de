"""Who would have to go, in which order, until enough is set free."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from msgspec import UNSET

from j10ce.control.eviction.needs import FRESH_S, asking, requested, window_s
from j10ce.model.kinds import Tier
from j10ce.model.knob import Deed, Setting, TargetId
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import BANDS, HOST_NAMESPACE, Entitlement, EvictionTrigger, Workload

BEST_EFFORT_ONLY: Final = frozenset(("satisfaction",))


class Victim(NamedTuple):
    target: TargetId
    frees: float  # bytes or millicores that its end sets free
    key: tuple[float, ...]  # of the order: lower goes first


def candidates(snap: Snapshot, trigger: EvictionTrigger) -> list[Victim]:
    """Chosen workloads that this trigger may evict, the first to go first.

    Best effort, and whoever is willing; nobody of tier system, above the strategy's priority, or held; no
    application of the host, which nobody would start again.
    """
    allowed = [e for e in snap.entitlements.values() if _may_go(snap, e, trigger)]
    listed = [_victim(snap, snap.workloads[e.target], e, trigger) for e in allowed]
    return sorted(listed, key=lambda v: (v.key, v.target))


def choose(ordered: Iterable[Victim], amount: float, going: Collection[TargetId] = ()) -> list[Victim]:
    """In order until the amount is met; `going` count from the start, and who sets nothing free is left alone."""
    listed = list(ordered)
    missing = amount - sum(v.frees for v in listed if v.target in going)
    chosen = []
    for victim in listed:
        if missing <= 0:
            break
        if victim.target not in going and victim.frees > 0:
            chosen.append(victim)
            missing -= victim.frees
    return chosen


def leaving(snap: Snapshot, patience_s: float) -> frozenset[TargetId]:
    """Who is on the way out: ended by its maker, or asked to leave no longer than `patience_s` ago.

    One that came since under the same name is another.
    """
    asked = {t: at for (deed, t), at in snap.done.items() if deed is Deed.EVICT and 0 <= snap.wall - at < patience_s}
    return frozenset(t for t, w in snap.workloads.items() if w.leaving or asked.get(t, -1.0) >= w.since)


def _may_go(snap: Snapshot, e: Entitlement, trigger: EvictionTrigger) -> bool:
    w = snap.workloads.get(e.target)
    if w is None or not e.chosen or e.tier is Tier.SYSTEM or w.critical or w.namespace == HOST_NAMESPACE:
        return False
    hints, best_effort = w.overrides.eviction, e.tier is Tier.BESTEFFORT
    if not (best_effort or (hints.willing and trigger not in BEST_EFFORT_ONLY)):
        return False
    if hints.triggers is not None and trigger not in hints.triggers:
        return False
    return not _above(snap, w, trigger) and Setting(w.target, Deed.EVICT.value) not in snap.held


def _above(snap: Snapshot, w: Workload, trigger: EvictionTrigger) -> bool:
    """Whether its priority is above what may be evicted; who has none counts as 0."""
    said = snap.strategy.eviction
    bounds = [said.priority_threshold]
    if trigger in ("lent-cpu", "lent-memory"):
        bounds.append(said.allocatable.priority_threshold)
    return any((w.priority or 0) > bound for bound in bounds if bound is not UNSET)


# By annotation, best effort before the willing, by priority, by rank within it; then who asked for most (what is lent),
# who uses most of what it asked for (satisfaction), who uses most (all else).
def _victim(snap: Snapshot, w: Workload, e: Entitlement, trigger: EvictionTrigger) -> Victim:
    hints, priority = w.overrides.eviction, w.priority or 0
    rank = priority if hints.rank is None else hints.rank
    frees = _frees(snap, w.target, trigger)
    most = frees
    if trigger == "satisfaction":
        used = snap.readings.window(w.target, "cpu.usage", window_s(snap)).mean() or 0.0
        most = used * 1000 / frees if frees else 0.0
    return Victim(w.target, frees, (hints.order, e.tier is not Tier.BESTEFFORT, priority, rank, -most))


def _frees(snap: Snapshot, target: TargetId, trigger: EvictionTrigger) -> float:
    match trigger:
        case "memory":
            return snap.readings.window(target, "memory.current", FRESH_S).last() or 0.0
        case "cpu":
            return (snap.readings.window(target, "cpu.usage", window_s(snap)).mean() or 0.0) * 1000
        case "satisfaction":
            return float(requested(snap, target, "cpu"))
        case "lent-cpu":
            return sum(asking(snap, target, band, "cpu") for band in BANDS)
        case "lent-memory":
            return sum(asking(snap, target, band, "memory") for band in BANDS)
