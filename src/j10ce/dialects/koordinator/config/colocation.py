"""`colocation-config`: how much of a node may be lent, and what the lender looks at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field

from j10ce.dialects.koordinator.config.fields import AtLeastOne, Flag, Map, NotNegative, Percent, Plain
from j10ce.errors import Finding
from j10ce.model.bounds import Several
from j10ce.model.parts.strict import Strict
from j10ce.model.quantity import Duration


class AggregatePolicy(Strict, frozen=True, kw_only=True):
    durations: Several[Duration] | UnsetType = UNSET


class Colocation(Strict, frozen=True, kw_only=True):
    enable: Flag = UNSET
    metric_aggregate_duration_seconds: AtLeastOne = UNSET
    metric_report_interval_seconds: AtLeastOne = UNSET
    metric_aggregate_policy: AggregatePolicy | UnsetType = UNSET
    metric_memory_collect_policy: (
        Literal["usageWithoutPageCache", "usageWithHotPageCache", "usageWithPageCache"] | UnsetType
    ) = UNSET
    cpu_reclaim_threshold_percent: NotNegative = UNSET  # above 100 sells more than there is
    cpu_calculate_policy: Literal["usage", "maxUsageRequest"] | UnsetType = UNSET
    memory_reclaim_threshold_percent: NotNegative = UNSET
    memory_calculate_policy: Literal["usage", "request", "maxUsageRequest"] | UnsetType = UNSET
    degrade_time_minutes: AtLeastOne = UNSET
    update_time_threshold_seconds: AtLeastOne = UNSET
    resource_diff_threshold: Annotated[float, Meta(gt=0, le=1)] | UnsetType = UNSET
    mid_reclaim_mode: Literal["", "static"] | UnsetType = UNSET
    mid_cpu_threshold_percent: Percent = field(name="midCPUThresholdPercent", default=UNSET)
    mid_memory_threshold_percent: Percent = UNSET
    mid_unallocated_percent: Percent = UNSET
    mid_static_cpu_reserved_percent: Percent = field(name="midStaticCPUReservedPercent", default=UNSET)
    mid_static_memory_reserved_percent: Percent = UNSET
    batch_cpu_threshold_percent: NotNegative = field(name="batchCPUThresholdPercent", default=UNSET)
    batch_memory_threshold_percent: NotNegative = UNSET
    extensions: Map | UnsetType = UNSET  # third parties'; carried, not understood


DEFAULTS: Final[Plain] = {
    "enable": False,
    "metricAggregateDurationSeconds": 300,
    "metricReportIntervalSeconds": 60,
    "metricAggregatePolicy": {"durations": ["5m", "10m", "30m"]},
    "metricMemoryCollectPolicy": "usageWithoutPageCache",
    "cpuReclaimThresholdPercent": 60,
    "cpuCalculatePolicy": "usage",
    "memoryReclaimThresholdPercent": 65,
    "memoryCalculatePolicy": "usage",
    "degradeTimeMinutes": 15,
    "updateTimeThresholdSeconds": 300,
    "resourceDiffThreshold": 0.1,
    "midCPUThresholdPercent": 100,
    "midMemoryThresholdPercent": 100,
    "midUnallocatedPercent": 0,
    "midStaticCPUReservedPercent": 0,
    "midStaticMemoryReservedPercent": 0,
}


def findings(strategy: Colocation) -> Iterator[Finding]:
    """What each field alone does not show."""
    policy = strategy.metric_aggregate_policy
    durations = () if policy is UNSET or policy.durations is UNSET else policy.durations
    for n, duration in enumerate(durations):
        if duration.seconds <= 0:
            yield Finding(f"metricAggregatePolicy.durations[{n}]", str(duration), "no time at all", "use 1s or more")
