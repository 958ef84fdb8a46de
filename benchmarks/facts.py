"""The machine a number was measured on: printed above every table."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path


def machine_facts() -> None:
    names = (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name"))
    memory = int(_lines("/proc/meminfo")[0].split()[1]) >> 20
    load = _lines("/proc/loadavg")[0].split()[0]
    machine = f"{os.cpu_count()} CPUs ({next(names, 'unknown')}), {memory} GiB"
    print(f"# {machine}, Linux {platform.release()}, Python {platform.python_version()}, load {load}")


def cpu_s(pid: int) -> float:
    """Seconds that a process has been on a CPU, in all its threads: unlike a rate, hardly moved by who else works."""
    if pid == os.getpid():
        return time.process_time()  # threads that have ended included
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
