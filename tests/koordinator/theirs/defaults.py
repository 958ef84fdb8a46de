"""What holds where nothing is said: the blocks of a class that is switched off, and the priority of a pod."""

from __future__ import annotations

from typing import Any, Final

from j10ce.dialects.koordinator.classes import BANDS, Labels, band_or_default
from j10ce.model.workload import NativeClass

NEUTRAL: Final[dict[str, dict[str, Any]]] = {
    "cpuQOS": {"enable": False, "groupIdentity": 0, "schedIdle": 0, "coreExpeller": False},
    "memoryQOS": {
        "enable": False,
        "minLimitPercent": 0,
        "lowLimitPercent": 0,
        "throttlingPercent": 0,
        "wmarkRatio": 0,
        "wmarkScalePermill": 50,
        "wmarkMinAdj": 0,
        "priorityEnable": 0,
        "priority": 0,
        "oomKillGroup": 0,
    },
    "resctrlQOS": {"enable": False, "catRangeStartPercent": 0, "catRangeEndPercent": 100, "mbaPercent": 100},
    "blkioQOS": {"enable": False},
    "networkQOS": {"enable": False},
}


def priority_or_default(labels: Labels, priority: int | None, native: NativeClass) -> int:
    if priority:
        return priority
    band = band_or_default(labels, priority, native)
    return BANDS[band].default if band in BANDS else 0
