"""A cgroup vanishes before each single step of an apply, a sweep and a revert: the rest goes on, and nothing raises."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from j10ce.host.mounts import Hierarchies
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import Setting, Value, group
from j10ce.model.plan import Applied, Change, Enable, Gone, Make, Plan, Refused, ValueChange
from j10ce.model.workload import Handle, Workload
from tests.enforce.workbench import CONTROLLERS, Workbench

pytestmark = pytest.mark.host
MIB = 1 << 20
VALUES: dict[str, Value] = {
    "cpu.weight": 512.0,
    "cpu.max": 20_000.0,
    "cpuset.cpus": frozenset({0}),
    "memory.max": 512.0 * MIB,
    "memory.low": 8.0 * MIB,
}


class Trap:
    """Passes every call on; before the n-th one it removes a cgroup."""

    def __init__(self, inner: Any, fuse: Fuse) -> None:
        self._inner, self._fuse = inner, fuse

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        return self._fuse.before(attribute) if callable(attribute) else attribute


class Fuse:
    def __init__(self, steps: int, spring: Callable[[], None]) -> None:
        self.left, self._spring = steps, spring

    def before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                self._spring()
            return call(*args, **kwargs)

        return stepped


@pytest.fixture
def work() -> Iterator[Workbench]:
    one = Workbench(Hierarchies.discover(), f"j10cefault-{os.getpid()}-vanish")
    yield one
    one.clear()


class Scene:
    """Two adopted workloads side by side, one of which will vanish, and one that is made."""

    def __init__(self, work: Workbench, folder: Path, steps: int) -> None:
        self.work = work
        self.victim = work.make("theirs", "victim")
        self.other = work.make("theirs", "other")
        self.fuse = Fuse(steps, self.vanish)
        journal = Journal.open(folder / f"journal-{steps}", "boot")
        tree, backend = Trap(work.tree, self.fuse), Trap(work.backend, self.fuse)
        self.kernel = Kernel(tree, [backend], journal, guard=Guard())
        self.workloads = [
            Workload("default", "victim", handle=Handle(path=self.victim.path, made=False)),
            Workload("default", "other", handle=Handle(path=self.other.path, made=False)),
            Workload("default", "made", handle=Handle(path=f"{work.top}/ours/made")),
        ]

    def vanish(self) -> None:
        for mount in self.work.hierarchies.in_use().values():
            for name in ("theirs/victim", "ours/made"):
                with suppress(OSError):
                    os.rmdir(f"{mount.path}/{self.work.top}/{name}")

    def plan(self) -> Plan:
        ours = f"{self.work.top}/ours"
        made = self.workloads[2]
        changes: list[Change] = [Make(group(ours), ours, "test"), Enable(group(ours), CONTROLLERS, "test")]
        changes.append(Make(made.target, made.handle.path, "test"))
        for knob, value in VALUES.items():
            if self.work.backend.knobs()[knob].ok:
                settings = [Setting(w.target, knob) for w in self.workloads]
                changes += [ValueChange(s, None, value, "test", "test") for s in settings]
        return Plan(tuple(changes))


def test_a_cgroup_may_vanish_before_any_step(work: Workbench, tmp_path: Path) -> None:
    sprung = 0
    for steps in count(1):
        scene = Scene(work, tmp_path, steps)
        other = {f.name: f.read_text() for f in texts(scene)}
        scene.kernel.track(scene.workloads)
        outcome = scene.kernel.apply(scene.plan())
        theirs = [r for c, r in outcome.results if isinstance(c, ValueChange) and c.setting.target.endswith("/other")]
        assert theirs, steps
        assert all(isinstance(r, Applied) for r in theirs), (steps, theirs)
        for now in (0.0, 15.0, 30.0):
            scene.kernel.sweep(now)
        left = [r for c, r in scene.kernel.revert().results if isinstance(c, ValueChange) and isinstance(r, Refused)]
        assert left == [], steps
        assert {f.name: f.read_text() for f in texts(scene)} == other, steps
        scene.kernel.close()
        if scene.fuse.left > 0:
            break
        sprung += 1
    assert sprung > 50  # every call on the way was a turn


def texts(scene: Scene) -> list[Path]:
    names = ("cpu.shares", "cpu.weight", "cpu.cfs_quota_us", "cpu.max", "cpuset.cpus", "memory.limit_in_bytes")
    return [p for n in names if (p := scene.work.path(scene.other, n)).exists()]


def test_a_vanished_cgroup_is_gone_and_not_an_error(work: Workbench, tmp_path: Path) -> None:
    scene = Scene(work, tmp_path, 10**9)
    scene.kernel.track(scene.workloads)
    scene.vanish()
    outcome = scene.kernel.apply(scene.plan())
    of_victim = {r for c, r in outcome.results if isinstance(c, ValueChange) and c.setting.target.endswith("/victim")}
    assert of_victim == {Gone()}
