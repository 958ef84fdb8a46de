"""Who else competes inside a cgroup: siblings that are not ours, and tasks that sit in the group itself."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import Final

from j10ce.host.files import ABSENT, read_whole
from j10ce.host.mounts import Hierarchies
from j10ce.model.knob import IDLE_SHARES, shares_of
from j10ce.model.snapshot import Foreign
from j10ce.observe.demand import Demand

TASKS: Final = "(tasks)"  # stands for those in the group itself
FIRST_PID_NAMESPACE: Final = "pid:[4026531836]"  # the same on every machine
MOST_EMPTY: Final = 200  # groups in which a process is looked for; one that has more counts as if it had some
DEFAULT_SHARES: Final = 1024.0  # what a cgroup has as soon as the cpu controller reaches it


class Siblings:
    """Looks into cgroups. A look costs a listing per hierarchy, and two to five reads per foreign sibling;
    on cgroup v1 one more for each empty group below it."""

    def __init__(self, hierarchies: Hierarchies, proc: str = "/proc") -> None:
        self._hierarchies = hierarchies
        self._proc = proc
        self._sees_processes = _sees_all_processes(proc)
        self._demand: dict[str, Demand] = {}  # by cgroup, of the tasks right in it
        # Whether memory of cgroups inside a workload is protected by their own settings alone, whatever it has itself.
        self.divide_memory = hierarchies.version("memory") == 2 and not hierarchies.recursive_protection

    def names(self, path: str) -> frozenset[str]:
        """The cgroups right below that compete for CPU, or that can be protected from reclaim."""
        names = self._children("cpu", path)
        cpu, memory = self._hierarchies.mount("cpu"), self._hierarchies.mount("memory")
        return names | self._children("memory", path) if memory and memory.version == 2 and memory != cpu else names

    def foreign(self, path: str, strangers: Iterable[str], now: float) -> tuple[Foreign, ...]:
        """Those of them that are not ours, and the tasks in `path` itself, as far as they matter."""
        rivals = [self._rival(path, name) for name in sorted(strangers)]
        rivals.append(Foreign(TASKS, float(round(self._tasks(path, now)))))
        return tuple(r for r in rivals if r.weight or r.memory_min or r.memory_low or r.memory_current)

    def _rival(self, path: str, name: str) -> Foreign:
        below = f"{path}/{name}" if path else name
        if self._hierarchies.version("memory") != 2:
            return Foreign(shown(name), self._shares(below))
        files = ("memory.min", "memory.low", "memory.current")
        return Foreign(
            shown(name), self._shares(below), *(self._number("memory", below, file) or 0.0 for file in files)
        )

    def _shares(self, path: str) -> float:
        """0 for one that cannot compete: gone, or without a process."""
        if not self._populated(path):
            return 0.0
        if self._hierarchies.version("cpu") == 1:
            return self._number("cpu", path, "cpu.shares") or 0.0  # of an idle group it prints what it really has
        weight = self._number("cpu", path, "cpu.weight")
        if weight is None:
            return DEFAULT_SHARES
        return shares_of(int(weight)) if weight else IDLE_SHARES

    def _populated(self, path: str) -> bool:
        """Whether a process is in it or below, as far as anyone can know."""
        if self._hierarchies.version("cpu") == 2:
            return b"populated 1" in (self._read("cpu", path, "cgroup.events") or b"")
        if self._hierarchies.mount("cpu") is None:
            return False
        return not self._sees_processes or _inhabited(self._hierarchies.directory("cpu", path))

    def threads(self, path: str) -> int:
        """How many were in the group itself at the last look, kernel threads left out."""
        demand = self._demand.get(path)
        return demand.threads if demand else 0

    def _tasks(self, path: str, now: float) -> float:
        """Shares of the threads right in the group that want to run, kernel threads left out."""
        text = self._read("cpu", path, "tasks" if self._hierarchies.version("cpu") == 1 else "cgroup.threads")
        demand = self._demand.setdefault(path, Demand(self._proc, at_root=not path))
        return demand.look(now, map(int, (text or b"").split()))

    def _children(self, controller: str, path: str) -> frozenset[str]:
        if self._hierarchies.mount(controller) is None:
            return frozenset()
        try:
            with os.scandir(self._hierarchies.directory(controller, path)) as entries:
                return frozenset(e.name for e in entries if e.is_dir(follow_symlinks=False))
        except OSError as e:
            if e.errno in ABSENT:
                return frozenset()
            raise

    def _number(self, controller: str, path: str, file: str) -> float | None:
        text = self._read(controller, path, file)
        if not text:
            return None
        return math.inf if text.startswith(b"max") else float(text)

    def _read(self, controller: str, path: str, file: str) -> bytes | None:
        if self._hierarchies.mount(controller) is None:
            return None
        return read_whole(self._hierarchies.file(controller, path, file))

    def forget(self, path: str) -> None:
        self._demand.pop(path, None)


def _sees_all_processes(proc: str) -> bool:
    """cgroup v1 lists none of those outside the reader's PID namespace, so that their groups look empty."""
    try:
        return os.readlink(f"{proc}/self/ns/pid") == FIRST_PID_NAMESPACE
    except FileNotFoundError:  # a kernel without namespaces
        return True


def _inhabited(directory: str) -> bool:
    """Whether a process is in a v1 group or below; the first one ends the walk. True where nobody can know."""
    left, empty = [directory], 0
    while left and empty < MOST_EMPTY:
        here = left.pop()
        empty += 1
        try:
            if read_whole(f"{here}/cgroup.procs"):
                return True
            with os.scandir(here) as entries:
                left += (e.path for e in entries if e.is_dir(follow_symlinks=False))
        except OSError as e:
            if e.errno not in ABSENT:
                return True
    return bool(left)


def shown(name: str) -> str:
    """A name that can be shown: a cgroup may be called by any bytes, and what is no text is escaped."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")
