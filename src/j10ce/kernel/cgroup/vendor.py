"""Knobs that mainline kernels lack and those of some vendors have, under one name on cgroup v1 and v2."""

from __future__ import annotations

from typing import Final

from j10ce.kernel.cgroup.spelling import Spelling, bytes_, flag, integer
from j10ce.model.knob import OF_VENDORS

_NEVER: Final = (1 << 16, 0)  # no release of mainline brings it


def _of_a_vendor(spelling: Spelling, instead: str = "") -> Spelling:
    return spelling._replace(since=_NEVER, needs=OF_VENDORS, instead=instead)


VENDOR: Final[dict[str, Spelling]] = {
    "cpu.bvt_warp_ns": _of_a_vendor(integer("cpu.bvt_warp_ns"), "cpu.idle and weights"),
    "memory.wmark_ratio": _of_a_vendor(integer("memory.wmark_ratio"), "the agent takes memory back above the mark"),
    "memory.wmark_scale_factor": _of_a_vendor(integer("memory.wmark_scale_factor")),
    "memory.wmark_min_adj": _of_a_vendor(integer("memory.wmark_min_adj")),
    "memory.priority": _of_a_vendor(integer("memory.priority"), "oomPriority, by oom_score_adj"),
    "memory.use_priority_oom": _of_a_vendor(flag("memory.use_priority_oom"), "oomPriority, by oom_score_adj"),
    "memory.pagecache_limit.enable": _of_a_vendor(
        flag("memory.pagecache_limit.enable"), "the agent takes page cache back above the limit"
    ),
    "memory.pagecache_limit.size": _of_a_vendor(
        bytes_("memory.pagecache_limit.size"), "the agent takes page cache back above the limit"
    ),
    "memory.pagecache_limit.sync": _of_a_vendor(flag("memory.pagecache_limit.sync")),
}
