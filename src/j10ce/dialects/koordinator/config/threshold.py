"""`resource-threshold-config`: when best effort is squeezed, and when pods are evicted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field

from j10ce.dialects.koordinator.config.fields import AtLeastOne, Flag, NotNegative, Percent, Plain
from j10ce.errors import Finding
from j10ce.model.parts.strict import Strict


class Threshold(Strict, frozen=True, kw_only=True):
    enable: Flag = UNSET
    cpu_suppress_threshold_percent: Percent = UNSET
    cpu_suppress_min_percent: Percent = UNSET
    cpu_suppress_policy: Literal["cpuset", "cfsQuota"] | UnsetType = UNSET
    memory_evict_threshold_percent: Percent = UNSET
    memory_evict_lower_percent: Percent = UNSET
    memory_allocatable_evict_threshold_percent: NotNegative = UNSET
    memory_allocatable_evict_lower_percent: NotNegative = UNSET
    be_satisfaction_upper: Percent = field(name="cpuEvictBESatisfactionUpperPercent", default=UNSET)
    be_satisfaction_lower: Percent = field(name="cpuEvictBESatisfactionLowerPercent", default=UNSET)
    be_usage_threshold: Percent = field(name="cpuEvictBEUsageThresholdPercent", default=UNSET)
    cpu_evict_time_window_seconds: AtLeastOne = UNSET
    cpu_evict_threshold_percent: Percent = UNSET
    cpu_evict_lower_percent: Percent = UNSET
    cpu_allocatable_evict_threshold_percent: NotNegative = UNSET
    cpu_allocatable_evict_lower_percent: NotNegative = UNSET
    cpu_evict_policy: Literal["evictByRealLimit", "evictByAllocatable"] | UnsetType = UNSET
    evict_enabled_priority_threshold: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | UnsetType = UNSET
    allocatable_evict_priority_threshold: Annotated[int, Meta(ge=0, le=7999)] | UnsetType = UNSET


DEFAULTS: Final[Plain] = {
    "enable": False,
    "cpuSuppressThresholdPercent": 65,
    "cpuSuppressPolicy": "cpuset",
    "memoryEvictThresholdPercent": 70,
    "cpuEvictBEUsageThresholdPercent": 90,
    "cpuEvictPolicy": "evictByRealLimit",
}


def findings(strategy: Threshold) -> Iterator[Finding]:
    pairs = (
        ("memoryEvict", strategy.memory_evict_lower_percent, strategy.memory_evict_threshold_percent),
        ("cpuEvict", strategy.cpu_evict_lower_percent, strategy.cpu_evict_threshold_percent),
        (
            "memoryAllocatableEvict",
            strategy.memory_allocatable_evict_lower_percent,
            strategy.memory_allocatable_evict_threshold_percent,
        ),
        (
            "cpuAllocatableEvict",
            strategy.cpu_allocatable_evict_lower_percent,
            strategy.cpu_allocatable_evict_threshold_percent,
        ),
    )
    for name, lower, threshold in pairs:
        if lower is not UNSET and threshold is not UNSET and lower >= threshold:
            hint = f"use less than {name}ThresholdPercent, {threshold}"
            yield Finding(f"{name}LowerPercent", lower, "not below the threshold", hint)
    yield from _satisfaction(strategy.be_satisfaction_lower, strategy.be_satisfaction_upper)


def _satisfaction(lower: int | UnsetType, upper: int | UnsetType) -> Iterator[Finding]:
    name = "cpuEvictBESatisfactionLowerPercent"
    if lower is UNSET or upper is UNSET:
        if lower is not upper:
            yield Finding(name, None, "one of two marks is missing", "write both Lower and Upper, or neither")
    elif not satisfaction_valid(lower, upper):
        yield Finding(name, lower, f"does not fit the upper mark, {upper}", "use 1 to 60, and an upper mark up to 99")


def satisfaction_valid(lower: int | None, upper: int | None) -> bool:
    """As checked at run time: lower in (0, 60], upper in (0, 100), upper not below lower."""
    return lower is not None and upper is not None and 0 < lower <= 60 and 0 < upper < 100 and upper >= lower
