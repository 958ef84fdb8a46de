"""Killed at any point, started again, reverted: every file holds what it held before, to the letter."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from j10ce.kernel.backend import Backend
from j10ce.kernel.cgroup.files import CgroupFiles
from j10ce.kernel.cgroup.tree import PlainTree
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import Setting, Value, group
from j10ce.model.plan import Applied, Change, Enable, Gone, Make, Plan, Refused, ValueChange
from j10ce.model.workload import Handle, Workload
from tests.enforce.workbench import CONTROLLERS, Workbench

MIB = 1 << 20
FILES_V1 = {
    "cpu.shares": "777",
    "cpu.cfs_period_us": "50000",
    "cpu.cfs_quota_us": "25000",
    "cpu.cfs_burst_us": "1000",
    "cpuset.cpus": "1",
    "memory.limit_in_bytes": str(100 * MIB),
}
FILES_V2 = {
    "cpu.weight": "123",
    "cpu.max": "25000 50000",
    "cpu.max.burst": "1000",
    "cpuset.cpus": "1",
    "memory.max": str(100 * MIB),
    "memory.low": str(3 * MIB),
}
VALUES: dict[str, Value] = {
    "cpu.weight": 512.0,
    "cpu.max": 800.0,  # below the burst that is there
    "cpuset.cpus": frozenset({0}),
    "memory.max": 64.0 * MIB,
    "memory.low": 8.0 * MIB,
    "cpu.idle": 1.0,
}


class Mortal:
    """A back end that ends its process before the n-th write."""

    def __init__(self, inner: CgroupFiles, writes: int) -> None:
        self._inner = inner
        self._writes = writes
        self.knobs, self.quantise, self.read = inner.knobs, inner.quantise, inner.read
        self.save, self.restore = inner.save, inner.restore

    def write(self, s: Setting, v: Value, at: Handle, /) -> Applied | Refused | Gone:
        if self._writes == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._writes -= 1
        return self._inner.write(s, v, at)


class Scene:
    """A cgroup that was there before us, with values of its own, and a tree of ours beside it."""

    def __init__(self, work: Workbench, directory: Path) -> None:
        self.work = work
        self.journal = directory / "journal"
        self.theirs = work.make("theirs", "db")
        self.db = Workload("default", "db", handle=Handle(path=self.theirs.path, made=False))
        self.web = Workload("default", "web", handle=Handle(path=f"{work.top}/ours/standard/default_web"))
        files = FILES_V1 | FILES_V2
        self.files = {n: work.path(self.theirs, n) for n in files if work.path(self.theirs, n).exists()}
        for name, path in self.files.items():
            path.write_text(files[name])

    def texts(self) -> dict[str, str]:
        idle = self.work.path(self.theirs, "cpu.idle")
        control = [Path(self.work.hierarchies.file("unified", p, "cgroup.subtree_control")) for p in self.groups()]
        return {str(p): p.read_text() for p in (*self.files.values(), idle, *control) if p.exists()}

    def groups(self) -> list[str]:
        return ["", self.work.top, f"{self.work.top}/theirs"]

    def kernel(self, backend: Backend) -> Kernel:
        journal = Journal.open(self.journal, Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        tree = PlainTree(self.work.hierarchies, f"{self.work.top}/ours")
        return Kernel(tree, [backend], journal, guard=Guard())

    def plan(self) -> Plan:
        changes: list[Change] = []
        steps = self.web.handle.path.split("/")
        for n in range(2, len(steps)):
            path = "/".join(steps[:n])
            changes += [Make(group(path), path, "test"), Enable(group(path), CONTROLLERS, "test")]
        changes.append(Make(self.web.target, self.web.handle.path, "test"))
        changes += [
            ValueChange(Setting(w.target, knob), None, value, "test", "test")
            for w in (self.db, self.web)
            for knob, value in VALUES.items()
            if self.work.backend.knobs()[knob].ok
        ]
        return Plan(tuple(changes))

    def live_and_die(self, writes: int) -> int:
        """In a process of its own: apply the plan, be killed after some writes."""
        if (child := os.fork()) == 0:
            status = 1
            try:
                kernel = self.kernel(Mortal(self.work.backend, writes))
                kernel.track([self.db, self.web])
                status = 2 if kernel.apply(self.plan()).refused() else 0
            finally:
                os._exit(status)
        return os.waitpid(child, 0)[1]


@pytest.mark.parametrize("writes", [0, 1, 4, 100])
def test_every_file_is_given_back_after_a_kill(work: Workbench, tmp_path: Path, writes: int) -> None:
    scene = Scene(work, tmp_path)
    before = scene.texts()
    status = scene.live_and_die(writes)
    assert status == (0 if writes == 100 else signal.SIGKILL)
    assert (scene.texts() == before) is (writes == 0)
    assert not scene.kernel(work.backend).revert().refused()
    assert scene.texts() == before
    assert not Path(work.hierarchies.directory("cpu", f"{work.top}/ours")).exists()


def test_a_cgroup_made_anew_at_the_path_is_left_alone(work: Workbench, tmp_path: Path) -> None:
    scene = Scene(work, tmp_path)
    assert scene.live_and_die(100) == 0
    assert isinstance(work.tree.remove(group(scene.theirs.path)), Applied)
    work.make("theirs", "db")
    fresh = scene.texts()
    outcome = scene.kernel(work.backend).revert()
    assert {r for c, r in outcome.results if isinstance(c, ValueChange) and c.setting.target == scene.db.target} == {
        Gone()
    }
    assert scene.texts() == fresh


def test_what_someone_else_wrote_since_stays(work: Workbench, tmp_path: Path) -> None:
    scene = Scene(work, tmp_path)
    assert scene.live_and_die(3) == signal.SIGKILL
    quota = scene.files.get("cpu.max") or scene.files["cpu.cfs_quota_us"]
    theirs = "77000 100000" if quota.name == "cpu.max" else "77000"
    quota.write_text(theirs)
    refused = scene.kernel(work.backend).revert().refused()
    assert [c.setting.knob for c, _ in refused if isinstance(c, ValueChange)] == ["cpu.max"]
    assert quota.read_text().strip() == theirs
