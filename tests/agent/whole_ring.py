"""An agent's ring over a kernel in memory, for tests that need no machine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.agent.ring.contained import Contained
from j10ce.agent.ring.ring import Agent, Report
from j10ce.control.builtin import build
from j10ce.control.controller import Controller, Steady
from j10ce.daemon.clock import Instant
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import Setting, TargetId, Value
from j10ce.model.snapshot import NodeFacts
from j10ce.model.workload import Workload
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.profiles import builtin
from j10ce.sim.observer import SimObserver
from j10ce.testing import build as make
from j10ce.testing.fake_kernel import FakeKernel


class FakeObserver(SimObserver):
    """Measures nothing but what a test hands it, and counts how often it was asked to."""

    sampled = 0

    def sample(self, now: float, workloads: Collection[Workload], asked: Collection[TargetId] = ()) -> None:
        self.sampled += 1
        super().sample(now, workloads, asked)


class Ring:
    """The agent, its kernel, and a clock."""

    def __init__(
        self, folder: Path, version: str = "v2", extra: Sequence[Controller] = (), fake: FakeKernel | None = None
    ) -> None:
        self.fake = fake or FakeKernel(version)  # type: ignore[arg-type]
        self.folder = folder
        self.now, self.wall = 1000.0, make.WALL
        self.extra = tuple(extra)
        self.agent = self.start()

    def start(self) -> Agent:
        journal = Journal.open(self.folder / "journal", "boot")
        clock = lambda: self.now  # noqa: E731 the kernel's clock is this ring's
        kernel = Kernel(self.fake, [self.fake], journal, clock=clock, guard=Guard())
        facts = NodeFacts("node", cpus=frozenset(range(4)), memory=8 << 30)
        document = NodeDocument(node="node", profiles=builtin())
        controllers = build({})
        guards = [Contained(c) for c in (*controllers, *self.extra)]
        quick = [c for c in build({}) if isinstance(c, Steady) and c.steady]
        return Agent(kernel, FakeObserver(self.fake, facts), guards, document, quick=quick, armed=True)  # type: ignore[arg-type]

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
