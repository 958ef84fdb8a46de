"""What this machine and processes on it have used. Reads only."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_MIB: Final = 2**20


class Spent(NamedTuple):
    """CPU seconds of the whole machine since it started."""

    busy: float
    idle: float


def spent() -> Spent:
    fields = [int(field) / _TICKS for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return Spent(sum(fields) - idle, idle)


def cpu_s(pids: Iterable[int]) -> float:
    """CPU seconds of processes, and of those children of theirs that have ended; one that is gone has none."""
    total = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(map(int, fields[11:15])) / _TICKS
    return total


def family(pid: int) -> list[int]:
    """A process, its children, and theirs."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        children = []
    return [pid, *(one for child in children for one in family(int(child)))]


def memory_mib(pid: int) -> float:
    """Resident memory of a process; 0 for one that is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB


def cpus() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0))


def described() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return f"{cpus()} CPUs ({next(names, platform.machine())}), Linux {platform.release()}"
