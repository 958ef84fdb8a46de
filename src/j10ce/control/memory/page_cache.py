"""Page cache, and the other things that kernels of some vendors have files for.

limit = percent of the memory limit, or bytes, and at most the memory limit; 0 is no limit
"""

from __future__ import annotations

import math
from typing import Final

from msgspec import UNSET

from j10ce.control.law import pages_down
from j10ce.model.kinds import MemorySection
from j10ce.model.knob import KNOBS

VENDOR_KNOBS: Final = tuple(k.name for k in KNOBS.values() if k.rare and k.controller == "memory")


def cache_limit(memory: MemorySection, limit: float, page: int) -> float:
    """Bytes of page cache that something with a memory limit may have; infinite: as much as there is."""
    said = memory.page_cache_limit
    if said is UNSET or not said.amount:
        return math.inf
    size = limit * float(said.amount) / 100 if said.percent else float(said.amount)
    return pages_down(min(size, limit), page)


def vendor_values(memory: MemorySection, limit: float, page: int) -> dict[str, float]:
    """Of the knobs that mainline kernels lack, those that a profile speaks of."""
    said = {
        "memory.wmark_ratio": memory.watermark_percent,
        "memory.wmark_scale_factor": memory.watermark_scale,
        "memory.wmark_min_adj": memory.watermark_adjust,
        "memory.priority": memory.kernel_priority,
        "memory.use_priority_oom": memory.kernel_priority_oom,
        "memory.pagecache_limit.sync": memory.page_cache_sync,
    }
    values = {knob: float(value) for knob, value in said.items() if value is not UNSET}
    size = cache_limit(memory, limit, page)
    if size != math.inf:
        values["memory.pagecache_limit.size"] = size
    if memory.page_cache_limit is not UNSET:
        values["memory.pagecache_limit.enable"] = float(size != math.inf)
    return values
