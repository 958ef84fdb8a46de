"""What `memoryQOS` says beyond its three percentages, of a class or of one pod, as fields of our memory section."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, UnsetType

from j10ce.dialects.koordinator.config.qos import MemoryFields
from j10ce.model.quantity import Quantity

NO_LIMIT: Final = Quantity(0)


def beyond_percentages(their: MemoryFields) -> dict[str, Any]:
    """Watermarks, priorities and page cache, as far as they are said."""
    fields: dict[str, Any] = {
        "watermark_percent": their.wmark_ratio,
        "watermark_scale": their.wmark_scale_permill,
        "watermark_adjust": their.wmark_min_adj,
        "page_cache_limit": _page_cache(their),
        "page_cache_sync": their.page_cache_reclaim_sync,
        "kernel_priority": their.priority,
        "kernel_priority_oom": UNSET if their.priority_enable is UNSET else their.priority_enable == 1,
    }
    return {name: value for name, value in fields.items() if value is not UNSET}


def _page_cache(their: MemoryFields) -> Quantity | UnsetType:
    """A size beats a percentage, and the switch beats both: off is no limit."""
    if their.page_cache_enable is False:
        return NO_LIMIT
    if their.page_cache_limit_size is not UNSET:
        return Quantity(their.page_cache_limit_size)
    percent = their.page_cache_limit_percent
    return UNSET if percent is UNSET else Quantity(percent, percent=True)
