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

TASKS: Final = "(tasks)"  # stands for those in the group itself
TASK_SHARES: Final = 1024.0  # a task of nice 0, against the groups beside it
DEFAULT_SHARES: Final = 1024.0  # what a cgroup has as soon as the cpu controller reaches it
PF_KTHREAD: Final = 0x00200000


class Siblings:
    """Looks into cgroups. A look costs a listing per hierarchy, and one to five reads per foreign sibling."""

    def __init__(self, hierarchies: Hierarchies, proc: str = "/proc") -> None:
        self._hierarchies = hierarchies
        self._proc = proc
        self._user_tasks: dict[str, dict[int, bool]] = {}  # by cgroup: which of its tasks are no kernel threads
        self._held: dict[str, int] = {}

    def names(self, path: str) -> frozenset[str]:
        """The cgroups right below that compete for CPU, or that can be protected from reclaim."""
        names = self._children("cpu", path)
        cpu, memory = self._hierarchies.mount("cpu"), self._hierarchies.mount("memory")
        return names | self._children("memory", path) if memory and memory.version == 2 and memory != cpu else names

    def foreign(self, path: str, strangers: Iterable[str]) -> tuple[Foreign, ...]:
        """Those of them that are not ours, and the tasks in `path` itself, as far as they matter."""
        rivals = [self._rival(path, name) for name in sorted(strangers)]
        rivals.append(Foreign(TASKS, self._tasks(path) * TASK_SHARES))
        return tuple(r for r in rivals if r.weight or r.memory_min or r.memory_low)

    def _rival(self, path: str, name: str) -> Foreign:
        below = f"{path}/{name}" if path else name
        if self._hierarchies.version("memory") != 2:
            return Foreign(name, self._shares(below))
        files = ("memory.min", "memory.low", "memory.current")
        return Foreign(name, self._shares(below), *(self._number("memory", below, file) or 0.0 for file in files))

    def _shares(self, path: str) -> float:
        """0 for one that cannot compete: gone, or (where the kernel tells) without a process."""
        if self._hierarchies.version("cpu") == 1:
            return self._number("cpu", path, "cpu.shares") or 0.0  # of an idle group it prints what it really has
        if b"populated 1" not in (self._read("cpu", path, "cgroup.events") or b""):
            return 0.0
        weight = self._number("cpu", path, "cpu.weight")
        if weight is None:
            return DEFAULT_SHARES
        return shares_of(int(weight)) if weight else IDLE_SHARES

    def _tasks(self, path: str) -> int:
        """Threads right in the group, kernel threads left out.

        Held until there are more, or a third fewer: weights should not follow every thread that comes and goes.
        """
        text = self._read("cpu", path, "tasks" if self._hierarchies.version("cpu") == 1 else "cgroup.threads")
        known = self._user_tasks.get(path, {})
        tasks = {tid: known[tid] if tid in known else self._is_user(tid) for tid in map(int, (text or b"").split())}
        self._user_tasks[path] = tasks
        count, held = sum(tasks.values()), self._held.get(path, 0)
        if count > held or count * 3 < held * 2:
            self._held[path] = held = count + count // 8
        return held

    def _is_user(self, tid: int) -> bool:
        stat = read_whole(f"{self._proc}/{tid}/stat")
        if stat is None:
            return False  # ended since it was listed
        flags = stat[stat.rfind(b")") + 1 :].split()[6]  # the name before it may hold anything
        return not int(flags) & PF_KTHREAD

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
        self._user_tasks.pop(path, None)
        self._held.pop(path, None)
