"""What every target brings to the contest with its siblings: its weight, and the CPU time that it must have.

The least capacity at which a group can keep what is promised inside follows from the highest rate at which it can be
divided, in shares per millicore: the kernel's range bounds it, and so does every child that stays as it is.
    need(group) = Σ max(need, weight / rate),  where what is ours to choose has no weight
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec import UNSET

from j10ce.control.besteffort import idlers
from j10ce.control.cpu.weights import EXACT, Grid, Member
from j10ce.model.kinds import Strict, Tier
from j10ce.model.knob import IDLE_SHARES, PERIOD_US, Setting, TargetId
from j10ce.model.snapshot import Group, Snapshot
from j10ce.model.workload import Entitlement, lent
from j10ce.policy.effect.cpu_share import parts_quota

SHARES_PER_CPU: Final = 1024
DEFAULT: Final = float(SHARES_PER_CPU)  # what the kernel gives a fresh cgroup
MODERATE: Final = 128.0  # shares per millicore: where there is room, a group gets enough for its inside to need no more
TIERS: Final = frozenset(tier.value for tier in Tier)
SPOKEN_FOR: Final = 0.1  # a request counts where its owner's weight is at least so many shares per millicore of it


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


def standing(snap: Snapshot, tiers: TierWeights, on: Grid) -> dict[TargetId, Member]:
    """Every target of the tree, as its parent's other children meet it."""
    lowest = IDLE_SHARES if snap.supports("cpu.idle") else on.low
    members = dict.fromkeys(idlers(snap), Member(lowest))
    border = _border(snap)
    managed: set[TargetId] = set()
    for target in reversed(snap.groups.from_top()):
        e, children = snap.entitlements.get(target), snap.groups.children.get(target, ())
        if (e is not None and e.chosen) or any(c in managed for c in children):
            managed.add(target)
        if target in members:
            continue
        if e is not None:
            members[target] = _workload(e, snap)
            continue
        inside = [members[c] for c in children]
        if target in border:
            itself = Member(0.0, also=border[target] if target in managed else DEFAULT, free=True)
        elif snap.groups[target].owned and target in managed:
            itself = Member(_base_inside(children, inside, snap, tiers), free=True)
        else:
            itself = Member(0.0 if _deserted(snap, target) else present(snap, target))
        members[target] = _needing(itself, [*inside, foreign(snap.groups[target])], on, quota(snap, target))
    return members


def foreign(group: Group) -> Member:
    """Everyone inside a group who is not managed, as one."""
    return Member(math.fsum(f.weight for f in group.foreign))


def base_of(e: Entitlement, borrowed: int = 0) -> float:
    """How a workload of ours divides what no floor claims with the others of its tier.

    `borrowed`: millicores that it asks for of what is lent.
    """
    asked = (e.requests.cpu + borrowed) * SHARES_PER_CPU / 1000
    return float(e.cpu.weight) if e.cpu.weight is not UNSET else asked or DEFAULT


def present(snap: Snapshot, target: TargetId) -> float:
    """The weight in force."""
    if snap.settings.get(Setting(target, "cpu.idle")) == 1.0:
        return IDLE_SHARES
    value = snap.settings.get(Setting(target, "cpu.weight"))
    return value if isinstance(value, float) and value > 0 else DEFAULT


def quota(snap: Snapshot, target: TargetId) -> float:
    """Millicores that a group above us may use; a cap of ours gives way to floors, so it does not count."""
    group = snap.groups.get(target)
    value = snap.settings.get(Setting(target, "cpu.max")) if group and not group.owned else None
    return value * 1000 / PERIOD_US if isinstance(value, float) else math.inf


def _workload(e: Entitlement, snap: Snapshot) -> Member:
    weight, most = present(snap, e.target), _may_use(e, snap)
    if not e.chosen:
        return Member(weight, counted=min(most, _counted(e, weight)))
    floor, w = min(most, float(e.floor.cpu)), snap.workloads.get(e.target)
    borrowed = lent(w.reclaimable).requests.cpu if w is not None else 0  # of which its maker knows nothing
    if e.cpu.weight is not UNSET or snap.groups[e.target].owned or borrowed:
        return Member(base_of(e, borrowed), floor, free=True)
    # Whoever made it weighs it against siblings by a rule of their own: it keeps that, and is raised for its floor.
    had = snap.originals.get(Setting(e.target, "cpu.weight"), weight)
    base = float(had) if isinstance(had, float | int) else weight
    return Member(base, floor, raised=True, counted=min(most, _counted(e, base)))


def _may_use(e: Entitlement, snap: Snapshot) -> float:
    """Millicores, by limits that are not ours: no weight gives more. One that we set gives way to the floor."""
    ours = Setting(e.target, "cpu.max") in snap.originals or e.ceiling.cpu != math.inf or e.cpu.suppressible
    return min(math.inf if e.chosen and ours else quota(snap, e.target), parts_quota(snap, e.target))


def _counted(e: Entitlement, base: float) -> float:
    """By the weight that is not ours: what we raised speaks for nobody's request."""
    return float(e.requests.cpu) if base >= e.requests.cpu * SPOKEN_FOR else 0.0


def _base_inside(children: Collection[TargetId], inside: Sequence[Member], snap: Snapshot, tiers: TierWeights) -> float:
    """The weight of the best tier whose workloads are right inside; of a group of groups the sum."""
    of_tier = max((tiers.of(e.tier) for c in children if (e := snap.entitlements.get(c)) and e.chosen), default=0.0)
    return of_tier or math.fsum(m.base for m in inside)


def _border(snap: Snapshot) -> dict[TargetId, float]:
    """The base of each group of ours that stands beside others' groups: what is requested beyond floors, as Kubernetes
    would weigh it, and for all who are promised nothing one fresh cgroup's weight together."""
    requested: dict[TargetId, float] = {
        t: 0.0 for t, g in snap.groups.by_target.items() if g.owned and not _owned(snap, g.parent)
    }
    unpromised: set[TargetId] = set()
    for e in snap.entitlements.values():
        if not e.chosen or (e.cpu.idle and not e.floor.cpu):
            continue
        for up in snap.groups.ancestors(e.target):
            if up in requested:
                requested[up] += max(0.0, e.requests.cpu - e.floor.cpu) * SHARES_PER_CPU / 1000
                if not e.requests.cpu and not e.floor.cpu:
                    unpromised.add(up)
    return {top: shares + (DEFAULT if top in unpromised else 0.0) for top, shares in requested.items()}


def _deserted(snap: Snapshot, target: TargetId) -> bool:
    """A tier of ours whose workloads are gone: nothing runs there, whatever it weighs."""
    group = snap.groups[target]
    return group.owned and target not in snap.groups.children and group.path.rpartition("/")[2] in TIERS


def _owned(snap: Snapshot, target: TargetId | None) -> bool:
    return target is not None and snap.groups[target].owned


def _needing(group: Member, inside: Sequence[Member], on: Grid, most: float) -> Member:
    """`most`: millicores that the group may use."""
    inside = keepable(inside, on, most)
    if not any(m.floor or m.counted for m in inside):
        return group
    floor = min(most, _need(inside, [m.floor for m in inside], on.high, math.inf))
    counted = min(most, _need(inside, [max(m.floor, m.counted) for m in inside], on.high, math.inf))
    eased = min(most, _need(inside, [m.floor + m.ease for m in inside], on.high / 2, MODERATE))
    return group._replace(floor=floor, counted=counted, ease=max(0.0, eased - floor))


def keepable(inside: Sequence[Member], on: Grid, most: float) -> Sequence[Member]:
    """Without what no weight can keep within `most` millicores, each by itself: others would be held down in vain."""
    if most == math.inf:
        return inside
    least = math.fsum(on.low if m.free else m.base for m in inside)

    def kept(m: Member, need: float) -> float:
        heaviest, lightest = on.high if m.free or m.raised else m.base, on.low if m.free else m.base
        return need if heaviest * most >= need * (least - lightest + heaviest) * EXACT else 0.0

    return [m._replace(floor=kept(m, m.floor), counted=kept(m, m.counted)) for m in inside]


def _need(inside: Sequence[Member], needs: Sequence[float], highest: float, moderate: float) -> float:
    rate = min(_rates(inside, needs, highest), default=0.0)
    if not rate:
        return 0.0
    rate = min(rate, moderate)
    return math.fsum(
        n if m.free else max(m.base / rate, m.floor if m.raised else 0.0) for m, n in zip(inside, needs, strict=True)
    )


def _rates(inside: Sequence[Member], needs: Sequence[float], highest: float) -> Iterator[float]:
    for m, need in zip(inside, needs, strict=True):
        if need and (m.free or (m.raised and need <= m.floor + m.ease)):
            yield highest / need
        elif need:
            yield m.base / need
