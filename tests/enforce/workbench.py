"""Real cgroups for tests: made under a name of their own, with processes in them, and removed again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from j10ce.host.mounts import Hierarchies
from j10ce.kernel.cgroup.files import CgroupFiles
from j10ce.kernel.cgroup.tree import PlainTree
from j10ce.model.knob import Setting, TargetId, Value, group
from j10ce.model.plan import Applied
from j10ce.model.workload import Handle

CONTROLLERS = frozenset({"cpu", "cpuset", "memory"})
SPIN = "while True: pass"
PATIENCE_S = 100.0
MIB = 1 << 20
WORKING_SET, STREAM = 24 * MIB, 120 * MIB  # sizes of the files on the `disk` of conftest


class Workbench:
    def __init__(self, hierarchies: Hierarchies, top: str) -> None:
        self.hierarchies = hierarchies
        self.tree = PlainTree(hierarchies, top)
        self.backend = CgroupFiles(hierarchies)
        self.top = top
        self.processes: list[subprocess.Popen[str]] = []

    def path(self, at: Handle | str, name: str, controller: str = "") -> Path:
        """A file of a cgroup; the controller is the first word of the name unless given."""
        where = at if isinstance(at, str) else at.path
        return Path(self.hierarchies.file(controller or name.split(".")[0], where, name))

    def make(self, *steps: str) -> Handle:
        """A cgroup below the top, its parents with controllers enabled."""
        paths = ["/".join((self.top, *steps)[: n + 1]) for n in range(len(steps) + 1)]
        self.tree.enable(group(""), CONTROLLERS)
        for path in paths:
            if "/" in path:
                done(self.tree.enable(group(path.rpartition("/")[0]), CONTROLLERS))
            done(self.tree.make(group(path), Handle(path)))
        return Handle(paths[-1])

    def set(self, at: Handle, knob: str, value: Value) -> None:
        done(self.backend.write(self.setting(at, knob), value, at))

    def setting(self, at: Handle, knob: str, target: TargetId | None = None) -> Setting:
        support = self.backend.knobs()[knob]
        if not support.ok:
            pytest.skip(f"Unsupported: {knob} needs {support.needs}")
        return Setting(target or group(at.path), knob)

    def spawn(self, at: Handle, code: str) -> subprocess.Popen[str]:
        """A process that is in the cgroup before it runs the code."""
        files = [self.hierarchies.file(c, at.path, "cgroup.procs") for c in self.hierarchies.in_use()]
        enter = "".join(f"open({f!r}, 'w').write('0')\n" for f in files)
        command = [sys.executable, "-I", "-S", "-c", f"{enter}{code}"]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes.append(child)
        return child

    def cpu_s(self, at: Handle) -> float:
        """CPU time used, by the kernel's own count."""
        if self.hierarchies.version("cpuacct") == 1:
            return int(self.path(at, "cpuacct.usage").read_text()) / 1e9
        return stat(self.path(at, "cpu.stat", "unified"))["usage_usec"] / 1e6

    def race(self, *places: Handle, cpu_s: float) -> list[float]:
        """How the places divide the next seconds of CPU time that they use together."""
        before = [self.cpu_s(p) for p in places]
        until(lambda: sum(map(self.cpu_s, places)) - sum(before) >= cpu_s)
        used = [self.cpu_s(p) - b for p, b in zip(places, before, strict=True)]
        return [u / sum(used) for u in used]

    def end(self, child: subprocess.Popen[str]) -> None:
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream:
                stream.close()

    def clear(self) -> None:
        for child in self.processes:
            self.end(child)
        for mount in self.hierarchies.in_use().values():
            for directory, _, _ in os.walk(f"{mount.path}/{self.top}", topdown=False):
                kill_all(Path(directory))
                until(lambda d=directory: removed(Path(d)))


def done(result: object) -> None:
    assert isinstance(result, Applied), result


def stat(path: Path) -> dict[str, int]:
    return {key: int(value) for key, value in (line.split() for line in path.read_text().splitlines())}


def until(condition: Callable[[], bool]) -> None:
    """Poll for what another process or the kernel will bring about."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def kill_all(directory: Path) -> None:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for pid in (directory / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def removed(directory: Path) -> bool:
    with contextlib.suppress(OSError):
        directory.rmdir()
    return not directory.exists()
