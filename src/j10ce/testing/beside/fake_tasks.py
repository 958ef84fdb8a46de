"""Tasks that fork, end, move and hand their numbers on: files of cgroups and of /proc on disk, no process behind them.

Children have what their parents have. Cookies follow the rules of prctl(PR_SCHED_CORE).
"""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from j10ce.kernel.tasks.roll import Roll
from j10ce.testing.cgroup_tree import cgroup_tree


@dataclass
class FakeTask:
    path: str
    began: float
    group: str = ""  # of resctrl
    cookie: int = 0


class FakeTasks:
    """`proc` and `roll` show them; `now` is the time since boot. Cgroups are made as tasks enter them."""

    def __init__(self, folder: Path, *, v1: bool = False) -> None:
        self.proc = folder / "proc"
        self.proc.mkdir()
        self.hierarchies = cgroup_tree(folder / "cgroup", {}, v1=("cpu",) if v1 else ())
        self.roll = Roll(self.hierarchies)
        self.alive: dict[int, FakeTask] = {}
        self.now = 1000.0
        self._list = "tasks" if v1 else "cgroup.threads"
        self._next = count(100)

    def start(self, path: str, parent: int | None = None, task: int | None = None) -> int:
        """A new one, under a number of its own unless it is said."""
        number = next(self._next) if task is None else task
        above = self.alive[parent] if parent is not None else FakeTask(path, 0.0)
        self.alive[number] = FakeTask(path, self.now, above.group, above.cookie)
        begun = f"{number} (a b) c) S " + "0 " * 18 + f"{round(self.now * os.sysconf('SC_CLK_TCK'))} 0 0\n"
        (self.proc / str(number)).mkdir()
        (self.proc / str(number) / "stat").write_text(begun)
        self._show(path)
        return number

    def end(self, task: int) -> None:
        path = self.alive.pop(task).path
        (self.proc / str(task) / "stat").unlink()
        (self.proc / str(task)).rmdir()
        self._show(path)

    def move(self, task: int, path: str) -> None:
        before, self.alive[task].path = self.alive[task].path, path
        self._show(before)
        self._show(path)

    def directory(self, path: str) -> Path:
        return Path(self.hierarchies.directory("cpu", path))

    def _show(self, path: str) -> None:
        self.directory(path).mkdir(parents=True, exist_ok=True)
        inside = sorted(number for number, task in self.alive.items() if task.path == path)
        (self.directory(path) / self._list).write_text("".join(f"{task}\n" for task in inside))


class FakeCore:
    """Cookies of these tasks. Threads of this process have none until they ask for one, and none after they end."""

    def __init__(self, tasks: FakeTasks, fails: int = 0, denied: frozenset[int] = frozenset()) -> None:
        self._tasks = tasks
        self._fails = fails
        self.denied = denied
        self._own: dict[threading.Thread, int] = {}
        self._next = count(0xABC0)

    def get(self, task: int, /) -> int:
        self._may(task)
        return self._own.get(threading.current_thread(), 0) if not task else self._tasks.alive[task].cookie

    def create(self) -> None:
        self._may(0)
        self._own[threading.current_thread()] = next(self._next)

    def hand_to(self, task: int, /) -> None:
        self._may(task)
        self._tasks.alive[task].cookie = self._own.get(threading.current_thread(), 0)

    def take_from(self, task: int, /) -> None:
        self._may(task)
        self._own[threading.current_thread()] = self._tasks.alive[task].cookie

    def _may(self, task: int) -> None:
        if self._fails:
            raise OSError(self._fails, os.strerror(self._fails))
        if task in self.denied:
            raise PermissionError(errno.EPERM, "denied")
        if task and task not in self._tasks.alive:
            raise ProcessLookupError(errno.ESRCH, "no such task")
