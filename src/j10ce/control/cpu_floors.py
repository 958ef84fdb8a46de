"""CPU floors as weights, from the root down: at every level a group's share covers all floors inside it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import UNSET

from j10ce.control.besteffort import idlers
from j10ce.control.weights import Division, Grid, Member, divide, grid
from j10ce.model.kinds import Strict, Tier
from j10ce.model.knob import IDLE_SHARES, PERIOD_US, ROOT, Setting, TargetId
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement

SHARES_PER_CPU: Final = 1024
DEFAULT: Final = float(SHARES_PER_CPU)  # what the kernel gives a fresh cgroup


class TierWeights(Strict, frozen=True, kw_only=True):
    """How the tiers divide what no floor claims, in shares."""

    system: int = 4096
    exclusive: int = 4096
    reserved: int = 4096
    sensitive: int = 4096
    standard: int = 1024
    besteffort: int = 16

    def of(self, tier: Tier) -> float:
        return float(getattr(self, tier.value))


class Level(NamedTuple):
    """One group, its children, and how they divide its capacity."""

    capacity: float  # millicores that the group has for certain
    children: tuple[TargetId, ...]
    members: tuple[Member, ...]  # the children, then the foreign siblings as one
    division: Division


def levels(snap: Snapshot, tiers: TierWeights, held: Mapping[TargetId, float]) -> dict[TargetId, Level]:
    """Every group with its division, parents first. `held` are the prices of the last time, by group."""
    on = grid(snap.support)
    standing = _standing(snap, tiers, on)
    capacity = {ROOT: len(snap.node.cpus) * 1000.0}
    found: dict[TargetId, Level] = {}
    for group in snap.groups.from_top():
        children = snap.groups.children.get(group, ())
        if not children:
            continue
        foreign = Member(math.fsum(f.weight for f in snap.groups[group].foreign))
        here, members = capacity[group], (*(standing[c] for c in children), foreign)
        division = divide(members, here, on, held.get(group, 0.0))
        found[group] = Level(here, children, members, division)
        for child, shares in zip(children, division.shares, strict=False):  # the last one is foreign
            capacity[child] = min(here * shares / division.total, _quota(snap, child))
    return found


def wishes(snap: Snapshot, level: Level, owner: str) -> Iterator[Proposal]:
    """The weight of every child that is ours to choose; of the others only that the floors inside need it."""
    on = grid(snap.support)
    for child, m, shares in zip(level.children, level.members, level.division.shares, strict=False):
        if m.free:
            bound, value = Bound.WANT, shares
        elif m.floor:
            bound, value = Bound.AT_LEAST, min(shares, level.division.least(m, on))
        else:
            continue
        reason = _floor_reason(level, m, shares) if m.floor else _plain_reason(snap, child, shares)
        yield Proposal(Setting(child, "cpu.weight"), bound, value, owner, Rank.POLICY, reason)


def _floor_reason(level: Level, m: Member, shares: float) -> str:
    total, capacity = level.division.total, level.capacity
    got = shares * capacity / total
    kept = "" if got >= m.floor * (1 - 1e-9) else "cannot hold the "
    return f"{kept}floor {spell('cpu', m.floor)}: {shares:.0f} of {total:.0f} shares is {got:.0f}m of {capacity:.0f}m"


def _plain_reason(snap: Snapshot, target: TargetId, shares: float) -> str:
    e = snap.entitlements.get(target)
    return f"{shares:.0f} shares, " + (f"profile {e.profile}" if e else "no floor inside")


def _standing(snap: Snapshot, tiers: TierWeights, on: Grid) -> dict[TargetId, Member]:
    """What every target brings to the contest with its siblings."""
    lowest = IDLE_SHARES if snap.supports("cpu.idle") else on.low
    members = dict.fromkeys(idlers(snap), Member(lowest))
    managed: set[TargetId] = set()
    for target in reversed(snap.groups.from_top()):
        e = snap.entitlements.get(target)
        children = snap.groups.children.get(target, ())
        if (e is not None and e.chosen) or any(c in managed for c in children):
            managed.add(target)
        if target in members:
            continue
        if e is not None:
            members[target] = _workload(e, snap)
        elif snap.groups[target].owned and target in managed:
            members[target] = _group([members[c] for c in children], _tier_base(children, snap, tiers))
        else:
            floor = math.fsum(members[c].floor for c in children)
            members[target] = Member(_present(snap, target), floor)
    return members


def _workload(e: Entitlement, snap: Snapshot) -> Member:
    if not e.chosen:
        return Member(_present(snap, e.target))
    if e.cpu.weight is not UNSET:
        return Member(float(e.cpu.weight), e.floor.cpu, free=True)
    if not snap.groups[e.target].owned:  # whoever made it weighs it against siblings by a rule of their own
        return Member(_present(snap, e.target), e.floor.cpu)
    return Member(e.requests.cpu * SHARES_PER_CPU / 1000 or DEFAULT, e.floor.cpu, free=True)


def _group(inside: Sequence[Member], base: float) -> Member:
    return Member(base or math.fsum(m.base for m in inside), math.fsum(m.floor for m in inside), free=True)


def _tier_base(children: Collection[TargetId], snap: Snapshot, tiers: TierWeights) -> float:
    """The weight of the best tier whose workloads are right inside; 0 for a group of groups."""
    return max((tiers.of(e.tier) for c in children if (e := snap.entitlements.get(c)) and e.chosen), default=0.0)


def _present(snap: Snapshot, target: TargetId) -> float:
    value = snap.settings.get(Setting(target, "cpu.weight"))
    return value if isinstance(value, float) and value > 0 else DEFAULT


def _quota(snap: Snapshot, target: TargetId) -> float:
    """Millicores that a group above us may use; a cap of ours gives way to floors, so it does not count."""
    group = snap.groups.get(target)
    value = snap.settings.get(Setting(target, "cpu.max")) if group and not group.owned else None
    return value * 1000 / PERIOD_US if isinstance(value, float) else math.inf
