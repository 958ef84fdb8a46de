"""What a NodeStrategy may say of its nodes, one section per concern.

Every field may be left out: then a strategy of lower priority has the word, in the end the default, which is whoever
obeys the field's to know. docs/node-strategy.md lists units, ranges and defaults.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field

from j10ce.model.bounds import Several, Word, Words
from j10ce.model.parts.devices import DisksSection, LinksSection
from j10ce.model.parts.sections import ProfileOverlay
from j10ce.model.parts.strict import Strict
from j10ce.model.quantity import Duration, Quantity

EVICTIONS_PER_MINUTE: Final = 2  # of one node, unless its strategies say another number
MOST_PROFILES: Final = 64  # that one strategy speaks of


class SuppressSection(Strict, frozen=True, kw_only=True):
    """How best effort gives way when the protected need CPU time."""

    mode: Literal["auto", "quota", "cpuset", "buffer"] | UnsetType = UNSET
    threshold_percent: int | UnsetType = UNSET  # of the node's CPUs, for everyone together
    min_percent: int | UnsetType = UNSET  # of the node's CPUs, which best effort keeps
    buffer_cpus: Quantity | UnsetType = UNSET  # kept idle; mode buffer


class BurstSection(Strict, frozen=True, kw_only=True):
    """What a workload with a CPU limit may use beyond it for a while."""

    policy: Literal["none", "static", "quota", "auto"] | UnsetType = UNSET
    static_percent: int | UnsetType = UNSET  # of the limit, saved up in the kernel
    quota_percent: int | UnsetType = UNSET  # of the limit, to which a quota is raised at most
    period: Duration | UnsetType = UNSET  # for how long at the highest quota; unlimited when not said
    share_pool_percent: int | UnsetType = UNSET  # use of the shared CPUs above which nothing is raised


class MemoryEviction(Strict, frozen=True, kw_only=True):
    """By the memory in use, in percent of the node's."""

    threshold_percent: int | UnsetType = UNSET
    lower_percent: int | UnsetType = UNSET


class CpuEviction(Strict, frozen=True, kw_only=True):
    """By CPU time: of the node, and of what best effort gets of its wishes."""

    threshold_percent: int | UnsetType = UNSET
    lower_percent: int | UnsetType = UNSET
    satisfaction_lower_percent: int | UnsetType = UNSET
    satisfaction_upper_percent: int | UnsetType = UNSET
    usage_percent: int | UnsetType = UNSET
    window: Duration | UnsetType = UNSET
    policy: Literal["realLimit", "allocatable"] | UnsetType = UNSET


class AllocatableEviction(Strict, frozen=True, kw_only=True):
    """By what is requested, in percent of what may be."""

    cpu_threshold_percent: int | UnsetType = UNSET
    cpu_lower_percent: int | UnsetType = UNSET
    memory_threshold_percent: int | UnsetType = UNSET
    memory_lower_percent: int | UnsetType = UNSET
    priority_threshold: int | UnsetType = UNSET


class EvictionSection(Strict, frozen=True, kw_only=True):
    """The last resort: when workloads have to leave the node, which, and how fast."""

    mode: Literal["propose", "enforce"] | UnsetType = UNSET
    per_minute: int | UnsetType = UNSET
    cool_down: Duration | UnsetType = UNSET
    memory: MemoryEviction = MemoryEviction()
    cpu: CpuEviction = CpuEviction()
    allocatable: AllocatableEviction = AllocatableEviction()
    priority_threshold: int | UnsetType = UNSET  # of Kubernetes; whoever has more is not evicted


class SysctlSection(Strict, frozen=True, kw_only=True):
    min_free_kbytes_factor: int | UnsetType = UNSET  # ten-thousandths of the node's memory
    watermark_scale_factor: int | UnsetType = UNSET  # ten-thousandths of a zone's memory, as the kernel counts
    sched_features: Words = ()  # as the kernel spells them: NAME switches one on, NO_NAME off
    sched_group_identity: bool | UnsetType = UNSET  # of kernels with cpu.bvt_warp_ns
    sched_idle_saver_wmark: int | UnsetType = UNSET  # of those: nanoseconds
    memcg_reap_background: bool | UnsetType = UNSET  # of kernels that reap what removed cgroups left
    page_cache_limit: bool | UnsetType = UNSET  # of kernels that limit page cache


class HostApplication(Strict, frozen=True, kw_only=True):
    """Something that runs beside all workloads, in a cgroup that it has already."""

    name: Word
    cgroup: Word  # below the root of the hierarchy
    profile: Word = ""
    priority: Literal["prod", "mid", "batch", "free"] | UnsetType = UNSET


class LawSection(Strict, frozen=True, kw_only=True):
    """Fields of the law by which one resource is lent."""

    threshold_percent: int | UnsetType = UNSET
    by: Literal["usage", "request", "maxUsageRequest"] | UnsetType = UNSET
    batch_percent: int | UnsetType = UNSET
    mid_percent: int | UnsetType = UNSET
    mid_unallocated_percent: int | UnsetType = UNSET
    mid_static_percent: int | UnsetType = UNSET  # of the capacity, whatever is used or predicted
    safety_percent: int | UnsetType = UNSET
    reserved: Quantity | UnsetType = UNSET  # for the machine itself: CPUs or bytes


class OvercommitSection(Strict, frozen=True, kw_only=True):
    """How much of the node may be lent to reclaimable workloads."""

    cpu: LawSection = LawSection()
    memory: LawSection = LawSection()
    degrade: Duration | UnsetType = UNSET
    refresh: Duration | UnsetType = UNSET
    difference: float | UnsetType = UNSET


class NormalizationSection(Strict, frozen=True, kw_only=True):
    ratio: float | UnsetType = UNSET  # what a CPU of these nodes is worth, in CPUs of the slowest of the fleet


class InterferenceSection(Strict, frozen=True, kw_only=True):
    mode: Literal["off", "observe", "act"] | UnsetType = UNSET


class SystemCpusSection(Strict, frozen=True, kw_only=True):
    """The CPUs of what the node itself lives on."""

    cpus: Word | UnsetType = UNSET  # as the kernel lists them: 0-1,8
    exclusive: bool | UnsetType = UNSET  # everyone else of ours keeps off


class Strategy(Strict, frozen=True, kw_only=True):
    """All that can be said of a node: by one NodeStrategy, or by all that select it, merged."""

    suppress: SuppressSection = SuppressSection()
    burst: BurstSection = BurstSection()
    profiles: Annotated[dict[Word, ProfileOverlay], Meta(max_length=MOST_PROFILES)] = field(default_factory=dict)
    eviction: EvictionSection = EvictionSection()
    sysctls: SysctlSection = SysctlSection()
    host_applications: Several[HostApplication] = ()
    overcommit: OvercommitSection = OvercommitSection()
    normalization: NormalizationSection = NormalizationSection()
    interference: InterferenceSection = InterferenceSection()
    system_cpus: SystemCpusSection = SystemCpusSection()
    network: LinksSection = LinksSection()
    io: DisksSection = DisksSection()
