"""`floors`: what a workload was promised, it has: memory, CPU time, and whole CPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from j10ce.control.controller import Controller
from j10ce.control.cpu.cpusets.owners import Cpus
from j10ce.control.cpu.cpusets.reserved import followers, placements, reserve
from j10ce.control.cpu.floors import awake, levels, looked_at, wishes
from j10ce.control.cpu.needs import TierWeights
from j10ce.control.memory.parts import part_shares
from j10ce.control.memory.protection import Protection, claimed, promised
from j10ce.model.kinds import Strict
from j10ce.model.knob import ROOT, Setting, TargetId
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot


class Floors:
    """Memory as memory.min and memory.low, CPU as weights, whole CPUs as cpusets.

    The only controller that wants cpu.weight, except for the idle ones (`cpu-idle`) and the agent (`own`): profile
    weights and floors are one sum among siblings. Covering children with memory is the arbiter's work for our own
    groups; for groups above them that are not ours, it is asked for here, and only upwards. Weights of what is not
    ours are taken as they are in force, by the last read-back.
    """

    name = "floors"
    steady = True

    class Config(Strict, frozen=True, kw_only=True):
        tier_weights: TierWeights = TierWeights()

    def __init__(self, config: Config) -> None:
        self.config = config
        self.reads: frozenset[Setting] = frozenset()
        self._rates: dict[TargetId, float] = {}
        self._cpus: dict[TargetId, Cpus] = {}

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        yield from self._memory(snap)
        decided = levels(snap, self.config.tier_weights, self._rates) if snap.supports("cpu.weight") else {}
        self.reads = looked_at(snap, decided)
        self._rates = {group: level.division.rate for group, level in decided.items()}
        for level in decided.values():
            yield from wishes(snap, level, self.name)
        if decided and snap.supports("cpu.idle"):
            yield from awake(snap, self.name)
        if snap.supports("cpuset.cpus"):
            reserved = reserve(snap, self._cpus)
            self._cpus = reserved.of
            yield from placements(snap, reserved, self.name)
            yield from followers(snap, self.name)

    def _memory(self, snap: Snapshot) -> Iterator[Proposal]:
        for e in snap.entitlements.values():
            if e.chosen and e.floor.memory:
                floor, kept = spell("memory", e.floor.memory), promised(e, snap.node.page)
                reason = f"floor {floor}"
                if kept.low:
                    reason = f"floor {floor}, of which memory.max lets {spell('memory', kept.min)} be memory.min"
                yield from self._protect(snap, e.target, kept, reason)
                yield from self._protect_parts(snap, e.target, kept, reason)
        for target, need in ancestors(snap).items():
            yield from self._protect(snap, target, need, "covers the floors inside it; not ours, so only upwards")

    def _protect_parts(self, snap: Snapshot, target: TargetId, kept: Protection, reason: str) -> Iterator[Proposal]:
        for share in part_shares(snap, snap.workloads[target]):
            need = share.of(kept, snap.node.page)
            yield from self._protect(snap, share.target, need, f"{share.fraction:.0%} of {target}'s {reason}")

    def _protect(self, snap: Snapshot, target: TargetId, need: Protection, reason: str) -> Iterator[Proposal]:
        for knob, value in (("memory.min", need.min), ("memory.low", need.low)):
            if value and snap.supports(knob):
                yield Proposal(Setting(target, knob), Bound.AT_LEAST, value, self.name, Rank.POLICY, reason)


def ancestors(snap: Snapshot) -> dict[TargetId, Protection]:
    """What each group above ours, but not ours, must protect.

    A group's protection is divided among its children by what they claim, so the foreign ones count too.
    """
    groups = snap.groups
    outside = {t for t, g in groups.by_target.items() if not (g.owned or t in snap.entitlements or t == ROOT)}
    claims: dict[TargetId, Protection] = {}
    for e in snap.entitlements.values() if outside else ():
        above = outside.intersection(groups.ancestors(e.target))
        if e.chosen and above and any(claim := claimed(e, snap.node.page)):
            claims |= {group: claims.get(group, Protection()).plus(claim) for group in above}
    foreign: dict[TargetId, Protection] = {}
    for group in claims:
        inside = groups[group].foreign
        theirs = Protection(math.fsum(f.memory_min for f in inside), math.fsum(f.memory_low for f in inside))
        for above_it in (group, *groups.ancestors(group)) if any(theirs) else ():
            foreign[above_it] = foreign.get(above_it, Protection()).plus(theirs)
    return {group: claim.where_claimed(foreign.get(group, Protection())) for group, claim in claims.items()}


_: Controller = Floors(Floors.Config())
