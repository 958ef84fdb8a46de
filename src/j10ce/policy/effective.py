"""Effective protection: whether what was promised really holds, and who annuls it where it does not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from j10ce.model.knob import ROOT, Setting, TargetId
from j10ce.model.resource import NOTHING, Resources, spell
from j10ce.model.snapshot import Snapshot
from j10ce.policy.cpu_share import CpuTime, cpu_times
from j10ce.policy.memory_share import Protected, distribute, full_usage, present_usage

CPU_SLACK: Final = 0.5  # millicores: what rounding weights to whole numbers may cost


class Effective(Struct, frozen=True):
    """What protects one workload. A reason names who annuls a floor; it is empty where the floor holds."""

    target: TargetId
    promised: Resources = NOTHING
    cpu: float = 0.0  # millicores, when every sibling is runnable
    memory: float = 0.0  # bytes, when everyone uses all that is protected or promised to it
    memory_min: float = 0.0  # bytes the kernel refuses to reclaim at the present usage
    memory_low: float = 0.0
    cpu_reason: str = ""
    memory_reason: str = ""

    @property
    def holds(self) -> bool:
        return not self.cpu_reason and not self.memory_reason


def effective(snap: Snapshot) -> Mapping[TargetId, Effective]:
    """Every workload that has a place in the tree."""
    times = cpu_times(snap)
    present, full = present_usage(snap), full_usage(snap)
    now = [distribute(snap, knob, present, full=False) for knob in ("memory.min", "memory.low")]
    needed = [distribute(snap, knob, full, full=True) for knob in ("memory.min", "memory.low")]
    return {t: _judge(snap, t, times, now, needed) for t in snap.workloads if t in times}


def _judge(
    snap: Snapshot,
    target: TargetId,
    times: Mapping[TargetId, CpuTime],
    now: Sequence[Protected],
    needed: Sequence[Protected],
) -> Effective:
    e = snap.entitlements.get(target)
    promised = e.floor if e else NOTHING
    path = [*reversed(list(snap.groups.ancestors(target))), target][1:]  # from below the root
    page = snap.node.page
    cap, capped_by = _cap(snap, path)
    memory = min(cap, page * max(p.effective[target] for p in needed))
    cpu = times[target].total
    return Effective(
        target,
        promised,
        promised.cpu if promised.cpu - CPU_SLACK <= cpu < promised.cpu else cpu,
        memory,
        page * now[0].effective[target],
        page * now[1].effective[target],
        "" if cpu >= promised.cpu - CPU_SLACK else _cpu_reason(snap, path, times, promised.cpu),
        "" if memory > promised.memory - page else _memory_reason(snap, path, needed, promised.memory, cap, capped_by),
    )


def _cpu_reason(snap: Snapshot, path: Sequence[TargetId], times: Mapping[TargetId, CpuTime], need: int) -> str:
    """The first group from the top that is left with too little."""
    if not snap.supports("cpu.weight"):
        return _missing(snap, "cpu.weight")
    above = times[ROOT].total
    for target in path:
        time = times[target]
        if time.total < need - CPU_SLACK:
            return _cpu_fault(snap, target, time, above, need)
        above = time.total
    return f"{above:.0f}m are left"


def _cpu_fault(snap: Snapshot, target: TargetId, time: CpuTime, above: float, need: int) -> str:
    if time.quota < need:
        return f"cpu.max of {target} allows {time.quota:.0f}m"
    if len(time.cpus) * 1000 < need:
        return f"cpuset.cpus of {target} has {len(time.cpus)} CPUs"
    idle = ", cpu.idle is set" if snap.settings.get(Setting(target, "cpu.idle")) == 1.0 else ""
    return f"{target} has {time.weight:.0f} of {time.rivals:.0f} shares{idle}: {time.total:.0f}m of {above:.0f}m"


def _cap(snap: Snapshot, path: Sequence[TargetId]) -> tuple[float, str]:
    """The lowest memory limit on the way, and whose it is."""
    caps = [
        (float(value), f"{knob} of {target}")
        for target in path
        for knob in ("memory.max", "memory.high")
        if isinstance(value := snap.settings.get(Setting(target, knob)), float | int)
    ]
    return min(caps, default=(math.inf, ""))


def _memory_reason(
    snap: Snapshot, path: Sequence[TargetId], needed: Sequence[Protected], need: int, cap: float, capped_by: str
) -> str:
    if not snap.supports("memory.min"):
        return _missing(snap, "memory.min")
    if cap < need:
        return f"{capped_by} is {spell('memory', cap)}"
    page, kind = snap.node.page, max(needed, key=lambda p: p.setting[path[-1]])
    above = ROOT
    for target in path:
        if kind.effective[target] * page < need:
            if kind.setting[target] * page < need or above == ROOT:
                return f"{kind.knob} of {target} is {spell('memory', kind.setting[target] * page)}"
            has, claimed = kind.effective[above] * page, kind.claimed[above] * page
            return f"{above} has {spell('memory', has)} to protect and {spell('memory', claimed)} are claimed inside"
        above = target
    return f"{kind.knob} protects less than a page"


def _missing(snap: Snapshot, knob: str) -> str:
    support = snap.support.get(knob)
    needs = f": needs {support.needs}" if support and support.needs else ""
    instead = f"; instead: {support.instead}" if support and support.instead else ""
    return f"{knob} is not enforceable here{needs}{instead}"
