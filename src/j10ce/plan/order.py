"""The order of writes: the tree is valid after every single one.

remove        bottom up; the dead claim nothing
make, enable  top down
links queued on  before anything is said of traffic there; that ends last of all, since links stand above all others
threads made fair      before budgets of real-time go
guarantees lowered     bottom up   children first, so that their sum fits
caps and sets loosened  top down    room appears before it is used
guarantees raised, shares, switches  top down
caps and sets tightened  bottom up   children fit before the parent shrinks
threads made real-time  once there are budgets for it
join          last; a command starts with all its values in force
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from j10ce.model.knob import CGROUP_KINDS, KNOBS, ROOT, KnobRole, Setting, TargetId, Value, kind_of
from j10ce.model.plan import Change, Enable, Join, Make, Remove, Structural, ValueChange
from j10ce.model.snapshot import Snapshot
from j10ce.plan.merge import cpus


class Step(IntEnum):
    REMOVE = 1
    MAKE = 2
    WAKE = 3  # clear cpu.idle, which blocks its group's weight
    GROUND = 4  # queueing on a link begins, which traffic is then divided in
    CALM = 5
    GIVE_BACK = 6
    LOOSEN = 7
    PROTECT = 8
    TIGHTEN = 9
    REALTIME = 10
    JOIN = 11


BOTTOM_UP: Final = frozenset({Step.REMOVE, Step.GIVE_BACK, Step.TIGHTEN})
NUMBERS: Final = {name: n for n, name in enumerate(KNOBS)}  # cpu.max stands before cpu.max.burst

TRAFFIC_DEPTHS: Final = {"link": 0, "share": 1}  # above all workloads, of which none is in the root


class SortKey(NamedTuple):
    step: Step
    level: int
    target: TargetId
    minor: int
    instance: str


def order(values: Iterable[ValueChange], structural: Iterable[Structural], snap: Snapshot) -> tuple[Change, ...]:
    """Ordered; a set that moves sideways while children use it becomes two writes: widen, then narrow."""
    keyed: list[tuple[SortKey, Change]] = [(_structural_key(c, snap), c) for c in structural]
    sets = _Sets(snap)
    for change in values:
        if change.setting.knob == "cpuset.cpus":
            keyed.extend((_key(step, part, snap), part) for step, part in sets.steps(change))
        else:
            keyed.append((_key(_step(change), change, snap), change))
    return tuple(change for _, change in sorted(keyed, key=lambda pair: pair[0]))


def _structural_key(change: Structural, snap: Snapshot) -> SortKey:
    depth = _depth(change.target, snap)
    match change:
        case Remove():
            return SortKey(Step.REMOVE, -depth, change.target, 0, "")
        case Make():
            return SortKey(Step.MAKE, depth, change.target, 0, "")
        case Enable():
            return SortKey(Step.MAKE, depth, change.target, 1, "")
        case Join(pid=pid):
            return SortKey(Step.JOIN, depth, change.target, pid, "")


def _key(step: Step, change: ValueChange, snap: Snapshot) -> SortKey:
    s = change.setting
    down = -1 if step in BOTTOM_UP else 1  # bottom up, and burst before cpu.max
    return SortKey(
        step, down * _depth(s.target, snap), s.target, down * NUMBERS.get(s.knob, 99), f"{s.instance}{s.knob}"
    )


def _depth(target: TargetId, snap: Snapshot) -> int:
    """Beside cgroups a target's kind or name says what it stands in."""
    kind = kind_of(target)
    if kind in CGROUP_KINDS:
        return snap.groups.depth(target)
    return TRAFFIC_DEPTHS.get(kind, target.count("/"))


def _step(change: ValueChange) -> Step:
    s = change.setting
    if s.knob not in KNOBS:
        return Step.PROTECT
    k = KNOBS[s.knob]
    if kind_of(s.target) == "link" and k.default in (change.old, change.new):
        return Step.TIGHTEN if change.new == k.default else Step.GROUND
    raised = _amount(change.new) > _amount(change.old if change.old is not None else k.default)
    match k.role:
        case KnobRole.GUARANTEE:
            return Step.PROTECT if raised else Step.GIVE_BACK
        case KnobRole.CAP:
            return Step.LOOSEN if raised else Step.TIGHTEN
        case KnobRole.LEVEL if s.knob == "sched.realtime":
            return Step.REALTIME if raised else Step.CALM
        case KnobRole.SWITCH if s.knob == "cpu.idle" and not change.new:
            return Step.WAKE
        case KnobRole.SHARE | KnobRole.SWITCH | KnobRole.PLACEMENT | KnobRole.LEVEL:
            return Step.PROTECT


def _amount(value: Value) -> float:
    return value if isinstance(value, int | float) else math.nan


class _Sets:
    """CPU sets by what they mean: an empty one means all of the parent's."""

    def __init__(self, snap: Snapshot) -> None:
        self.snap = snap

    def steps(self, change: ValueChange) -> list[tuple[Step, ValueChange]]:
        target = change.setting.target
        new = cpus(change.new)
        old = cpus(change.old) if change.old is not None else frozenset[int]()
        before = old or self._before(self.snap.groups.parent(target))
        if not new or before <= new:
            return [(Step.LOOSEN, change)]
        if new <= before or not self.snap.groups.children.get(target):
            return [(Step.TIGHTEN, change)]
        both = before | new
        return [
            (Step.LOOSEN, change._replace(new=both, why=f"{change.why} (first widened)", ends=False)),
            (Step.TIGHTEN, change._replace(old=both)),
        ]

    def _before(self, target: TargetId | None) -> frozenset[int]:
        while target is not None and target != ROOT:
            if own := cpus(self.snap.settings.get(Setting(target, "cpuset.cpus"), frozenset())):
                return own
            target = self.snap.groups.parent(target)
        return self.snap.node.cpus
