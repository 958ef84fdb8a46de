"""What may be changed at all, and what each group owes to those inside it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from j10ce.model.kinds import Tier
from j10ce.model.knob import KNOBS, MADE_KINDS, ROOT, KnobRole, Setting, TargetId, kind_of
from j10ce.model.resource import NOTHING, Resources
from j10ce.model.snapshot import Snapshot
from j10ce.policy.effect.support import lacking


class Rights(Struct, frozen=True):
    """Follows from what `snap.epoch` covers."""

    top_down: tuple[TargetId, ...] = ()  # parents before children, without the root
    ours: frozenset[TargetId] = frozenset()  # owned groups, and chosen workloads with all inside them
    tops: tuple[TargetId, ...] = ()  # those of ours that have none of ours above
    dead: frozenset[TargetId] = frozenset()  # groups that we made for workloads that are gone
    spent: frozenset[TargetId] = frozenset()  # ours, empty, and needed by nobody: the plan removes them
    floors: Mapping[TargetId, Resources] = {}  # sum of the floors inside, the target's own included
    owned: frozenset[TargetId] = frozenset()  # made by us

    @classmethod
    def of(cls, snap: Snapshot) -> Rights:
        order = tuple(t for t in snap.groups.from_top() if t != ROOT)
        dead = frozenset(t for t in order if _dead(t, snap))
        ours = _ours(order, dead, snap)
        tops = tuple(t for t in order if t in ours and snap.groups.parent(t) not in ours)
        owned = frozenset(t for t in order if snap.groups[t].owned)
        return cls(order, ours, tops, dead, _spent(order, snap), _floors(order, snap), owned)

    def differing(self, other: Rights) -> set[TargetId]:
        """The targets for which something else holds."""
        known = {*self.top_down, *other.top_down}
        return {t for t in known if self._terms(t) != other._terms(t)} | (set(self.top_down) ^ set(other.top_down))

    def _terms(self, t: TargetId) -> tuple[bool, bool, bool, Resources | None]:
        return t in self.ours, t in self.owned, t in self.spent, self.floors.get(t)

    def may_end(self, s: Setting, snap: Snapshot) -> bool:
        """Whether a setting can go back to its original: nobody needs a right to that."""
        here = s.target != ROOT and (s.target in snap.groups.by_target or s.target in snap.pieces)
        return here and s.target not in self.spent and snap.supports(s.knob)

    def objection(self, s: Setting, snap: Snapshot) -> str | None:
        """Why nobody's wish for a setting counts, or None."""
        if s.target in self.spent:
            return "nothing needs it any more"
        kind, entitled = kind_of(s.target), snap.entitlements.get(s.target)
        if s.knob == "cgroup.freeze" and entitled is not None and entitled.tier is Tier.SYSTEM:
            return "tier system is never frozen"
        if s.target in self.ours or s.target in snap.pieces or kind in MADE_KINDS:
            return None if snap.supports(s.knob) else str(lacking(snap, s.knob))
        if s.target == ROOT:
            return "the root's own limits are never touched"
        if s.target not in snap.groups.by_target:
            return "no such target on this machine"
        if s.target in snap.workloads:
            return "no policy chose this workload, it is only classified"
        if not s.target.startswith("group/"):
            return "its workload is gone"
        if s.knob not in KNOBS or KNOBS[s.knob].role is not KnobRole.GUARANTEE:
            return "not ours; of an ancestor only guarantees are raised"
        return None if snap.supports(s.knob) else str(lacking(snap, s.knob))


def _dead(target: TargetId, snap: Snapshot) -> bool:
    return target.startswith("workload/") and target not in snap.workloads and snap.groups[target].owned


def _spent(order: tuple[TargetId, ...], snap: Snapshot) -> frozenset[TargetId]:
    """From the bottom up: a group can go once all inside it can."""
    groups, staying, spent = snap.groups, set[TargetId](), set[TargetId]()
    for target in reversed(order):
        here = groups[target]
        needed = target in snap.workloads or target in staying or not here.owned
        if not needed and here.exists and not here.busy:
            spent.add(target)
        elif (here.exists or needed) and here.parent is not None:
            staying.add(here.parent)
    return frozenset(spent)


def _ours(order: tuple[TargetId, ...], dead: frozenset[TargetId], snap: Snapshot) -> frozenset[TargetId]:
    ours: set[TargetId] = set()
    inside: set[TargetId] = set()  # chosen workloads, and the cgroups within them
    for target in order:
        group = snap.groups[target]
        entitled = snap.entitlements.get(target)
        if target in snap.workloads:
            if entitled is not None and entitled.chosen:
                inside.add(target)
        elif group.parent in inside:
            inside.add(target)
        elif group.owned and target not in dead:
            ours.add(target)
    return frozenset(ours | inside)


def _floors(order: tuple[TargetId, ...], snap: Snapshot) -> Mapping[TargetId, Resources]:
    """Of every resource, own and inside."""
    floors: dict[TargetId, Resources] = {}
    for target in reversed(order):
        entitled = snap.entitlements.get(target)
        if entitled is not None and entitled.chosen and any(entitled.floor):
            floors[target] = floors.get(target, NOTHING).plus(entitled.floor)
        up = snap.groups[target].parent
        if up is not None and target in floors:
            floors[up] = floors.get(up, NOTHING).plus(floors[target])
    return floors
