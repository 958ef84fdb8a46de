"""Knobs: the address of a value, what may have it, and how people read and write it.

Validation, arbiter, explain and docs read the table of `controls/`.
"""

from __future__ import annotations

import math
import re
from enum import Enum
from itertools import chain
from typing import Final, NamedTuple, NewType
from zlib import crc32

from j10ce.errors import Invalid
from j10ce.model.controls.shapes import BUDGETS as BUDGETS
from j10ce.model.controls.shapes import CGROUP as CGROUP
from j10ce.model.controls.shapes import FILES as FILES
from j10ce.model.controls.shapes import FREEZER as FREEZER
from j10ce.model.controls.shapes import PERIOD_US as PERIOD_US
from j10ce.model.controls.shapes import THREADS as THREADS
from j10ce.model.controls.shapes import TRAFFIC as TRAFFIC
from j10ce.model.controls.shapes import Knob as Knob
from j10ce.model.controls.shapes import KnobRole as KnobRole
from j10ce.model.controls.shapes import Unit as Unit
from j10ce.model.controls.shapes import Value as Value
from j10ce.model.controls.table import TABLE
from j10ce.model.quantity import Quantity
from j10ce.model.resource import spell

TargetId = NewType("TargetId", str)

NODE: Final = TargetId("node")
ROOT: Final = TargetId("group/")
CPU_RANGE: Final = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
NR_CPUS: Final = 8192  # no kernel can be built for more
IDLE_SHARES: Final = 3.0  # what a group with cpu.idle weighs against its siblings
MOST_WEIGHT: Final = 10_000  # cgroup v2 and systemd count 1-10000, and 100 is 1024 shares
CGROUP_KINDS: Final = frozenset(("group", "workload", "part"))
MADE_KINDS: Final = frozenset(("resctrl", "share"))  # kinds beside cgroups whose targets we make, and remove again
OF_VENDORS: Final = "a kernel that has it, such as those of Anolis OS and Alibaba Cloud Linux"  # what rare knobs need
NO_TEXT: Final = "(none)"  # how people read and write an empty text
GROUP_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
GROUP_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]")
GROUP_TEXT: Final = 100  # characters of it that are kept
# A knob, and its instance if any, which may stand before the last word: `io.max[8:0].rbps`.
SPELLED: Final = re.compile(r"([a-z0-9_.]{1,64})(?:\[([A-Za-z0-9_.:@-]{1,64})\](\.[a-z0-9_]{1,32})?)?")
COST_TEXT: Final = re.compile(r"[a-z]{1,16}=[a-z0-9.]{1,24}(?: [a-z]{1,16}=[a-z0-9.]{1,24}){0,15}")  # of io.cost.*
LINK_TEXT: Final = re.compile(r"[A-Za-z0-9_.:@-]{1,15}")
SHARE_TEXT: Final = re.compile(r"share/[a-z0-9.-]{1,63}/[a-z0-9.-]{1,253}")


def group(path: str) -> TargetId:
    """A cgroup that is not itself a workload: a tier, a slice, an ancestor. The root is `group/`."""
    return TargetId(f"group/{path.strip('/')}")


def resctrl(name: str) -> TargetId:
    """A group of the resctrl file system, by its folder's name."""
    return TargetId(f"resctrl/{name}")


def link(name: str) -> TargetId:
    """A network interface, by its name here."""
    return TargetId(f"link/{name}")


def disk(number: str) -> TargetId:
    """A block device, by `MAJ:MIN`."""
    return TargetId(f"disk/{number}")


def share(namespace: str, policy: str) -> TargetId:
    """What the workloads of a reservation have together."""
    return TargetId(f"share/{namespace}/{policy}")


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
        if not self.instance:
            return self.knob
        line = KNOBS[self.knob].line if self.knob in KNOBS else ""
        return f"{line or self.knob}[{self.instance}]{self.knob.removeprefix(line) if line else ''}"

    def __str__(self) -> str:
        return f"{self.target} {self.name}"


class Deed(Enum):
    """What can be done to a target besides setting a value; it leaves none behind."""

    RECLAIM = "reclaim"  # make the kernel take back so many bytes
    EVICT = "evict"  # ask whoever made the workload to end it
    KILL = "kill"  # end every process of it at once


KNOBS: Final[dict[str, Knob]] = {k.name: k for k in TABLE}
TENDED: Final = frozenset(name for name, k in KNOBS.items() if k.on == THREADS)
CGROUP_KNOBS: Final[dict[str, Knob]] = {name: k for name, k in KNOBS.items() if k.on == CGROUP}


LINES: Final[dict[str, tuple[str, ...]]] = {
    line: tuple(k.name for k in TABLE if k.line == line) for line in {k.line for k in TABLE if k.line}
}
_ON: Final = {
    CGROUP: CGROUP_KINDS,
    FILES: CGROUP_KINDS,
    BUDGETS: CGROUP_KINDS,
    THREADS: frozenset({"workload"}),
    TRAFFIC: frozenset({"workload", "share"}),
}
# Kinds of targets by knob, made once: every proposal of every tick is asked for it.
_KINDS: Final = {k.name: _ON.get(k.on, frozenset({k.on})) for k in TABLE}


def has(target: TargetId, knob: str) -> bool:
    """Whether a target of that kind can have the knob; of a knob that the table lacks its back end knows."""
    kinds = _KINDS.get(knob)
    return kinds is None or target.partition("/")[0] in kinds


def read_name(text: str) -> tuple[str, str] | None:
    """(knob, instance) of `cpu.max`, `resctrl.l3[0]` or `io.max[8:0].rbps`; None where it is none."""
    matched = SPELLED.fullmatch(text)
    return (matched[1] + (matched[3] or ""), matched[2] or "") if matched else None


def read_names(text: str) -> tuple[tuple[str, str], ...]:
    """Every (knob, instance) of the table that is meant: `io.max[8:0]` means four. Empty for what is no knob."""
    if (read := read_name(text)) is None:
        return ()
    name, instance = read
    return tuple((k, instance) for k in (LINES.get(name) or (name,)) if k in KNOBS)


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
    if unit is Unit.BYTES or unit is Unit.BYTES_PER_S:
        return spell("memory", value)
    if unit is Unit.BITS:
        return spell("network", value)
    if unit is Unit.TIME:
        return f"{value:g} µs"
    return f"{value:g}"


def parse_value(knob: str, text: str) -> Value:
    """What an operator writes (`max`, `0-3`, `50000`, `1Gi`, `1`) as a value of a knob; raises ValueError."""
    about = KNOBS[knob]
    if about.unit is Unit.SET:
        return parse_cpus(text)
    if about.unit is Unit.TEXT:
        return _text(knob, text.strip())
    below = -1.0 if about.low < 0 and text.strip().startswith("-") else 1.0
    rest = text.strip().removeprefix("-" if below < 0 else "").removesuffix(" µs" if about.unit is Unit.TIME else "")
    value = math.inf if rest == "max" else below * _number(rest, rate=about.unit is Unit.BITS)
    whole = about.unit is not Unit.FLAG or value in (0.0, 1.0)
    if not whole or not about.low <= value <= about.high:
        high = "max" if about.high == math.inf else f"{about.high:g}"
        raise ValueError(f"{knob} takes {about.low:g} to {high}, in {about.unit.value}")
    return value


_FORMS: Final = {"net.share": (SHARE_TEXT, "share/NAMESPACE/NAME"), "net.door": (LINK_TEXT, "the name of a link")}


def _text(knob: str, text: str) -> str:
    if KNOBS[knob].on in ("disk", TRAFFIC):
        form, what = _FORMS.get(knob, (COST_TEXT, "key=value pairs"))
        if text != NO_TEXT and not form.fullmatch(text):
            raise ValueError(f"{knob} takes {what}, or {NO_TEXT}")
        return "" if text == NO_TEXT else text
    if text != NO_TEXT and not GROUP_NAME.fullmatch(text):
        raise ValueError(f"{knob} takes a name of letters, digits, '.', '_' and '-', or {NO_TEXT}")
    return "" if text == NO_TEXT else text


def _number(text: str, *, rate: bool) -> float:
    try:
        quantity = Quantity.parse(text)
    except Invalid as e:
        raise ValueError(e.findings[0].problem) from None
    if quantity.percent:
        raise ValueError("a percentage is not a value")
    if quantity.rate and not rate:
        raise ValueError("bits a second are a value of the network alone")
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
