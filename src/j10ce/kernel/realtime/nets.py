"""Whether this machine can have real-time workloads: what keeps a runaway one from locking it up. Reads only."""

from __future__ import annotations

import os
import re
from typing import Final

from j10ce.host.mounts import Hierarchies
from j10ce.kernel import file
from j10ce.model.knob import Support

VIA: Final = "sched_setscheduler"
BUDGET: Final = "cpu.rt_runtime_us"
FAIR_SERVER: Final = (6, 12)  # the kernel that leaves every CPU something for fair threads by itself
_SYS_NICE: Final = 1 << 23
_OPTION: Final = "CONFIG_RT_GROUP_SCHED=y"
_OFF: Final = "CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y"


def support(hierarchies: Hierarchies, proc: str = "/proc", boot: str = "/boot") -> Support:
    needs = _rights(proc) or _counters(hierarchies) or _net(proc) or _grouped(hierarchies, proc, boot)
    return Support(not needs, VIA, needs=needs, instead="threads stay in the fair class" if needs else "")


def budgets(hierarchies: Hierarchies) -> Support:
    """Groups of v1 have a budget of real-time of their own, where the kernel was built so."""
    here = hierarchies.version("cpu") == 1 and os.path.exists(hierarchies.file("cpu", "", BUDGET))
    needs = "" if here else "cgroup v1 and a kernel with CONFIG_RT_GROUP_SCHED; others need no budgets"
    return Support(here, "cgroup1" if here else "", needs=needs)


def _rights(proc: str) -> str:
    status = file.read(f"{proc}/self/status") or ""
    held = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return "" if int(held, 16) & _SYS_NICE else "root, or CAP_SYS_NICE"


def _counters(hierarchies: Hierarchies) -> str:
    match hierarchies.version("cpu"):
        case None:
            return "the cpu controller, mounted as cgroup v2 or v1"
        case 1 if hierarchies.version("cpuacct") != 1:
            return "the cpuacct controller, mounted as cgroup v1"
        case _:
            return ""


def _net(proc: str) -> str:
    """Throttling of real-time as a whole, or the fair server."""
    runtime = file.read(f"{proc}/sys/kernel/sched_rt_runtime_us")
    period = file.read(f"{proc}/sys/kernel/sched_rt_period_us")
    throttled = runtime is not None and period is not None and 0 <= int(runtime) < int(period)
    if throttled or _release(proc) >= FAIR_SERVER:
        return ""
    return "kernel ≥ 6.12, or kernel.sched_rt_runtime_us below kernel.sched_rt_period_us (950000 is the usual value)"


def _release(proc: str) -> tuple[int, ...]:
    numbers = re.match(r"(\d+)\.(\d+)", file.read(f"{proc}/sys/kernel/osrelease") or "")
    return tuple(map(int, numbers.groups())) if numbers else ()


def _grouped(hierarchies: Hierarchies, proc: str, boot: str) -> str:
    """cgroup v2 has no budgets: with group scheduling nobody below the root may be real-time."""
    if hierarchies.version("cpu") != 2 or "rt_group_sched=0" in (file.read(f"{proc}/cmdline") or "").split():
        return ""
    options = _options(proc, boot)
    if _OPTION in options and (_OFF not in options or "rt_group_sched=1" in (file.read(f"{proc}/cmdline") or "")):
        return "to be booted with rt_group_sched=0, or a kernel without CONFIG_RT_GROUP_SCHED, or cgroup v1"
    return ""


def _options(proc: str, boot: str) -> frozenset[str]:
    """Empty where the configuration is nowhere to be read: a thread that may not be real-time says so later."""
    text = b""
    if os.path.exists(f"{proc}/config.gz"):
        import gzip  # only where there is one

        with gzip.open(f"{proc}/config.gz") as f:
            text = f.read()
    elif (path := f"{boot}/config-{file.read(f'{proc}/sys/kernel/osrelease')}") and os.path.exists(path):
        with open(path, "rb") as f:
            text = f.read()
    return frozenset(line for line in text.decode(errors="replace").splitlines() if "RT_GROUP_SCHED" in line)
