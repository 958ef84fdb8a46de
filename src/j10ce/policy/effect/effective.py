"""Effective protection: whether what was promised really holds, and who annuls it where it does not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from j10ce.model.knob import PERIOD_US, ROOT, Setting, TargetId
from j10ce.model.resource import NOTHING, RESOURCES, Resources
from j10ce.model.snapshot import Snapshot
from j10ce.policy.effect.cpu_share import CpuTime, cpu_times, parts_quota
from j10ce.policy.effect.disk_load import DiskLoad
from j10ce.policy.effect.memory_kept import Kept, MemoryKept
from j10ce.policy.effect.rates import NO_RATES, Rates, rates
from j10ce.policy.effect.support import missing

CPU_SLACK: Final = 0.5  # millicores: what rounding weights to whole numbers may cost
REALTIME_MOST: Final = 900.0  # millicores of each CPU that may be real-time
LENT: Final = 0.01  # of CPUs that are lent while idle: what idle work has of them before it gives way


class Effective(Struct, frozen=True):
    """What protects one workload. A reason names who annuls a floor; it is empty where the floor holds."""

    target: TargetId
    promised: Resources = NOTHING
    cpu: float = 0.0  # millicores, when every sibling is runnable
    memory: float = 0.0  # bytes, when everyone uses all that is protected or promised to it
    memory_min: float = 0.0  # bytes the kernel refuses to reclaim at the present usage
    memory_low: float = 0.0
    memory_used: float = 0.0  # bytes charged to its cgroup now
    cpu_reason: str = ""
    memory_reason: str = ""
    rates: Rates = NO_RATES  # of network and disks, where they were promised

    @property
    def memory_now(self) -> float:
        """Bytes of it that are in memory and protected at this moment."""
        return min(self.memory_used, max(self.memory_min, self.memory_low))

    @property
    def holds(self) -> bool:
        return not self.cpu_reason and not self.memory_reason and not any(r.reason for r in self.rates.values())

    def rows(self) -> Iterator[tuple[str, float, float, str]]:
        """(resource, promised, effective, why less) of everything that was promised."""
        yield "cpu", self.promised.cpu, self.cpu, self.cpu_reason
        yield "memory", self.promised.memory, self.memory, self.memory_reason
        for resource, rate in self.rates.items():
            yield resource, self.promised[RESOURCES.index(resource)], rate.amount, rate.reason


def effective(
    snap: Snapshot, counted_late: Collection[TargetId] = (), only: Collection[TargetId] | None = None
) -> Mapping[TargetId, Effective]:
    """Every workload that has a place in the tree, or some of them. `counted_late`: groups that count memory apart
    since we asked."""
    times = cpu_times(snap)
    memory, disks = MemoryKept(snap, counted_late), DiskLoad(snap)
    return {t: _judge(snap, t, times, memory, disks) for t in (only or snap.workloads) if t in times}


def _judge(
    snap: Snapshot, target: TargetId, times: Mapping[TargetId, CpuTime], memory: MemoryKept, disks: DiskLoad
) -> Effective:
    e = snap.entitlements.get(target)
    promised = e.floor if e else NOTHING
    path = [*reversed(list(snap.groups.ancestors(target))), target][1:]  # from below the root
    kept: Kept = memory.of(path, promised.memory)
    parts = parts_quota(snap, target)
    cpu = max(min(times[target].total, parts), _realtime(snap, target, times[target]))
    slack = CPU_SLACK + (promised.cpu * LENT if e and e.cpu.pinning == "reserved" else 0.0)
    return Effective(
        target,
        promised,
        promised.cpu if promised.cpu - slack <= cpu < promised.cpu else cpu,
        kept.bytes,
        *kept.now,
        snap.groups[target].memory_current,
        "" if cpu >= promised.cpu - slack else _cpu_reason(snap, path, times, promised.cpu, parts),
        kept.reason,
        rates(snap, e, disks) if e else NO_RATES,
    )


def _realtime(snap: Snapshot, target: TargetId, time: CpuTime) -> float:
    """Millicores in which its threads run before everyone else's, whatever these weigh."""
    rate = snap.settings.get(Setting(target, "sched.realtime"), 0.0)
    return min(rate * 1000 / PERIOD_US, len(time.cpus) * REALTIME_MOST) if isinstance(rate, float | int) else 0.0


def _cpu_reason(
    snap: Snapshot, path: Sequence[TargetId], times: Mapping[TargetId, CpuTime], need: int, parts: float
) -> str:
    """Who has too few CPUs, else the first group from the top that is left with too little, else its own parts."""
    if not snap.supports("cpu.weight"):
        return missing(snap, "cpu.weight")
    if few := next((t for t in path if len(times[t].cpus) * 1000 < need), None):
        return f"cpuset.cpus of {few} has {len(times[few].cpus)} CPUs"
    above = times[ROOT].total
    for target in path:
        time = times[target]
        if time.total < need - CPU_SLACK:
            return _cpu_fault(snap, target, time, above, need)
        above = time.total
    return f"cpu.max of its containers allows {parts:.0f}m"


def _cpu_fault(snap: Snapshot, target: TargetId, time: CpuTime, above: float, need: int) -> str:
    if time.quota < need:
        return f"cpu.max of {target} allows {time.quota:.0f}m"
    idle = ", cpu.idle is set" if snap.settings.get(Setting(target, "cpu.idle")) == 1.0 else ""
    return f"{target} has {time.weight:.0f} of {time.rivals:.0f} shares{idle}: {time.total:.0f}m of {above:.0f}m"
