"""What is said of one kernel control."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, TypeAlias

Value: TypeAlias = float | frozenset[int] | str

PERIOD_US: Final = 100_000  # the period in which cpu.max and cpu.max.burst are expressed
CGROUP: Final = "cgroup"  # what group/, workload/ and part/ are
FILES: Final = "files"  # files of a cgroup with a value for each disk: another back end's than those with one value
TRAFFIC: Final = "traffic"  # what passes links: of a workload, or of a share that several have together
THREADS: Final = "threads"  # said of all threads of a workload, by a back end that looks after them
BUDGETS: Final = "budgets"  # files of a cgroup that only some machines need, by a back end of their own
FREEZER: Final = "freezer"  # a controller on cgroup v1; on v2 every cgroup has it, and nobody enables it


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
    BYTES_PER_S = "bytes/s"
    BITS = "bits/s"
    TIME = "µs"
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
    line: str = ""  # the file that has several knobs in a line per instance: of `io.max.rbps` it is `io.max`
