"""One machine in memory under the agent's real ring: what an agent would do there, second by second.

world = World(folder, cpus=8)
world.add(workload, Load(cpu=lambda t: 2.0))
for _ in range(600):
    world.step()
world.of(workload).starved     # CPU seconds that it wanted and did not get
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.agent.ring.contained import Contained
from j10ce.agent.ring.ring import Agent, Report
from j10ce.control.builtin import build
from j10ce.control.controller import Controller, Steady
from j10ce.daemon.clock import Instant
from j10ce.kernel.actions import asked
from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.model.kinds import NodeStrategy
from j10ce.model.knob import CGROUP_KNOBS, NODE, PERIOD_US, ROOT, TargetId, group
from j10ce.model.plan import ValueChange
from j10ce.model.quantity import Bytes
from j10ce.model.snapshot import NodeFacts
from j10ce.model.workload import Workload
from j10ce.observe.sensor import Sample
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.profiles import builtin
from j10ce.sim.cgroups import Version, number
from j10ce.sim.kernel import AtOnce, FakeKernel
from j10ce.sim.observer import SimObserver
from j10ce.sim.pages import Appetite, Meal
from j10ce.sim.sharing import by_threads, by_weight, divide

CONTROLLERS: Final = frozenset(k.controller for k in CGROUP_KNOBS.values())
GRACE_S: Final = 10.0  # how long a workload that is asked to end goes on
Over = Callable[[float], float]  # of seconds since the beginning


def nothing(_: float) -> float:
    return 0.0


class Load(NamedTuple):
    """What a workload wants: CPUs, bytes, and the share of them that it uses all the time."""

    cpu: Over = nothing
    memory: Over = nothing
    hot: float = 1.0


@dataclass
class Account:
    """What became of one workload since it came; CPU seconds and bytes."""

    wanted: float = 0.0
    got: float = 0.0
    refaults: float = 0.0
    stalled_s: float = 0.0  # waiting for memory

    @property
    def starved(self) -> float:
        return self.wanted - self.got


class World:
    def __init__(
        self,
        folder: Path,
        *,
        cpus: int = 8,
        memory: int = 32 << 30,
        version: Version = "v2",
        lacking: tuple[str, ...] = (),
        controllers: Sequence[Controller] | None = None,
        strategies: tuple[NodeStrategy, ...] = (),
        shares: Literal["weight", "threads"] = "weight",
    ) -> None:
        """`controllers`: who decides instead of those that are built in. `shares`: by what siblings share CPUs."""
        self.kernel = FakeKernel(version, cpus=cpus, lacking=lacking, memory=float(memory))
        self.kernel.enable(ROOT, CONTROLLERS)
        self.pages = self.kernel.pages
        self.seconds = 0
        self.changes = 0  # values written
        self.ended: dict[TargetId, Literal["evicted", "killed"]] = {}
        self._cpus = float(cpus)
        self._weigh = by_threads if shares == "threads" else by_weight(self.kernel.cgroups)
        self._loads: dict[TargetId, Load] = {}
        self._strangers: dict[str, Load] = {}
        self._accounts: dict[TargetId, Account] = {}
        self._leaving: dict[TargetId, float] = {}
        facts = NodeFacts("sim", cpus=frozenset(range(cpus)), memory=Bytes(memory))
        self._observer = SimObserver(self.kernel, facts)
        self.agent = self._start(folder, controllers, strategies)

    def _start(
        self, folder: Path, controllers: Sequence[Controller] | None, strategies: tuple[NodeStrategy, ...]
    ) -> Agent:
        journal = Journal.open(folder / "journal", "simulated boot")
        kernel = Kernel(self.kernel, [self.kernel], journal, clock=self._now, guard=Guard(), slow=AtOnce())
        document = NodeDocument(node="sim", profiles=builtin(), strategies=strategies)
        deciders = build({}) if controllers is None else controllers
        quick = [c for c in build({}) if isinstance(c, Steady) and c.steady] if controllers is None else []
        guards = [Contained(c) for c in deciders]
        return Agent(kernel, self._observer, guards, document, quick=quick, armed=True)  # type: ignore[arg-type]

    # ------------------------------------------------------------------ what happens

    def add(self, workload: Workload, load: Load) -> Report:
        self._loads[workload.target] = load
        self._accounts.setdefault(workload.target, Account())
        return self._counted(self.agent.change([WorkloadEvent("ADDED", workload)], self._instant()))

    def add_stranger(self, path: str, load: Load, weight: float = 1024.0) -> None:
        """Something beside all workloads that nobody manages."""
        self.kernel.adopt(group(path), path, {"cpu.weight": weight})
        self.kernel.places.pop(group(path))
        self._strangers[path] = load

    def remove(self, target: TargetId) -> Report:
        """Its processes have ended."""
        workload = self.agent.workloads[target]
        self._loads.pop(target)
        if (here := self.kernel.cgroups.by_path.get(workload.handle.path)) is not None:
            here.pids.clear()
            here.memory_current = 0.0
        return self._counted(self.agent.change([WorkloadEvent("DELETED", workload)], self._instant()))

    def step(self) -> Report:
        """One second: everyone runs as far as the kernel lets it, then the agent looks and decides."""
        self.seconds += 1
        self._observer.measure([*self._run()])
        report = self._counted(self.agent.tick(self._instant()))
        for action in asked(report.outcome.deeds):
            self._leaving.setdefault(action.target, self.seconds + GRACE_S)
        for target in [t for t, at in self._leaving.items() if at <= self.seconds]:
            del self._leaving[target]
            self._end(target, "evicted")
        return report

    def of(self, target: TargetId) -> Account:
        return self._accounts[target]

    def _end(self, target: TargetId, how: Literal["evicted", "killed"]) -> None:
        if target in self._loads:
            self.ended[target] = how
            self.remove(target)

    # ------------------------------------------------------------------ one second

    def _run(self) -> Iterator[Sample]:
        at = {t: self.agent.workloads[t].handle.path for t in self._loads if t in self.agent.workloads}
        here = {t: path for t, path in at.items() if path in self.kernel.cgroups.by_path}
        loads = {here[t]: self._loads[t] for t in here} | self._strangers
        wants = {path: 0.0 if self._frozen(path) else load.cpu(self.seconds) for path, load in loads.items()}
        used = divide(self.kernel.cgroups, wants, self._cpus, self._weigh)
        meals = self._feed({path: load for path, load in loads.items() if not self._frozen(path)})
        for target, path in here.items():
            self._book(target, wants[path], used[path], meals.get(path, Meal(0.0, 0.0)))
            yield from self._seen(target, path, wants[path], used[path], meals.get(path, Meal(0.0, 0.0)))
        yield Sample(NODE, "cpu.usage", sum(used.values()))
        yield Sample(NODE, "memory.current", self.pages.used)
        yield Sample(NODE, "memory.working_set", self.pages.used)
        wanted = sum(wants.values())
        yield Sample(NODE, "cpu.pressure", 1.0 - sum(used.values()) / wanted if wanted else 0.0)
        yield Sample(NODE, "memory.pressure", max((m.stalled for m in meals.values()), default=0.0))
        for target in [t for t, path in here.items() if path in self.pages.killed]:
            self._end(target, "killed")

    def _feed(self, loads: dict[str, Load]) -> dict[str, Meal]:
        sizes = {path: load.memory(self.seconds) for path, load in loads.items()}
        return self.pages.step({path: Appetite(size, size * loads[path].hot) for path, size in sizes.items()})

    def _book(self, target: TargetId, wanted: float, got: float, meal: Meal) -> None:
        account = self._accounts[target]
        account.wanted += wanted
        account.got += got
        account.refaults += meal.refaults
        account.stalled_s += meal.stalled

    def _seen(self, target: TargetId, path: str, wanted: float, got: float, meal: Meal) -> Iterator[Sample]:
        """What sensors of a real machine would say of it."""
        held = self.kernel[path].memory_current
        quota = number(self.kernel[path].values, "cpu.max") / PERIOD_US
        yield Sample(target, "cpu.usage", got)
        yield Sample(target, "cpu.throttled", min(1.0, (wanted - quota) / wanted) if wanted > quota else 0.0)
        yield Sample(target, "cpu.pressure", 1.0 - got / wanted if wanted else 0.0)
        yield Sample(target, "memory.current", held)
        yield Sample(target, "memory.working_set", held)
        yield Sample(target, "memory.pressure", meal.stalled)
        yield Sample(target, "memory.refaults", meal.refaults)

    def _frozen(self, path: str) -> bool:
        return self.kernel[path].values.get("cgroup.freeze") == 1.0

    def _counted(self, report: Report) -> Report:
        self.changes += sum(isinstance(c, ValueChange) for c, _ in report.outcome.results)
        return report

    def _now(self) -> float:
        return float(self.seconds)

    def _instant(self) -> Instant:
        return Instant(self._now(), 1_800_000_000.0 + self.seconds)
