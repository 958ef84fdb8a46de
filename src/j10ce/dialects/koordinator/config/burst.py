"""`cpu-burst-config`: how far a container may go beyond its CPU limit."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from j10ce.dialects.koordinator.config.fields import Percent, Plain
from j10ce.model.parts.strict import Strict


class BurstWish(Strict, frozen=True, kw_only=True):
    policy: Literal["none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"] | UnsetType = UNSET
    cpu_burst_percent: Annotated[int, Meta(ge=1, le=10_000)] | UnsetType = UNSET
    cfs_quota_burst_percent: Annotated[int, Meta(ge=100, le=2**31)] | UnsetType = UNSET
    cfs_quota_burst_period_seconds: Annotated[int, Meta(ge=-1, le=2**31)] | UnsetType = UNSET  # -1: without limit
    share_pool_threshold_percent: Percent = UNSET


DEFAULTS: Final[Plain] = {
    "policy": "none",
    "cpuBurstPercent": 1000,
    "cfsQuotaBurstPercent": 300,
    "cfsQuotaBurstPeriodSeconds": -1,
    "sharePoolThresholdPercent": 50,
}
