"""cgroup v1: every knob as v1 spells it, under its v2 name. Read beside v2.py."""

from __future__ import annotations

import math
from typing import Final

from j10ce.kernel.cgroup.spelling import Cgroup, Files, Spelling, bytes_, cpus, flag, number, per_period, quota, whole
from j10ce.kernel.cgroup.vendor import VENDOR
from j10ce.model.knob import KNOBS, PERIOD_US, Value
from j10ce.model.plan import Refused

_QUOTA, _PERIOD, _BURST = "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us"
_LIMIT, _WITH_SWAP = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
_V2: Final = "the memory controller on cgroup v2 (boot with systemd.unified_cgroup_hierarchy=1)"


def _shares(v: Value) -> float:
    knob = KNOBS["cpu.weight"]
    return min(knob.high, max(knob.low, float(math.floor(number(v) + 0.5))))


def _refuse_when_idle(c: Cgroup, wanted: Files) -> Files | Refused:
    if c.text("cpu.idle") == "1":
        return Refused(f"{c.directory} has cpu.idle = 1 and takes no cpu.shares; clear cpu.idle first")
    return wanted


def _read_max(c: Cgroup) -> Value | None:
    allowed, period = c.number(_QUOTA), c.number(_PERIOD)
    return None if allowed is None or period is None else per_period(allowed, period)


def _spell_max(v: Value, _: Cgroup) -> Files:
    n = number(v)
    return {_PERIOD: str(PERIOD_US), _QUOTA: "-1" if n == math.inf else str(int(n))}


def _clamp_burst(c: Cgroup, wanted: Files) -> Files | Refused:
    """A burst above the quota would make the kernel refuse the quota."""
    allowed, burst = wanted[_QUOTA], c.number(_BURST) or 0
    return {_BURST: allowed, **wanted} if allowed != "-1" and burst > int(allowed) else wanted


def _spell_cpus(v: Value, c: Cgroup) -> Files:
    """v1 has no "as the parent": it is the parent's set written out."""
    return cpus().spell(v, c) if v else {"cpuset.cpus": c.parent.text("cpuset.cpus") or ""}


def _take_followers(c: Cgroup, wanted: Files) -> Files | Refused:
    """Those below that follow this cgroup: v1 would refuse to narrow it without them, and not widen them with it."""
    text, present = wanted["cpuset.cpus"], c.text("cpuset.cpus")
    followers = {}
    for path in c.below():
        up = path.rpartition("/")[0]
        if (not up or up in followers) and c.text(f"{path}/cpuset.cpus") == present:
            followers[path] = text
    return {"cpuset.cpus": text} | {f"{path}/cpuset.cpus": text for path in followers}


def _raise_with_swap(c: Cgroup, wanted: Files) -> Files | Refused:
    """v1 refuses a limit above the limit with swap; v2's memory.max leaves swap alone, so only that is followed."""
    held = c.number(_WITH_SWAP)
    limit = math.inf if wanted[_LIMIT] == "-1" else float(wanted[_LIMIT])
    return wanted if held is None or held >= limit or _WITH_SWAP in wanted else {_WITH_SWAP: wanted[_LIMIT], **wanted}


def _read_frozen(c: Cgroup) -> Value | None:
    """FREEZING until the last process stands; below a frozen group the state is FROZEN, too, and not its own."""
    state = c.text("freezer.state")
    return None if state is None else float(state != "THAWED" and c.text("freezer.self_freezing") != "0")


def _spell_frozen(v: Value, _: Cgroup) -> Files:
    return {"freezer.state": "FROZEN" if number(v) else "THAWED"}


TABLE: Final[dict[str, Spelling]] = {
    "cpu.weight": Spelling(
        files=("cpu.shares",),
        parse=lambda c: c.number("cpu.shares"),
        spell=lambda v, _: {"cpu.shares": str(int(number(v)))},
        quantise=_shares,
        also=_refuse_when_idle,
    ),
    "cpu.idle": flag("cpu.idle")._replace(needs="kernel ≥ 5.15", instead="cpu.weight at its minimum"),
    "cpu.max": Spelling(
        files=(_QUOTA, _PERIOD),
        parse=_read_max,
        spell=_spell_max,
        quantise=quota,
        also=_clamp_burst,
        needs="a kernel with CONFIG_CFS_BANDWIDTH",
    ),
    "cpu.max.burst": whole(_BURST)._replace(needs="kernel ≥ 5.14", instead="a higher cpu.max"),
    "cpuset.cpus": cpus()._replace(spell=_spell_cpus, also=_take_followers),
    # Mainline v1 lacks the next three and memory.oom.group; some distributions' kernels have them under v2's names.
    "memory.min": bytes_("memory.min")._replace(
        needs=_V2, instead="limits on its neighbours, while its own pages may be reclaimed"
    ),
    "memory.low": bytes_("memory.low")._replace(
        needs=_V2, instead="limits on its neighbours, while its own pages may be reclaimed"
    ),
    "memory.high": bytes_("memory.high")._replace(
        needs=_V2, instead="memory.max alone, without slowing down first", usage="memory.usage_in_bytes"
    ),
    "memory.max": bytes_(_LIMIT, "-1")._replace(
        files=(_LIMIT, _WITH_SWAP), also=_raise_with_swap, usage="memory.usage_in_bytes"
    ),
    "memory.oom.group": flag("memory.oom.group")._replace(needs=_V2, instead="one process is killed at a time"),
    "cgroup.freeze": flag("freezer.state")._replace(parse=_read_frozen, spell=_spell_frozen),
    **VENDOR,
}
