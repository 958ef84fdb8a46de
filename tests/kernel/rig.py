"""A kernel facade over a fake kernel, with a journal on disk, that can be killed and started again."""

from __future__ import annotations

import math
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.drift import Drift
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import CGROUP_KNOBS, ROOT, Setting, TargetId, Value, group
from j10ce.model.plan import Change, Enable, Gone, Make, Outcome, Plan, Refused, Result, ValueChange
from j10ce.model.workload import Handle, Workload
from j10ce.testing.fake_kernel import Answer, FakeKernel

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


class Killed(Exception):
    """The process ends here, without any of its own clean-up."""


class Mortal(FakeKernel):
    """Ends the process before the n-th change that it makes, or right after a write that it has taken."""

    lives = math.inf

    def _fault(self, what: str, path: str) -> Refused | Gone | None:
        self._age()
        return super()._fault(what, path)

    def write(self, s: Setting, v: Value, at: Handle, /) -> Answer:
        answer = super().write(s, v, at)
        self._age()
        return answer

    def _age(self) -> None:
        self.lives -= 1
        if self.lives < 0:
            raise Killed


def machine(fake: FakeKernel) -> dict[str, dict[str, Value]]:
    """Every cgroup with the values that differ from those of a fresh one."""
    everything = fake.cgroups
    return {
        path: {
            knob: everything.value(knob, path)
            for knob in CGROUP_KNOBS
            if path and everything.value(knob, path) != CGROUP_KNOBS[knob].default
        }
        for path in everything.by_path
    }


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
        drifts = self.kernel.sweep(self.now)
        self.now += 30.0
        return drifts + self.kernel.sweep(self.now)

    def held(self, target: TargetId, knob: str) -> Value | None:
        """What the machine holds, by its own word."""
        at = self.fake.places.get(target)
        return self.fake.read(Setting(target, knob), at) if at else None
