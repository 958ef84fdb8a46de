"""What a profile's sections may say, alone and together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from msgspec import UNSET, UnsetType

from j10ce.errors import Finding
from j10ce.model.kinds import (
    CacheSection,
    CpuSection,
    IoSection,
    MemorySection,
    NetworkSection,
    QoSProfileSpec,
    Tier,
)
from j10ce.model.knob import KNOBS
from j10ce.model.parts.sections import CpuOverlay, NetworkDirection
from j10ce.model.quantity import Quantity

PROTECTED: Final = frozenset({Tier.SYSTEM, Tier.EXCLUSIVE, Tier.RESERVED, Tier.SENSITIVE})
OWN_CPUS: Final = ("reserved", "exclusive")
MOST_IOPS: Final = 10**9
NO_DIRECTION: Final = NetworkDirection()
# As the kernels that have them take them.
WATERMARK_SCALES: Final = (1, 1000)
WATERMARK_ADJUSTS: Final = (-25, 50)
KERNEL_PRIORITIES: Final = (0, 12)


def sections(spec: QoSProfileSpec) -> Iterator[Finding]:
    yield from _cpu(spec)
    yield from memory_findings("spec.memory", spec.memory)
    yield from network_findings("spec.network", spec.network)
    yield from io_findings("spec.io", spec.io)
    yield from cache_findings("spec.cache", spec.cache)


def outside(path: str, value: float | UnsetType, low: float, high: float) -> Iterator[Finding]:
    """A finding when a number that was given is not within its range."""
    if value is not UNSET and not low <= value <= high:  # not a number is outside, too
        yield Finding(path, value, "out of range", f"use {low:g} to {high:g}")


def percentage(path: str, q: Quantity) -> Iterator[Finding]:
    if q.amount > 100:
        yield Finding(path, str(q), "more than the whole", "use at most 100%")


def _cpu(spec: QoSProfileSpec) -> Iterator[Finding]:
    cpu, tier = spec.cpu, spec.tier
    yield from cpu_findings("spec.cpu", cpu)
    lent = [name for name, on in (("idle", cpu.idle), ("suppressible", cpu.suppressible)) if on]
    for name in lent if tier in PROTECTED else ():
        yield Finding(
            f"spec.cpu.{name}", True, f"tier {tier.value} is never held back", "use tier standard or besteffort"
        )
    if cpu.bind is not UNSET and cpu.pinning not in OWN_CPUS:
        yield Finding("spec.cpu.bind", cpu.bind, "it has no CPUs of its own", "use pinning reserved or exclusive")
    claims = {"latency": cpu.latency == "realtime" and cpu.latency, "pinning": cpu.pinning in OWN_CPUS and cpu.pinning}
    for name, value in claims.items():
        if value and (lent or tier is Tier.BESTEFFORT):
            yield Finding(
                f"spec.cpu.{name}", value, "who gives way to others can have no CPU for itself", "use a better tier"
            )


def cpu_findings(path: str, cpu: CpuSection | CpuOverlay) -> Iterator[Finding]:
    """Each field by itself, of a profile or of what a strategy says over it."""
    yield from outside(f"{path}.weight", cpu.weight, KNOBS["cpu.weight"].low, KNOBS["cpu.weight"].high)
    if cpu.burst is UNSET:
        return
    if cpu.burst.percent:
        yield from percentage(f"{path}.burst", cpu.burst)
    else:
        yield Finding(f"{path}.burst", str(cpu.burst), "not a percentage", "write a share of the limit, such as 50%")


def memory_findings(path: str, memory: MemorySection) -> Iterator[Finding]:
    yield from outside(f"{path}.minPercent", memory.min_percent, 0, 100)
    yield from outside(f"{path}.lowPercent", memory.low_percent, 0, 100)
    yield from outside(f"{path}.throttlingPercent", memory.throttling_percent, 0, 100)
    yield from outside(f"{path}.oomPriority", memory.oom_priority, -1000, 1000)
    if memory.min_percent is not UNSET and memory.low_percent is not UNSET and memory.low_percent < memory.min_percent:
        hint = f"leave it out or use at least minPercent, {memory.min_percent}"
        yield Finding(f"{path}.lowPercent", memory.low_percent, "below minPercent it changes nothing", hint)
    yield from outside(f"{path}.reclaim.targetPressure", memory.reclaim.target_pressure, 0, 100)
    for name, value, (low, high) in (
        ("watermarkPercent", memory.watermark_percent, (0, 100)),
        ("watermarkScale", memory.watermark_scale, WATERMARK_SCALES),
        ("watermarkAdjust", memory.watermark_adjust, WATERMARK_ADJUSTS),
        ("kernelPriority", memory.kernel_priority, KERNEL_PRIORITIES),
    ):
        yield from outside(f"{path}.{name}", value, low, high)
    if memory.page_cache_limit is not UNSET:
        yield from _page_cache(f"{path}.pageCacheLimit", memory.page_cache_limit)


def _page_cache(path: str, limit: Quantity) -> Iterator[Finding]:
    if limit.percent:
        yield from percentage(path, limit)
    elif limit.rate:
        yield Finding(path, str(limit), "a rate", "write 2Gi, or 50% of the limit")


def network_findings(path: str, network: NetworkSection) -> Iterator[Finding]:
    both = (f"{path}.", network.floor, network.ceiling)
    yield from _bounds(*both)
    for name, direction in (("egress", network.egress), ("ingress", network.ingress)):
        if direction == NO_DIRECTION:
            continue
        floor = network.floor if direction.floor is UNSET else direction.floor
        ceiling = network.ceiling if direction.ceiling is UNSET else direction.ceiling
        yield from _bounds(f"{path}.{name}.", floor, ceiling)


def _bounds(path: str, floor: Quantity | UnsetType, ceiling: Quantity | UnsetType) -> Iterator[Finding]:
    for name, q in (("floor", floor), ("ceiling", ceiling)):
        if q is not UNSET:
            yield from line_rate(f"{path}{name}", q, some=name == "ceiling")
    if floor is UNSET or ceiling is UNSET or floor.percent != ceiling.percent:
        return
    if floor.amount > ceiling.amount:
        yield Finding(f"{path}floor", str(floor), f"above the ceiling of {ceiling}", "lower it, or raise the other")


def line_rate(path: str, q: Quantity, *, some: bool = False) -> Iterator[Finding]:
    """Bits per second, or a percentage of what there is; `some`: none at all makes no sense."""
    if q.percent:
        yield from percentage(path, q)
    if some and not q.amount:
        yield Finding(path, str(q), "leaves nothing", "write it as 100Mbit, or leave it out")


def io_findings(path: str, io: IoSection) -> Iterator[Finding]:
    yield from outside(f"{path}.weight", io.weight, 1, 10_000)
    for name, q in (("readLimit", io.read_limit), ("writeLimit", io.write_limit)):
        if q is not UNSET:
            yield from byte_rate(f"{path}.{name}", q)
    yield from outside(f"{path}.readIopsLimit", io.read_iops_limit, 1, MOST_IOPS)
    yield from outside(f"{path}.writeIopsLimit", io.write_iops_limit, 1, MOST_IOPS)
    if io.latency is not UNSET and not 0 < io.latency.seconds < math.inf:
        yield Finding(f"{path}.latency", str(io.latency), "no time at all", "write it as 0.01s")


def byte_rate(path: str, q: Quantity) -> Iterator[Finding]:
    if q.percent or not q.amount:
        yield Finding(path, str(q), "not a rate", "write bytes per second, such as 100M")
    elif q.rate:
        yield Finding(path, str(q), "written as a line rate, in bits", "write bytes per second, such as 100M")


def cache_findings(path: str, cache: CacheSection) -> Iterator[Finding]:
    start, end = cache.llc_start_percent, cache.llc_end_percent
    yield from outside(f"{path}.llcStartPercent", start, 0, 100)
    yield from outside(f"{path}.llcEndPercent", end, 0, 100)
    yield from outside(f"{path}.memoryBandwidthPercent", cache.memory_bandwidth_percent, 1, 100)
    first, last = 0 if start is UNSET else start, 100 if end is UNSET else end
    if first >= last:
        yield Finding(
            f"{path}.llcStartPercent", first, f"not below llcEndPercent, {last}", "leave at least one percent"
        )
