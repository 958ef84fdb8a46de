"""Limits that a process leaves when it is moved: those of its cgroup and of all above it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from j10ce.host.files import read_whole
from j10ce.host.mounts import Hierarchies
from j10ce.kernel.process import Process
from j10ce.model.resource import spell

# Of both versions: a file that is not there limits nothing.
MEMORY: Final = ("memory.max", "memory.high", "memory.limit_in_bytes")
UNLIMITED: Final = 1 << 62  # cgroup v1 has no word for it, only a number near 2^63


class Limit(NamedTuple):
    cgroup: str
    amount: str

    def __str__(self) -> str:
        return f"the limit of {self.amount} of cgroup {self.cgroup}"


def left_limits(leaving: Process, hierarchies: Hierarchies) -> list[Limit]:
    """The nearest first."""
    return [
        Limit(path, amount)
        for controller, read in (("memory", _memory), ("cpu", _cpu))
        if controller in hierarchies.available()
        for path in _upwards(leaving.path(controller))
        for amount in read(hierarchies.directory(controller, path))
    ]


def _upwards(path: str) -> Iterator[str]:
    steps = path.split("/")
    return ("/".join(steps[:n]) for n in range(len(steps), 0, -1) if path)


def _memory(folder: str) -> Iterator[str]:
    values = (_text(folder, name) for name in MEMORY)
    sizes = [int(text) for text in values if text.isdigit() and int(text) < UNLIMITED]
    if sizes:
        yield f"{spell('memory', min(sizes))} of memory"


def _cpu(folder: str) -> Iterator[str]:
    quota, _, period = _text(folder, "cpu.max").partition(" ")
    if not period:
        quota, period = _text(folder, "cpu.cfs_quota_us"), _text(folder, "cpu.cfs_period_us")
    if quota.isdigit() and period.isdigit():
        yield f"{spell('cpu', math.ceil(int(quota) * 1000 / int(period)))} of CPU"


def _text(folder: str, name: str) -> str:
    return (read_whole(f"{folder}/{name}") or b"").decode().strip()
