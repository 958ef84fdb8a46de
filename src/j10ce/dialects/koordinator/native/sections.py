"""One strategy of theirs, with its defaults, as sections of ours. What is switched off says nothing."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from j10ce.dialects.koordinator.annotations.node import NodeSays
from j10ce.dialects.koordinator.config.burst import BurstWish
from j10ce.dialects.koordinator.config.colocation import Colocation
from j10ce.dialects.koordinator.config.ratios import CpuNormalization, RatioModel
from j10ce.dialects.koordinator.config.system import System
from j10ce.dialects.koordinator.config.threshold import Threshold
from j10ce.dialects.koordinator.overrides import burst_of
from j10ce.model.parts.strategy import (
    AllocatableEviction,
    CpuEviction,
    EvictionSection,
    LawSection,
    MemoryEviction,
    NormalizationSection,
    OvercommitSection,
    Strategy,
    SuppressSection,
    SysctlSection,
)
from j10ce.model.quantity import Duration, Quantity

NOTHING: Final = Strategy()
MODES: Final[dict[str, Any]] = {"cpuset": "cpuset", "cfsQuota": "quota"}
EVICT_BY: Final[dict[str, Any]] = {"evictByRealLimit": "realLimit", "evictByAllocatable": "allocatable"}
WITHOUT_QUOTA: Final[dict[Any, Any]] = {"quota": "none", "auto": "static"}


def threshold(their: Threshold) -> Strategy:
    """Who is evicted is proposed alone: `eviction.mode` is for a native strategy to say."""
    if their.enable is not True:
        return NOTHING
    return Strategy(
        suppress=SuppressSection(
            mode=_word(MODES, their.cpu_suppress_policy),
            threshold_percent=their.cpu_suppress_threshold_percent,
            min_percent=their.cpu_suppress_min_percent,
        ),
        eviction=EvictionSection(
            memory=MemoryEviction(
                threshold_percent=their.memory_evict_threshold_percent, lower_percent=their.memory_evict_lower_percent
            ),
            cpu=_cpu_eviction(their),
            allocatable=AllocatableEviction(
                cpu_threshold_percent=their.cpu_allocatable_evict_threshold_percent,
                cpu_lower_percent=their.cpu_allocatable_evict_lower_percent,
                memory_threshold_percent=their.memory_allocatable_evict_threshold_percent,
                memory_lower_percent=their.memory_allocatable_evict_lower_percent,
                priority_threshold=their.allocatable_evict_priority_threshold,
            ),
            priority_threshold=their.evict_enabled_priority_threshold,
        ),
    )


def _cpu_eviction(their: Threshold) -> CpuEviction:
    return CpuEviction(
        threshold_percent=their.cpu_evict_threshold_percent,
        lower_percent=their.cpu_evict_lower_percent,
        satisfaction_lower_percent=their.be_satisfaction_lower,
        satisfaction_upper_percent=their.be_satisfaction_upper,
        usage_percent=their.be_usage_threshold,
        window=_seconds(their.cpu_evict_time_window_seconds),
        policy=_word(EVICT_BY, their.cpu_evict_policy),
    )


def burst(their: BurstWish) -> Strategy:
    """No time at all at a raised quota is no raised quota; without an end is what is not said."""
    made, period = burst_of(their), their.cfs_quota_burst_period_seconds
    if period is not UNSET and period <= 0:
        policy = WITHOUT_QUOTA.get(made.policy, made.policy) if period == 0 else made.policy
        made = replace(made, policy=policy, period=UNSET)
    return Strategy(burst=made)


def system(their: System) -> Strategy:
    return Strategy(
        sysctls=SysctlSection(
            min_free_kbytes_factor=their.min_free_kbytes_factor,
            watermark_scale_factor=their.watermark_scale_factor,
            sched_features=tuple(name if on else f"NO_{name}" for name, on in (their.sched_features or {}).items()),
            sched_group_identity=_switch(their.sched_group_identity_enabled),
            sched_idle_saver_wmark=their.sched_idle_saver_wmark,
            memcg_reap_background=_switch(their.memcg_reap_back_ground),
            page_cache_limit=_switch(their.page_cache_limit_enabled),
        )
    )


def colocation(their: Colocation) -> Strategy:
    """Switched off, nothing is lent: a share of 0 says so, since our manager lends unless it is said not to."""
    lends, static = their.enable is True, their.mid_reclaim_mode == "static"
    cpu = LawSection(
        threshold_percent=their.cpu_reclaim_threshold_percent,
        by=their.cpu_calculate_policy,
        batch_percent=their.batch_cpu_threshold_percent if lends else 0,
        mid_percent=their.mid_cpu_threshold_percent if lends else 0,
        mid_static_percent=their.mid_static_cpu_reserved_percent if static else UNSET,
        mid_unallocated_percent=their.mid_unallocated_percent,
    )
    memory = LawSection(
        threshold_percent=their.memory_reclaim_threshold_percent,
        by=their.memory_calculate_policy,
        batch_percent=their.batch_memory_threshold_percent if lends else 0,
        mid_percent=their.mid_memory_threshold_percent if lends else 0,
        mid_static_percent=their.mid_static_memory_reserved_percent if static else UNSET,
        mid_unallocated_percent=their.mid_unallocated_percent,
    )
    return Strategy(
        overcommit=OvercommitSection(
            cpu=cpu,
            memory=memory,
            degrade=UNSET if their.degrade_time_minutes is UNSET else Duration(their.degrade_time_minutes * 60),
            refresh=_seconds(their.update_time_threshold_seconds),
            difference=their.resource_diff_threshold,
        )
    )


def reserving(strategy: Strategy, says: NodeSays) -> Strategy:
    """With what the node keeps for itself, which is not lent."""
    kept = says.reservation
    if kept is None:
        return strategy
    lent = strategy.overcommit
    cpu = Quantity.parse(f"{kept.milli()}m") if kept.milli() else UNSET
    memory = Quantity(kept.memory()) if kept.memory() else UNSET
    fresh = replace(lent, cpu=replace(lent.cpu, reserved=cpu), memory=replace(lent.memory, reserved=memory))
    return replace(strategy, overcommit=fresh)


def normalization(their: CpuNormalization, says: NodeSays | None = None) -> Strategy:
    """By the node's model of CPU where it says that; else the ratio that their manager wrote on the node, else the
    default."""
    if their.enable is not True:
        return NOTHING
    ratio = _by_model(their, says) if says is not None else UNSET
    if ratio is UNSET and says is not None and says.ratio is not None:
        ratio = says.ratio
    return Strategy(normalization=NormalizationSection(ratio=their.default_ratio if ratio is UNSET else ratio))


def _by_model(their: CpuNormalization, says: NodeSays) -> float | UnsetType:
    model = their.model(says.cpu.cpu_model) if says.cpu is not None else None
    if model is None or says.cpu is None:
        return UNSET
    return _of_pair(model, says.cpu.hyper_thread_enabled, says.cpu.turbo_enabled)


def _of_pair(model: RatioModel, threads: bool, turbo: bool) -> float | UnsetType:
    match threads, turbo:
        case True, True:
            return model.hyper_thread_turbo_enabled_ratio
        case True, False:
            return model.hyper_thread_enabled_ratio
        case False, True:
            return model.turbo_enabled_ratio
        case _:
            return model.base_ratio


def _word(words: dict[str, Any], theirs: str | UnsetType) -> Any:
    return UNSET if theirs is UNSET else words[theirs]


def _switch(theirs: int | UnsetType) -> bool | UnsetType:
    return UNSET if theirs is UNSET else theirs == 1


def _seconds(seconds: int | UnsetType) -> Duration | UnsetType:
    return UNSET if seconds is UNSET else Duration(seconds)
