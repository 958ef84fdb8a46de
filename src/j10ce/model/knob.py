"""Knobs: every kernel control described once. Validation, arbiter, explain and docs read this table.

Names and meaning are cgroup v2's; the v1 back end translates. Units that differ from the file:
`cpu.weight` is held in v1 shares (2-262144), the finer unit; `cpu.max` is the quota per 100 ms period.
Knobs of other kinds of target stand in the same table, and say which kind.
"""

from __future__ import annotations

import math
import re
from enum import Enum
from itertools import chain
from typing import Final, NamedTuple, NewType, TypeAlias
from zlib import crc32

from j10ce.errors import Invalid
from j10ce.model.quantity import Quantity
from j10ce.model.resource import spell

TargetId = NewType("TargetId", str)
Value: TypeAlias = float | frozenset[int] | str

NODE: Final = TargetId("node")
ROOT: Final = TargetId("group/")
CPU_RANGE: Final = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
NR_CPUS: Final = 8192  # no kernel can be built for more
PERIOD_US: Final = 100_000  # the period in which cpu.max and cpu.max.burst are expressed
IDLE_SHARES: Final = 3.0  # what a group with cpu.idle weighs against its siblings
MOST_WEIGHT: Final = 10_000  # cgroup v2 and systemd count 1-10000, and 100 is 1024 shares
CGROUP: Final = "cgroup"  # what group/, workload/ and part/ are
THREADS: Final = "threads"  # said of all threads of a workload, by a back end that looks after them
FREEZER: Final = "freezer"  # a controller on cgroup v1; on v2 every cgroup has it, and nobody enables it
CGROUP_KINDS: Final = frozenset(("group", "workload", "part"))
MADE_KINDS: Final = frozenset(("resctrl",))  # kinds beside cgroups whose targets we make, and remove again
NO_TEXT: Final = "(none)"  # how people read and write an empty text
GROUP_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
GROUP_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]")
GROUP_TEXT: Final = 100  # characters of it that are kept
SPELLED: Final = re.compile(r"([a-z0-9_.]{1,64})(?:\[([A-Za-z0-9_.:@-]{1,64})\])?")  # a knob, and its instance if any


def group(path: str) -> TargetId:
    """A cgroup that is not itself a workload: a tier, a slice, an ancestor. The root is `group/`."""
    return TargetId(f"group/{path.strip('/')}")


def resctrl(name: str) -> TargetId:
    """A group of the resctrl file system, by its folder's name."""
    return TargetId(f"resctrl/{name}")


def workload(namespace: str, name: str) -> TargetId:
    return TargetId(f"workload/{namespace}/{name}")


def part(namespace: str, name: str, part_name: str) -> TargetId:
    return TargetId(f"part/{namespace}/{name}/{part_name}")


def group_name(text: str) -> str:
    """A name for a group of tasks that is as near to a text as such names can be; different for different texts."""
    near = GROUP_UNFIT.sub("_", text)[:GROUP_TEXT]
    return near if near == text and GROUP_NAME.fullmatch(near) else f"g{near}-{crc32(text.encode()):08x}"


def kind_of(target: str) -> str:
    """`node`, `group`, `workload`, `part`, or a kind beside cgroups: `resctrl`, …"""
    return target.partition("/")[0]


class Setting(NamedTuple):
    """The address of one value; `instance` is empty unless the knob has several (`resctrl.l3[0]`)."""

    target: TargetId
    knob: str
    instance: str = ""

    @property
    def name(self) -> str:
        """The knob and its instance, as people write them."""
        return f"{self.knob}[{self.instance}]" if self.instance else self.knob

    def __str__(self) -> str:
        return f"{self.target} {self.name}"


class Deed(Enum):
    """What can be done to a target besides setting a value; it leaves none behind."""

    RECLAIM = "reclaim"  # make the kernel take back so many bytes
    EVICT = "evict"  # ask whoever made the workload to end it
    KILL = "kill"  # end every process of it at once


class KnobRole(Enum):
    GUARANTEE = "guarantee"  # protects its holder; parents must cover the sum of their children
    CAP = "cap"  # limits its holder; a child never needs more than its parent has
    SHARE = "share"  # divides what siblings compete for
    PLACEMENT = "placement"  # a set of CPUs or memory nodes; child within parent
    SWITCH = "switch"  # on or off
    LEVEL = "level"  # how the machine itself behaves; nobody competes for it


class Unit(Enum):
    SHARES = "shares"
    MICROSECONDS = "µs per 100 ms"
    BYTES = "bytes"
    SET = "set"
    FLAG = "0 or 1"
    NUMBER = "a number"
    TEXT = "text"


class Knob(NamedTuple):
    name: str
    unit: Unit
    role: KnobRole
    controller: str  # the cgroup controller that carries it; empty for other kinds of target
    v1: str  # the file(s) on cgroup v1, or "" where mainline v1 has none
    low: float
    high: float
    default: Value  # what a fresh cgroup holds
    slow: bool = False  # a write may block while memory is reclaimed
    systemd: str = ""  # the unit property, or "" where systemd leaves the file alone
    meaning: str = ""
    on: str = CGROUP  # the kind of target that has it
    several: bool = False  # one value per instance, such as a cache or a disk
    rare: bool = False  # mainline kernels have none of it


_KNOBS: Final = (
    Knob("cpu.weight", Unit.SHARES, KnobRole.SHARE, "cpu", "cpu.shares", 2, 262144, 1024.0, systemd="CPUWeight",
         meaning="share of CPU time when siblings compete"),
    Knob("cpu.idle", Unit.FLAG, KnobRole.SWITCH, "cpu", "cpu.idle", 0, 1, 0.0, systemd="CPUWeight",
         meaning="run only when no sibling wants the CPU; others preempt at once"),
    Knob("cpu.max", Unit.MICROSECONDS, KnobRole.CAP, "cpu", "cpu.cfs_quota_us", 1000, math.inf, math.inf,
         systemd="CPUQuotaPerSecUSec", meaning="CPU time allowed in each 100 ms"),
    Knob("cpu.max.burst", Unit.MICROSECONDS, KnobRole.CAP, "cpu", "cpu.cfs_burst_us", 0, math.inf, 0.0,
         meaning="unused quota that may be saved up for a burst; never above cpu.max"),
    Knob("cpuset.cpus", Unit.SET, KnobRole.PLACEMENT, "cpuset", "cpuset.cpus", 0, math.inf, frozenset(),
         systemd="AllowedCPUs", meaning="CPUs that may be used; empty means as the parent"),
    Knob("cpu.bvt_warp_ns", Unit.NUMBER, KnobRole.LEVEL, "cpu", "cpu.bvt_warp_ns", -1, 2, 0.0, rare=True,
         meaning="who preempts whom: 2 and 1 whoever has less, -1 nobody"),
    Knob("memory.min", Unit.BYTES, KnobRole.GUARANTEE, "memory", "", 0, math.inf, 0.0, systemd="MemoryMin",
         meaning="memory that is never reclaimed"),
    Knob("memory.low", Unit.BYTES, KnobRole.GUARANTEE, "memory", "", 0, math.inf, 0.0, systemd="MemoryLow",
         meaning="memory that is reclaimed only when nothing else is left"),
    Knob("memory.high", Unit.BYTES, KnobRole.CAP, "memory", "", 0, math.inf, math.inf, slow=True, systemd="MemoryHigh",
         meaning="above it the workload is slowed down and reclaimed from"),
    Knob("memory.max", Unit.BYTES, KnobRole.CAP, "memory", "memory.limit_in_bytes", 0, math.inf, math.inf, slow=True,
         systemd="MemoryMax", meaning="above it the workload is reclaimed from, then killed"),
    Knob("memory.oom.group", Unit.FLAG, KnobRole.SWITCH, "memory", "", 0, 1, 0.0,
         meaning="an out-of-memory kill takes the whole workload"),
    Knob("memory.wmark_ratio", Unit.NUMBER, KnobRole.LEVEL, "memory", "", 0, 100, 0.0, rare=True,
         meaning="percent of the limit above which the kernel takes memory back in the background; 0 is never"),
    Knob("memory.wmark_scale_factor", Unit.NUMBER, KnobRole.LEVEL, "memory", "", 1, 1000, 50.0, rare=True,
         meaning="how far below that mark memory is taken back, in 1/10000 of the limit"),
    Knob("memory.wmark_min_adj", Unit.NUMBER, KnobRole.LEVEL, "memory", "", -25, 50, 0.0, rare=True,
         meaning="percent by which the machine's own watermark is moved; below 0 it is reclaimed from later"),
    Knob("memory.priority", Unit.NUMBER, KnobRole.LEVEL, "memory", "", 0, 12, 0.0, rare=True,
         meaning="who is killed first when memory runs out, the lowest; where memory.use_priority_oom is 1 above"),
    Knob("memory.use_priority_oom", Unit.FLAG, KnobRole.SWITCH, "memory", "", 0, 1, 0.0, rare=True,
         meaning="whether memory.priority decides among the cgroups inside"),
    Knob("memory.pagecache_limit.enable", Unit.FLAG, KnobRole.SWITCH, "memory", "", 0, 1, 0.0, rare=True,
         meaning="whether page cache is limited"),
    Knob("memory.pagecache_limit.size", Unit.BYTES, KnobRole.LEVEL, "memory", "", 0, math.inf, 0.0, rare=True,
         meaning="how much of the memory may be page cache"),
    Knob("memory.pagecache_limit.sync", Unit.FLAG, KnobRole.SWITCH, "memory", "", 0, 1, 0.0, rare=True,
         meaning="whether those who read wait until page cache is below its limit"),
    Knob("cgroup.freeze", Unit.FLAG, KnobRole.SWITCH, FREEZER, "freezer.state", 0, 1, 0.0,
         meaning="no process of the workload runs until it is thawed; its memory stays"),
    Knob("vm.min_free_kbytes", Unit.NUMBER, KnobRole.LEVEL, "", "", 10240, 10485760, 10240.0, on="node",
         meaning="KiB that the kernel keeps free; below it allocations wait for reclaim"),
    Knob("vm.watermark_scale_factor", Unit.NUMBER, KnobRole.LEVEL, "", "", 10, 1000, 10.0, on="node",
         meaning="distance between the watermarks of background reclaim, in 1/10000 of memory"),
    Knob("resctrl.l3", Unit.SET, KnobRole.LEVEL, "", "", 0, math.inf, frozenset(), on="resctrl", several=True,
         meaning="ways of a last-level cache that may be filled, by cache id"),
    Knob("resctrl.mb", Unit.NUMBER, KnobRole.CAP, "", "", 0, math.inf, 100.0, on="resctrl", several=True,
         meaning="memory bandwidth, by cache id: percent, or what the CPU counts in"),
    Knob("resctrl.group", Unit.TEXT, KnobRole.LEVEL, "", "", 0, 0, "", on=THREADS,
         meaning="the group of resctrl that all threads are in; empty means the root's"),
    Knob("sched.cookie", Unit.TEXT, KnobRole.LEVEL, "", "", 0, 0, "", on=THREADS,
         meaning="the group whose threads may share a core at one time; empty means everyone without a group"),
    Knob("oom.score_adj", Unit.NUMBER, KnobRole.LEVEL, "", "", -1000, 1000, 0.0, on=THREADS,
         meaning="who is killed first when memory runs out, the highest; thousandths of all memory, of every process"),
)  # fmt: skip

KNOBS: Final[dict[str, Knob]] = {k.name: k for k in _KNOBS}
TENDED: Final = frozenset(name for name, k in KNOBS.items() if k.on == THREADS)
CGROUP_KNOBS: Final[dict[str, Knob]] = {name: k for name, k in KNOBS.items() if k.on == CGROUP}


_ON: Final = {CGROUP: CGROUP_KINDS, THREADS: frozenset({"workload"})}
# Kinds of targets by knob, made once: every proposal of every tick is asked for it.
_KINDS: Final = {k.name: _ON.get(k.on, frozenset({k.on})) for k in _KNOBS}


def has(target: TargetId, knob: str) -> bool:
    """Whether a target of that kind can have the knob; of a knob that the table lacks its back end knows."""
    kinds = _KINDS.get(knob)
    return kinds is None or target.partition("/")[0] in kinds


def read_name(text: str) -> tuple[str, str] | None:
    """(knob, instance) of `cpu.max` or `resctrl.l3[0]`; None where it is neither."""
    matched = SPELLED.fullmatch(text)
    return (matched[1], matched[2] or "") if matched else None


class Support(NamedTuple):
    """What one knob is worth on this machine: present, or why not and what would bring it."""

    ok: bool
    via: str = ""  # where it is written: `cgroup2`, `cgroup1`, `systemd`
    needs: str = ""
    instead: str = ""  # the best approximation used here, if any


def shares_of(weight: int) -> float:
    """The shares that a cgroup v2 weight is to the scheduler, by the kernel's own rounding."""
    return float((weight * 1024 + 50) // 100)


def weight_of(shares: float) -> int:
    """The cgroup v2 weight nearest to some shares; `weight_of(shares_of(w))` is `w`."""
    return min(MOST_WEIGHT, max(1, (round(shares) * 100 + 512) // 1024))


def render(knob: str, value: Value | None) -> str:
    """A value as `explain` shows it, in the unit of its knob."""
    if value is None:
        return "gone"
    if isinstance(value, str):
        return value or NO_TEXT
    if isinstance(value, frozenset):
        return format_cpus(value) or "(all of the parent)"
    if value == math.inf:
        return "max"
    unit = KNOBS[knob].unit if knob in KNOBS else None
    if unit is Unit.MICROSECONDS:
        cpus = f"{value / PERIOD_US:.3g}"
        return f"{value:.0f} ({cpus} CPU{'' if cpus == '1' else 's'})"
    if unit is Unit.BYTES:
        return spell("memory", value)
    return f"{value:g}"


def parse_value(knob: str, text: str) -> Value:
    """What an operator writes (`max`, `0-3`, `50000`, `1Gi`, `1`) as a value of a knob; raises ValueError."""
    about = KNOBS[knob]
    if about.unit is Unit.SET:
        return parse_cpus(text)
    if about.unit is Unit.TEXT:
        return _text(knob, text.strip())
    below = -1.0 if about.low < 0 and text.strip().startswith("-") else 1.0
    value = math.inf if text.strip() == "max" else below * _number(text.strip().removeprefix("-" if below < 0 else ""))
    whole = about.unit is not Unit.FLAG or value in (0.0, 1.0)
    if not whole or not about.low <= value <= about.high:
        high = "max" if about.high == math.inf else f"{about.high:g}"
        raise ValueError(f"{knob} takes {about.low:g} to {high}, in {about.unit.value}")
    return value


def _text(knob: str, text: str) -> str:
    if text != NO_TEXT and not GROUP_NAME.fullmatch(text):
        raise ValueError(f"{knob} takes a name of letters, digits, '.', '_' and '-', or {NO_TEXT}")
    return "" if text == NO_TEXT else text


def _number(text: str) -> float:
    try:
        quantity = Quantity.parse(text)
    except Invalid as e:
        raise ValueError(e.findings[0].problem) from None
    if quantity.percent:
        raise ValueError("a percentage is not a value")
    return float(quantity.amount)


def parse_cpus(text: str) -> frozenset[int]:
    """`0-3,8` as the kernel prints it; raises ValueError on anything else, before it unfolds what no machine has."""
    ranges = [_range(item) for item in filter(None, (t.strip() for t in text.split(",")))]
    if sum(map(len, ranges)) > NR_CPUS:
        raise ValueError(f"more than {NR_CPUS} CPUs, counted as often as they are named")
    return frozenset(chain.from_iterable(ranges))


def _range(item: str) -> range:
    matched = CPU_RANGE.fullmatch(item)
    low, high = (int(matched[1]), int(matched[2] or matched[1])) if matched else (1, 0)
    if high < low or high >= NR_CPUS:
        raise ValueError(f"bad CPU range {item[:40]!r}")
    return range(low, high + 1)


def format_cpus(cpus: frozenset[int]) -> str:
    """The kernel's list format, ranges joined."""
    out: list[str] = []
    run: list[int] = []
    for cpu in [*sorted(cpus), -1]:
        if run and cpu != run[-1] + 1:
            out.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
            run = []
        run.append(cpu)
    return ",".join(out)
