"""Cgroups in memory, with the rules by which the kernel takes or refuses a value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from j10ce.model.knob import CGROUP_KNOBS, FREEZER, IDLE_SHARES, KNOBS, Support, Unit, Value, shares_of, weight_of

Version = Literal["v1", "v2"]


class Objection(NamedTuple):
    """Why the kernel does not take a value."""

    error: str  # errno name
    rule: str


@dataclass
class Cgroup:
    """One directory. Values are in the units of the knob table, as the kernel rounded them."""

    identity: int
    values: dict[str, Value] = field(default_factory=dict)
    enabled: frozenset[str] = frozenset()  # controllers its children have (v2)
    pids: set[int] = field(default_factory=set)
    memory_current: float = 0.0


class FakeCgroups:
    """The tree by path; "" is the root. A path is never reused with the same identity."""

    def __init__(self, version: Version, cpus: int, page: int, lacking: tuple[str, ...]) -> None:
        self.version = version
        self.cpus = frozenset(range(cpus))
        self.page = page
        self.lacking = lacking
        self.made = 1
        self.by_path = {"": Cgroup(1, {"cpuset.cpus": self.cpus})}

    def make(self, path: str) -> None:
        """A v1 cpuset starts empty and unusable, so whoever makes one copies the parent's."""
        if path not in self.by_path:
            self.made += 1
            copied: dict[str, Value] = {}
            if self.version == "v1":
                copied["cpuset.cpus"] = self.effective_cpus(parent(path))
            self.by_path[path] = Cgroup(self.made, copied)

    def vanish(self, path: str) -> None:
        for below in [p for p in self.by_path if p == path or p.startswith(f"{path}/")]:
            del self.by_path[below]

    def children(self, path: str) -> Iterator[str]:
        return (p for p in self.by_path if p and parent(p) == path)

    def support(self, name: str) -> Support:
        if name not in CGROUP_KNOBS or name in self.lacking or KNOBS[name].rare:
            return Support(False, needs="another kernel")
        if self.version == "v1":
            return Support(True, via="cgroup1") if KNOBS[name].v1 else Support(False, needs="cgroup v2")
        return Support(True, via="cgroup2")

    def has(self, name: str, path: str) -> bool:
        """Whether the knob's file is there."""
        if not path or path not in self.by_path or not self.support(name).ok:
            return False
        everywhere = self.version == "v1" or KNOBS[name].controller == FREEZER
        return everywhere or KNOBS[name].controller in self.by_path[parent(path)].enabled

    def value(self, name: str, path: str) -> Value:
        here = self.by_path[path].values
        if name == "cpu.weight" and here.get("cpu.idle") == 1.0:
            return IDLE_SHARES
        return here.get(name, KNOBS[name].default)

    def rounded(self, name: str, value: Value) -> Value:
        """What the kernel makes of a value: whole pages, microseconds, and on v2 weights from 1 to 10000."""
        k = KNOBS.get(name)
        if k is None or not isinstance(value, int | float) or value == math.inf:
            return value
        bounded = min(max(float(value), k.low), k.high)
        match k.unit:
            case Unit.BYTES:
                return bounded // self.page * self.page
            case Unit.FLAG:
                return float(bool(value))
            case Unit.SHARES:
                return shares_of(weight_of(bounded)) if self.version == "v2" else float(math.floor(bounded + 0.5))
            case _:
                return float(int(bounded))

    def hold(self, name: str, value: Value, path: str) -> None:
        """Take a value that nothing objects to, with its side effects."""
        here = self.by_path[path].values
        if name == "cpu.idle" and self.value(name, path) != value:
            here["cpu.weight"] = KNOBS["cpu.weight"].default
        if name == "cpuset.cpus" and not value and self.version == "v1":
            value = self.effective_cpus(parent(path))
        here[name] = value

    def companions(self, name: str, value: Value, path: str) -> list[tuple[str, Value, str]]:
        """(knob, value, path) that the back ends move along: a burst above the quota, v1 sets equal to the parent's."""
        here = self.by_path[path].values
        if name == "cpu.max" and isinstance(value, float) and value < number(here, "cpu.max.burst"):
            return [("cpu.max.burst", value, path)]
        if name == "cpuset.cpus" and self.version == "v1":
            final = value or self.effective_cpus(parent(path))
            return [(name, final, p) for p in self._followers(path, cpuset(here))]
        return []

    def _followers(self, path: str, cpus: frozenset[int]) -> list[str]:
        same = [c for c in self.children(path) if cpuset(self.by_path[c].values) == cpus]
        return [f for c in same for f in (*self._followers(c, cpus), c)]

    def objection(self, name: str, value: Value, path: str) -> Objection | None:
        if isinstance(value, frozenset):
            return self._cpuset_objection(value, path)
        if not isinstance(value, int | float) or math.isnan(value):
            return Objection("EINVAL", "not a number")
        here = self.by_path[path].values
        match name:
            case "cpu.weight" if here.get("cpu.idle") == 1.0:
                return Objection("EINVAL", "the group is idle")
            case "cpu.max.burst" if value > number(here, "cpu.max"):
                return Objection("EINVAL", "burst above quota")
            case "cpu.max" if value < number(here, "cpu.max.burst"):
                return Objection("EINVAL", "burst above quota")
            case "cpu.max" if self.version == "v1":
                return self._quota_objection(value, path)
        return None

    def _cpuset_objection(self, value: frozenset[int], path: str) -> Objection | None:
        if not value <= self.cpus:
            return Objection("EINVAL", "no such CPU")
        if self.version == "v2":
            return None
        above = self.effective_cpus(parent(path))
        if not value <= above:
            return Objection("EACCES", "not within the parent")
        if any(not cpuset(self.by_path[c].values) <= (value or above) for c in self.children(path)):
            return Objection("EBUSY", "a child uses more")
        return None

    def _quota_objection(self, value: float, path: str) -> Objection | None:
        """v1 refuses a child above its parent; an unlimited group inherits."""
        above = self._quota_above(path)
        if value != math.inf and value > above:
            return Objection("EINVAL", f"the parent has {above:g}")
        if self._largest_below(path) > min(value, above):
            return Objection("EINVAL", "a child has more")
        return None

    def _quota_above(self, path: str) -> float:
        while path:
            path = parent(path)
            if (quota := number(self.by_path[path].values, "cpu.max")) != math.inf:
                return quota
        return math.inf

    def _largest_below(self, path: str) -> float:
        largest = 0.0
        for child in self.children(path):
            quota = number(self.by_path[child].values, "cpu.max")
            largest = max(largest, self._largest_below(child) if quota == math.inf else quota)
        return largest

    def effective_cpus(self, path: str) -> frozenset[int]:
        """What tasks may use: the own set within what the parent may use, else all of that."""
        own = cpuset(self.by_path[path].values)
        if not path:
            return own
        above = self.effective_cpus(parent(path))
        return own & above or above


def parent(path: str) -> str:
    return path.rpartition("/")[0]


def number(values: Mapping[str, Value], name: str) -> float:
    value = values.get(name, KNOBS[name].default)
    assert isinstance(value, int | float)
    return value


def cpuset(values: Mapping[str, Value]) -> frozenset[int]:
    value = values.get("cpuset.cpus", frozenset())
    assert isinstance(value, frozenset)
    return value
