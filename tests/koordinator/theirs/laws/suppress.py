"""How much CPU best effort may use, and the quota that is made of it.

allowed = capacity·threshold − what everyone else uses − max(system, reserved), at least the floor if one is set
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

LEAST_QUOTA_US: Final = 2000
QUOTA_US_PER_MILLI: Final = 100
# Of one CPU of the node, in microseconds of a period.
IGNORED_US: Final = 1000  # 1 %
GROWTH_US: Final = 10_000  # 10 %


class Use(NamedTuple):
    """What a pod or an application uses; one that nobody knows anything about is not best effort."""

    milli: int
    best_effort: bool = False


class Suppression(NamedTuple):
    capacity_milli: int
    used_milli: int  # of the whole node
    threshold_percent: int
    pods: tuple[Use, ...] = ()
    host_apps: tuple[Use, ...] = ()  # best effort: by class, and below the cgroup of best effort
    reserved_milli: int = 0  # the larger of the kubelet's and the annotation's
    min_percent: int | None = None


def allowed_milli(s: Suppression) -> int:
    """What best effort may use; less than nothing where others use more than the threshold."""
    system = max(s.used_milli - _sum(s.pods) - _sum(s.host_apps), 0, s.reserved_milli)
    others = sum(use.milli for use in (*s.pods, *s.host_apps) if not use.best_effort)
    allowed = s.capacity_milli * s.threshold_percent // 100 - others - system
    return allowed if s.min_percent is None else max(allowed, s.capacity_milli * s.min_percent // 100)


def _sum(uses: Iterable[Use]) -> int:
    return sum(use.milli for use in uses)


def stepped_quota(allowed_milli: int, current_us: int, capacity_cores: int) -> int:
    """The next quota of best effort, or the present one where the difference is not worth a write.

    It shrinks at once and grows by a tenth of the node at a time; -1 is no quota, which counts as a number here.
    """
    wanted = max(allowed_milli * QUOTA_US_PER_MILLI, LEAST_QUOTA_US)
    if abs(wanted - current_us) < capacity_cores * IGNORED_US and wanted != LEAST_QUOTA_US:
        return current_us
    return wanted if current_us == -1 else min(wanted, current_us + capacity_cores * GROWTH_US)
