"""An agent's ring over a kernel in memory, for tests that need no machine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.agent.ring.contained import Contained
from j10ce.agent.ring.ring import Agent, Report
from j10ce.agent.ring.what_if import Unmeasured
from j10ce.control.builtin import build
from j10ce.control.controller import Controller, Steady
from j10ce.daemon.clock import Instant
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.model import knob
from j10ce.model.knob import IDLE_SHARES, ROOT, Setting, Support, TargetId, Value
from j10ce.model.snapshot import Foreign, Group, Groups, NodeFacts, Snapshot
from j10ce.model.workload import Entitlement, Handle, Workload
from j10ce.policy.document.document import NodeDocument
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
        self._owned: dict[TargetId, str] = {}  # the last place of each

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
        remains: Mapping[TargetId, Handle] | None = None,
    ) -> Snapshot:
        self._owned.update({t: w.handle.path for t, w in workloads.items() if w.handle.made and w.handle.path})
        groups = Groups(self._seen(workloads, remains or {}))
        if groups != self._groups:
            self._groups, self._version = groups, self._version + 1
        epoch += self._version
        readings = Unmeasured()
        return Snapshot(
            now, wall, self.facts, self._groups, readings, workloads, entitlements, settings, support, epoch
        )

    def _seen(
        self, workloads: Mapping[TargetId, Workload], remains: Mapping[TargetId, Handle]
    ) -> dict[TargetId, Group]:
        there = self._kernel.cgroups.by_path
        live = {w.handle.path: t for t, w in workloads.items() if w.handle.path}
        parts = ((knob.part(w.namespace, w.name, p.name), p.handle.path) for w in workloads.values() for p in w.parts)
        live |= {path: target for target, path in parts if path not in live}
        ours = {p: knob.group(p) for p in there if p and self._kernel.owns(Handle(p))}
        gone = {path: target for target, path in self._owned.items() if path in there and target not in live.values()}
        paths = ours | gone | {h.path: t for t, h in remains.items()} | live
        names = {up: knob.group(up) for path in paths for up in _upwards(path)} | paths
        root = Group(ROOT, None, "", owned=False, foreign=self._foreign("", names), enabled=there[""].enabled)
        groups = {ROOT: root}
        for path, target in sorted(names.items()):
            parent = names.get(path.rpartition("/")[0], ROOT)
            here, owned = there.get(path), self._kernel.owns(Handle(path))
            foreign = self._foreign(path, names)
            enabled = here.enabled if here else frozenset()
            busy = owned and here is not None and bool(here.pids or here.memory_current)
            used = here.memory_current if here else 0.0
            groups[target] = Group(target, parent, path, owned, here is not None, foreign, used, enabled, busy)
        return groups

    def _foreign(self, path: str, names: Mapping[str, TargetId]) -> tuple[Foreign, ...]:
        """Neighbours that nobody manages, with their weight and what they claim of the memory."""
        below = (p for p in self._kernel.cgroups.children(path) if p not in names)
        return tuple(self._neighbour(p) for p in below)

    def _neighbour(self, path: str) -> Foreign:
        values, cgroups = self._kernel[path].values, self._kernel.cgroups
        weight = IDLE_SHARES if values.get("cpu.idle") == 1.0 else cgroups.value("cpu.weight", path)
        kept = (values.get(knob, 0.0) for knob in ("memory.min", "memory.low"))
        minimum, low = (float(v) if isinstance(v, float | int) else 0.0 for v in kept)
        return Foreign(path.rpartition("/")[2], float(weight), memory_min=minimum, memory_low=low)  # type: ignore[arg-type]


def _upwards(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


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
