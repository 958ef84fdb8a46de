"""An agent's ring over a kernel in memory, for tests that need no machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.agent.clock import Instant
from j10ce.agent.guard import Guard
from j10ce.agent.loop import Agent, Report
from j10ce.agent.whatif import Unmeasured
from j10ce.control.builtin import build
from j10ce.control.controller import Controller, Steady
from j10ce.kernel.guard import Guard as WriteGuard
from j10ce.kernel.journal import Journal
from j10ce.kernel.kernel import Kernel
from j10ce.model import knob
from j10ce.model.knob import ROOT, Setting, Support, TargetId, Value
from j10ce.model.snapshot import Group, Groups, NodeFacts, Snapshot
from j10ce.model.workload import Entitlement, Workload
from j10ce.policy.document import NodeDocument
from j10ce.policy.profiles import builtin
from j10ce.testing import build as make
from j10ce.testing.fake_kernel import FakeKernel


class FakeObserver:
    """Sees the fake kernel's cgroups; measures nothing."""

    def __init__(self, kernel: FakeKernel, facts: NodeFacts) -> None:
        self.facts = facts
        self.failing: dict[str, str] = {}
        self.sampled = 0
        self._kernel = kernel
        self._version = 0
        self._groups = Groups()
        self._owned: dict[str, TargetId] = {}

    def sample(self, now: float, workloads: Collection[Workload]) -> None:
        self.sampled += 1

    def snapshot(
        self,
        now: float,
        wall: float,
        workloads: Mapping[TargetId, Workload],
        entitlements: Mapping[TargetId, Entitlement],
        settings: Mapping[Setting, Value],
        support: Mapping[str, Support],
        epoch: int = 0,
    ) -> Snapshot:
        self._owned.update({w.handle.path: t for t, w in workloads.items() if w.handle.made and w.handle.path})
        groups = Groups(self._seen(workloads))
        if groups != self._groups:
            self._groups, self._version = groups, self._version + 1
        epoch += self._version
        readings = Unmeasured()
        return Snapshot(
            now, wall, self.facts, self._groups, readings, workloads, entitlements, settings, support, epoch
        )

    def _seen(self, workloads: Mapping[TargetId, Workload]) -> dict[TargetId, Group]:
        there = self._kernel.cgroups.by_path
        paths = {w.handle.path: t for t, w in workloads.items() if w.handle.path}
        paths |= {path: target for path, target in self._owned.items() if path in there}
        found = {ROOT: Group(ROOT, None, "", owned=False, enabled=there[""].enabled)}
        for path, target in sorted(paths.items()):
            steps = path.split("/")
            parent = ROOT
            for depth in range(1, len(steps) + 1):
                here = "/".join(steps[:depth])
                name = target if depth == len(steps) else knob.group(here)
                enabled = there[here].enabled if here in there else frozenset()
                owned = steps[0] == self._kernel.top
                found[name] = Group(name, parent, here, owned, here in there, enabled=enabled)
                parent = name
        return found


class Ring:
    """The agent, its kernel, and a clock."""

    def __init__(self, folder: Path, version: str = "v2", extra: Sequence[Controller] = ()) -> None:
        self.fake = FakeKernel(version)  # type: ignore[arg-type]
        self.folder = folder
        self.now, self.wall = 1000.0, make.WALL
        self.extra = tuple(extra)
        self.agent = self.start()

    def start(self) -> Agent:
        journal = Journal.open(self.folder / "journal", "boot")
        clock = lambda: self.now  # noqa: E731 the kernel's clock is this ring's
        kernel = Kernel(self.fake, [self.fake], journal, clock=clock, guard=WriteGuard())
        facts = NodeFacts("node", cpus=frozenset(range(4)), memory=8 << 30)
        document = NodeDocument(node="node", profiles=builtin())
        controllers = build({})
        guards = [Guard(c) for c in (*controllers, *self.extra)]
        agent = Agent(kernel, FakeObserver(self.fake, facts), guards, document)  # type: ignore[arg-type]
        agent.quick = [c for c in build({}) if isinstance(c, Steady) and c.steady]
        agent.armed = True
        return agent

    def instant(self, seconds: float = 1.0) -> Instant:
        self.now += seconds
        self.wall += seconds
        return Instant(self.now, self.wall)

    def tick(self, seconds: float = 1.0) -> Report:
        return self.agent.tick(self.instant(seconds))

    def arrive(self, *workloads: Workload) -> Report:
        return self.agent.change([WorkloadEvent("ADDED", w) for w in workloads], self.instant(0.01))

    def leave(self, *workloads: Workload) -> Report:
        return self.agent.change([WorkloadEvent("DELETED", w) for w in workloads], self.instant(0.01))

    def value(self, target: TargetId, name: str) -> Value | None:
        return self.fake.settings().get(Setting(target, name))
