"""A kernel facade over a fake kernel, with a journal on disk, that can be killed and started again."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from j10ce.kernel.drift import Drift
from j10ce.kernel.guard import Guard
from j10ce.kernel.journal import Journal
from j10ce.kernel.kernel import Kernel
from j10ce.model.knob import ROOT, Setting, TargetId, Value, group
from j10ce.model.plan import Change, Enable, Make, Outcome, Plan, Result, ValueChange
from j10ce.model.workload import Handle, Workload
from j10ce.testing.fake_kernel import FakeKernel

CONTROLLERS = frozenset({"cpu", "cpuset", "memory"})
WEB = Workload("default", "web", handle=Handle(path="j10ce/standard/default_web"))
DB = Workload("default", "db", handle=Handle(path="system.slice/db.service", made=False))
BUILD: tuple[Change, ...] = (
    Enable(ROOT, CONTROLLERS, "test"),
    Make(group("j10ce"), "j10ce", "test"),
    Enable(group("j10ce"), CONTROLLERS, "test"),
    Make(group("j10ce/standard"), "j10ce/standard", "test"),
    Enable(group("j10ce/standard"), CONTROLLERS, "test"),
    Make(WEB.target, WEB.handle.path, "test"),
)


@contextmanager
def full_disk(path: Path, room: int) -> Iterator[None]:
    """No file of this process can grow beyond the present size of `path` and `room` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Rig:
    def __init__(self, directory: Path, fake: FakeKernel | None = None, *, guard: Guard | None = None) -> None:
        self.path = directory / "journal"
        self.fake = fake or FakeKernel()
        self.boot = "this boot"
        self.now = 1000.0
        self.guard = guard or Guard()
        self.kernel = self.start()

    def start(self) -> Kernel:
        """Another process takes over: nothing is left of the one before but its journal."""
        self.fake.places = {ROOT: self.fake.places[ROOT]}
        journal = Journal.open(self.path, self.boot)
        self.kernel = Kernel(self.fake, [self.fake], journal, clock=lambda: self.now, guard=self.guard)
        return self.kernel

    def adopt(self, **values: Value) -> None:
        """The cgroup of DB, there before us; `cpu__weight=200.0` names a value that it holds."""
        self.fake.enable(ROOT, CONTROLLERS)
        self.fake.adopt(group("system.slice"), "system.slice")
        self.fake.enable(group("system.slice"), CONTROLLERS)
        self.fake.adopt(DB.target, DB.handle.path, {k.replace("__", "."): v for k, v in values.items()})

    def build(self) -> None:
        self.kernel.track([WEB])
        self.apply(*BUILD)

    def apply(self, *changes: Change) -> Outcome:
        return self.kernel.apply(Plan(changes))

    def write(self, target: TargetId, knob: str, value: Value, owner: str = "test") -> Result:
        ((_, result),) = self.apply(ValueChange(Setting(target, knob), None, value, owner, "test")).results
        return result

    def meddle(self, target: TargetId, knob: str, value: Value) -> None:
        """Someone else writes."""
        at = self.fake.places[target]
        self.fake.cgroups.hold(knob, value, at.path)

    def sweep(self) -> list[Drift]:
        """Long enough for everything to have been read again."""
        found = self.kernel.sweep(self.now)
        self.now += 30.0
        return found + self.kernel.sweep(self.now)

    def held(self, target: TargetId, knob: str) -> Value | None:
        """What the machine holds, by its own word."""
        at = self.fake.places.get(target)
        return self.fake.read(Setting(target, knob), at) if at else None
