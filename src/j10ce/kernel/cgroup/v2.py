"""cgroup v2: every knob in the kernel's own spelling. Read beside v1.py."""

from __future__ import annotations

import math
from typing import Final

from j10ce.kernel import file
from j10ce.kernel.cgroup.spelling import Cgroup, Files, Spelling, bytes_, cpus, flag, number, per_period, quota, whole
from j10ce.kernel.cgroup.vendor import VENDOR
from j10ce.model.knob import IDLE_SHARES, PERIOD_US, Value, shares_of, weight_of
from j10ce.model.plan import Refused

_POSSIBLE: Final = "/sys/devices/system/cpu/possible"


def _read_weight(c: Cgroup) -> Value | None:
    held = c.number("cpu.weight")
    # An idle group prints weight 0; v1 prints the 3 shares that it really has.
    return None if held is None else shares_of(int(held)) if held else IDLE_SHARES


def _refuse_when_idle(c: Cgroup, wanted: Files) -> Files | Refused:
    if c.text("cpu.idle") == "1":
        return Refused(f"{c.directory} has cpu.idle = 1 and takes no cpu.weight; clear cpu.idle first")
    return wanted


def _read_max(c: Cgroup) -> Value | None:
    text = c.text("cpu.max")
    if not text:
        return None
    allowed, period = text.split()
    return per_period(math.inf if allowed == "max" else float(allowed), float(period))


def _spell_max(v: Value, _: Cgroup) -> Files:
    n = number(v)
    return {"cpu.max": f"{'max' if n == math.inf else int(n)} {PERIOD_US}"}


def _clamp_burst(c: Cgroup, wanted: Files) -> Files | Refused:
    """A burst above the quota would make the kernel refuse the quota."""
    allowed, burst = wanted["cpu.max"].split()[0], c.number("cpu.max.burst") or 0
    return {**wanted, "cpu.max.burst": allowed} if allowed != "max" and burst > int(allowed) else wanted


def _all_when_populated(c: Cgroup, wanted: Files) -> Files | Refused:
    """A cpuset with tasks cannot be emptied again, but every CPU there could ever be comes to the parent's too."""
    populated = "populated 1" in (c.text("cgroup.events") or "")
    if wanted["cpuset.cpus"] or not populated or not c.text("cpuset.cpus"):
        return wanted
    return {"cpuset.cpus": file.read(_POSSIBLE) or ""}


TABLE: Final[dict[str, Spelling]] = {
    "cpu.weight": Spelling(
        files=("cpu.weight",),
        parse=_read_weight,
        spell=lambda v, _: {"cpu.weight": str(weight_of(number(v)))},
        quantise=lambda v: shares_of(weight_of(number(v))),
        also=_refuse_when_idle,
        since=(4, 15),
    ),
    "cpu.idle": flag("cpu.idle")._replace(since=(5, 15), instead="cpu.weight at its minimum"),
    "cpu.max": Spelling(
        files=("cpu.max",), parse=_read_max, spell=_spell_max, quantise=quota, also=_clamp_burst, since=(4, 15)
    ),
    "cpu.max.burst": whole("cpu.max.burst")._replace(since=(5, 14), instead="a higher cpu.max"),
    "cpuset.cpus": cpus()._replace(since=(5, 0), also=_all_when_populated),
    "memory.min": bytes_("memory.min")._replace(since=(4, 18)),
    "memory.low": bytes_("memory.low")._replace(since=(4, 5)),
    "memory.high": bytes_("memory.high")._replace(since=(4, 5), usage="memory.current"),
    "memory.max": bytes_("memory.max")._replace(since=(4, 5), usage="memory.current"),
    "memory.oom.group": flag("memory.oom.group")._replace(since=(4, 19)),
    "cgroup.freeze": flag("cgroup.freeze")._replace(since=(5, 2)),
    **VENDOR,
}
