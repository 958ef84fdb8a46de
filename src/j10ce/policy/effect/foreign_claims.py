"""What others claim of the machine's memory: memory.min that stands beside our promises, and is never given away.

A group that is not ours and has floors of ours inside is raised to all that is claimed inside it, foreign claims
included; any other keeps what it had. Bytes that can be claimed only once are counted once. What a group that we raised
has beyond all claims inside it is kept for nobody: it is given back with the next writes, and not promised before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from j10ce.model.knob import ROOT, Setting, TargetId, Value
from j10ce.model.quantity import Bytes
from j10ce.model.snapshot import Group, Snapshot


def claimed_by_others(snap: Snapshot, originals: Mapping[Setting, Value]) -> float:
    """Of groups and workloads that are not ours. `originals`: what the settings we own held before us."""
    if ROOT not in snap.groups.by_target or not snap.supports("memory.min"):
        return 0.0
    return _Claims(snap, originals).inside(snap.groups[ROOT])


def beyond_floors(snap: Snapshot, originals: Mapping[Setting, Value]) -> float:
    """What workloads of ours had before us and beyond their floors: it is given back to them, so it is kept too."""
    if not snap.supports("memory.min"):
        return 0.0
    had = ((_had(Setting(t, "memory.min"), snap, originals), e) for t, e in snap.entitlements.items() if e.chosen)
    return math.fsum(max(0.0, value - e.floor.memory) for value, e in had if value)


def held_beside(snap: Snapshot, originals: Mapping[Setting, Value]) -> Bytes:
    """All memory.min that the book has to leave alone."""
    return Bytes(math.ceil(claimed_by_others(snap, originals) + beyond_floors(snap, originals)))


def kept_for_nobody(snap: Snapshot, originals: Mapping[Setting, Value], kept: Mapping[TargetId, float]) -> Bytes:
    """Of groups that we raised, the agent's own among them. `kept`: by workload, above what was there before us."""
    inside: dict[TargetId, float] = {}
    for target in snap.groups.by_target:
        if target.startswith("workload/") and len(above := list(snap.groups.ancestors(target))) > 1:
            e, s = snap.entitlements.get(target), Setting(target, "memory.min")
            if e is not None and e.chosen:  # between two processes a unit has no cgroup, and keeps its floor
                claim = max(_number(s, snap.settings, snap), float(e.floor.memory))
            else:
                claim = kept.get(target, 0.0)
            inside[above[-2]] = inside.get(above[-2], 0.0) + claim
    claims, tops = _Claims(snap, originals), snap.groups.children.get(ROOT, ())
    raised = ((t, Setting(t, "memory.min")) for t in tops if t.startswith("group/"))
    left = (
        _number(s, snap.settings, snap) - claims.of(snap.groups[t]) - inside.get(t, 0.0)
        for t, s in raised
        if s in originals
    )
    return Bytes(math.ceil(math.fsum(max(0.0, n) for n in left)))


def kept_above(snap: Snapshot, originals: Mapping[Setting, Value]) -> dict[TargetId, float]:
    """What groups that we raised keep for workloads without a cgroup, such as a unit between two processes."""
    kept = {}
    for target, e in snap.entitlements.items():
        here = snap.groups.get(target)
        if e.chosen and e.floor.memory and here is not None and not here.exists:
            for top in [*snap.groups.ancestors(target)][-2:-1]:
                if (s := Setting(top, "memory.min")) in originals:
                    kept[target] = min(float(e.floor.memory), _number(s, snap.settings, snap))
    return kept


class _Claims:
    def __init__(self, snap: Snapshot, originals: Mapping[Setting, Value]) -> None:
        self.snap = snap
        self.originals = originals
        self.floors: dict[TargetId, int] = {}
        for target, e in snap.entitlements.items():
            if e.chosen and e.floor.memory:
                for up in snap.groups.ancestors(target):
                    self.floors[up] = self.floors.get(up, 0) + e.floor.memory

    def inside(self, group: Group) -> float:
        """An absurd claim counts as the whole machine."""
        theirs = (min(f.memory_min, float(self.snap.node.memory)) for f in group.foreign)
        below = self.snap.groups.children.get(group.target, ())
        return math.fsum(theirs) + math.fsum(self.of(self.snap.groups[c]) for c in below)

    def of(self, group: Group) -> float:
        e = self.snap.entitlements.get(group.target)
        if group.owned or (e is not None and e.chosen):
            return 0.0
        had = _had(Setting(group.target, "memory.min"), self.snap, self.originals)
        ours = self.floors.get(group.target, 0)
        return max(self.inside(group), had - ours) if ours else had


def _had(s: Setting, snap: Snapshot, originals: Mapping[Setting, Value]) -> float:
    return _number(s, originals if s in originals else snap.settings, snap)


def _number(s: Setting, values: Mapping[Setting, Value], snap: Snapshot) -> float:
    value = values.get(s)
    return min(float(value), float(snap.node.memory)) if isinstance(value, float | int) else 0.0
