"""Knobs that mainline kernels lack and those of some vendors have, under one name on cgroup v1 and v2."""

from __future__ import annotations

from typing import Final

from j10ce.kernel.cgroup.spelling import Spelling, integer

NEEDS: Final = "a kernel that has it, such as those of Anolis OS and Alibaba Cloud Linux"
_NEVER: Final = (1 << 16, 0)  # no release of mainline brings it


def _of_a_vendor(spelling: Spelling, instead: str = "") -> Spelling:
    return spelling._replace(since=_NEVER, needs=NEEDS, instead=instead)


VENDOR: Final[dict[str, Spelling]] = {
    "cpu.bvt_warp_ns": _of_a_vendor(integer("cpu.bvt_warp_ns"), "cpu.idle and weights"),
}
