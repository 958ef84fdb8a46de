"""`resource-qos-config` as what differs from our profiles on a node. A block that is off says nothing.

Percentages of memory that nobody wrote stay those of the profile: their defaults protect nothing. Watermarks have the
defaults of the class.
"""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, UnsetType

from j10ce.dialects.koordinator.config.fields import Plain
from j10ce.dialects.koordinator.config.qos import DEFAULTS, ClassQos, CpuQos, MemoryBlock, ResctrlQos, ResourceQos
from j10ce.dialects.koordinator.memory import beyond_percentages
from j10ce.model.kinds import CacheSection
from j10ce.model.parts.sections import CpuOverlay, MemoryOverlay, ProfileOverlay
from j10ce.model.parts.strategy import Strategy

WHOLE: Final = 100  # percent
BEST_EFFORT: Final = "be"
ASIDE: Final = "system"  # in no rule of core scheduling


def _spoken(name: str, block: Plain) -> Plain:
    if name != "memoryQOS":
        return block
    return {field: value for field, value in block.items() if field == "enable" or field.startswith("wmark")}


SPOKEN_DEFAULTS: Final[Plain] = {  # of memory its watermarks alone
    field: {name: _spoken(name, block) for name, block in blocks.items()} for field, blocks in DEFAULTS.items()
}


def resource_qos(their: ResourceQos) -> Strategy:
    """LSE has the block of LSR."""
    cookies = their.policies is not UNSET and their.policies.cpu_policy == "coreSched"
    blocks = {
        "be": their.be_class,
        "ls": their.ls_class,
        "lsr": their.lsr_class,
        "lse": their.lsr_class,
        "system": their.system_class,
    }
    overlays = {name: _overlay(name, block, cookies) for name, block in blocks.items() if block is not UNSET}
    return Strategy(profiles={name: overlay for name, overlay in overlays.items() if overlay != ProfileOverlay()})


def _overlay(profile: str, block: ClassQos, cookies: bool) -> ProfileOverlay:
    cpu, memory, cache = block.cpu_qos, block.memory_qos, block.resctrl_qos
    return ProfileOverlay(
        cpu=_cpu(profile, cpu, cookies) if cpu is not UNSET and cpu.enable is True else CpuOverlay(),
        memory=_memory(memory) if memory is not UNSET and memory.enable is True else MemoryOverlay(),
        cache=_cache(cache) if cache is not UNSET and cache.enable is True else CacheSection(),
    )


def _cpu(profile: str, cpu: CpuQos, cookies: bool) -> CpuOverlay:
    """Whoever is to give way is idle; only best effort can be. Core scheduling takes the place of identities."""
    behind = not cookies and cpu.group_identity is not UNSET and cpu.group_identity < 0
    idle = behind or cpu.sched_idle == 1
    return CpuOverlay(
        idle=idle if profile == BEST_EFFORT else UNSET,
        core_sched=True if cookies and profile != ASIDE else UNSET,
        core_expeller=cpu.core_expeller if cookies and profile != ASIDE else UNSET,
    )


def _memory(memory: MemoryBlock) -> MemoryOverlay:
    """Low is at least min, as their law has it; throttling at 0 % is none at all; of priorities the lowest goes first,
    as of ours."""
    least, low, throttling = memory.min_limit_percent, memory.low_limit_percent, memory.throttling_percent
    return MemoryOverlay(
        min_percent=least,
        low_percent=_at_least(low, least),
        throttling_percent=WHOLE if throttling == 0 else throttling,
        oom_priority=memory.priority if memory.priority_enable == 1 else UNSET,
        oom_group=UNSET if memory.oom_kill_group is UNSET else memory.oom_kill_group == 1,
        **beyond_percentages(memory),
    )


def _at_least(low: int | UnsetType, least: int | UnsetType) -> int | UnsetType:
    return low if low is UNSET or least is UNSET else max(low, least)


def _cache(cache: ResctrlQos) -> CacheSection:
    return CacheSection(
        llc_start_percent=cache.cat_range_start_percent,
        llc_end_percent=cache.cat_range_end_percent,
        memory_bandwidth_percent=cache.mba_percent,
    )
