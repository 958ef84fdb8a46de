"""What a QoSProfile may say, one section per resource."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType, field

from j10ce.model.parts.strict import Strict
from j10ce.model.quantity import Duration, Quantity

Bind = Literal["full-cores", "spread"]


class CpuSection(Strict, frozen=True, kw_only=True):
    weight: int | UnsetType = UNSET  # shares among the workloads of one tier
    latency: Literal["normal", "realtime"] = "normal"
    pinning: Literal["none", "shared", "reserved", "exclusive"] = "none"
    bind: Bind | UnsetType = UNSET  # which CPUs it has together; UNSET: whole cores where it can
    burst: Quantity | UnsetType = UNSET  # percent of the limit that may be saved up
    idle: bool = False
    core_sched: bool = False
    core_expeller: bool | UnsetType = UNSET  # whether those that are none stay off its cores; UNSET: by the tier
    suppressible: bool = False


class ReclaimSection(Strict, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    target_pressure: float | UnsetType = UNSET  # percent of time stalled


class MemorySection(Strict, frozen=True, kw_only=True):
    min_percent: int | UnsetType = UNSET  # of the request, never reclaimed
    low_percent: int | UnsetType = UNSET  # of the request, reclaimed last
    throttling_percent: int | UnsetType = UNSET  # where between request and limit slowing down begins
    oom_priority: int | UnsetType = UNSET  # the lowest goes first
    oom_group: bool | UnsetType = UNSET
    reclaim: ReclaimSection = ReclaimSection()
    watermark_percent: int | UnsetType = UNSET  # of the limit, above which memory is taken back in the background
    watermark_scale: int | UnsetType = UNSET  # of kernels that have watermarks: ten-thousandths between the two
    watermark_adjust: int | UnsetType = UNSET  # of those: percent by which the machine's own watermark is moved
    page_cache_limit: Quantity | UnsetType = UNSET  # percent of the limit, or bytes
    page_cache_sync: bool | UnsetType = UNSET  # of kernels that limit page cache: whoever reads waits for it
    kernel_priority: int | UnsetType = UNSET  # of kernels that have memory.priority: the lowest goes first
    kernel_priority_oom: bool | UnsetType = UNSET  # of those: whether it decides inside the workload


class NetworkDirection(Strict, frozen=True, kw_only=True):
    """What leaves, or what comes in: bits per second, or percent of the slowest managed link."""

    floor: Quantity | UnsetType = UNSET
    ceiling: Quantity | UnsetType = UNSET


class NetworkSection(Strict, frozen=True, kw_only=True):
    class_: Literal["critical", "normal", "bulk"] | UnsetType = field(default=UNSET, name="class")
    floor: Quantity | UnsetType = UNSET  # of each direction of which nothing else is said
    ceiling: Quantity | UnsetType = UNSET
    egress: NetworkDirection = NetworkDirection()
    ingress: NetworkDirection = NetworkDirection()


class IoSection(Strict, frozen=True, kw_only=True):
    weight: int | UnsetType = UNSET
    read_limit: Quantity | UnsetType = UNSET  # bytes per second on every disk
    write_limit: Quantity | UnsetType = UNSET
    read_iops_limit: int | UnsetType = UNSET
    write_iops_limit: int | UnsetType = UNSET
    latency: Duration | UnsetType = UNSET


class CacheSection(Strict, frozen=True, kw_only=True):
    llc_start_percent: int | UnsetType = UNSET
    llc_end_percent: int | UnsetType = UNSET
    memory_bandwidth_percent: int | UnsetType = UNSET


class CpuOverlay(Strict, frozen=True, kw_only=True):
    """What is said on top of a profile's section; what is not set stays as the profile has it."""

    weight: int | UnsetType = UNSET
    latency: Literal["normal", "realtime"] | UnsetType = UNSET
    pinning: Literal["none", "shared", "reserved", "exclusive"] | UnsetType = UNSET
    bind: Bind | UnsetType = UNSET
    burst: Quantity | UnsetType = UNSET
    idle: bool | UnsetType = UNSET
    core_sched: bool | UnsetType = UNSET
    core_expeller: bool | UnsetType = UNSET
    suppressible: bool | UnsetType = UNSET


class MemoryOverlay(MemorySection, frozen=True, kw_only=True):
    """Likewise; a profile's section has no defaults either."""


class ProfileOverlay(Strict, frozen=True, kw_only=True):
    """What is said on top of a profile: by a node's strategy for all that have it, or of one workload alone."""

    cpu: CpuOverlay = CpuOverlay()
    memory: MemoryOverlay = MemoryOverlay()
    cache: CacheSection = CacheSection()
    network: NetworkSection = NetworkSection()
    io: IoSection = IoSection()
