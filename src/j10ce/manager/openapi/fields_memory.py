"""What every field of a profile's memory section means; docs/memory.md has units, ranges and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MEMORY: Final[Mapping[str, Mapping[str, str]]] = {
    "MemorySection": {
        "": "Memory of a workload.",
        "min_percent": "Percent of its request that is never reclaimed.",
        "low_percent": "Percent of its request that is reclaimed last.",
        "throttling_percent": "Where between request and limit it begins to be slowed down, in percent.",
        "oom_priority": "Who goes first when memory runs out: the lowest. 0 leaves processes as they are.",
        "oom_group": "When memory runs out its processes go together.",
        "reclaim": "Getting back memory that it does not use.",
        "watermark_percent": "Percent of its limit above which memory is taken back in the background. 0: never.",
        "watermark_scale": "On kernels with memory.wmark_scale_factor: how far memory is taken back, in 1/10000.",
        "watermark_adjust": "On kernels with memory.wmark_min_adj: percent by which the machine's watermark moves.",
        "page_cache_limit": "How much of its memory may be page cache: percent of its limit, or bytes. 0: no limit.",
        "page_cache_sync": "On kernels that limit page cache: whoever reads waits for reclaim.",
        "kernel_priority": "On kernels with memory.priority: who goes first, the lowest.",
        "kernel_priority_oom": "On those: whether priorities decide among the cgroups inside.",
    },
    "ReclaimSection": {
        "": "Getting back memory that a workload does not use.",
        "enabled": "Whether it happens; not set: no.",
        "target_pressure": "Percent of time it may be stalled for it; not set: 0.1.",
    },
}
