"""What an agent sees of a simulated machine: its cgroups, and whatever was measured there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from j10ce.model import knob
from j10ce.model.knob import IDLE_SHARES, ROOT, Setting, Support, TargetId, Value
from j10ce.model.snapshot import Foreign, Group, Groups, NodeFacts, Snapshot
from j10ce.model.workload import Entitlement, Handle, Workload
from j10ce.observe.sensor import Sample
from j10ce.observe.series import SeriesBook
from j10ce.policy.equipment import equipped
from j10ce.policy.strategy import EffectiveStrategy
from j10ce.sim.kernel import FakeKernel


class SimObserver:
    """Stands for the observer of a real machine. What `measure` is given since the last tick is what it samples."""

    def __init__(self, kernel: FakeKernel, facts: NodeFacts) -> None:
        self.facts = self._machine = facts
        self.failing: dict[str, str] = {}
        self._said = EffectiveStrategy()
        self._kernel = kernel
        self._book = SeriesBook()
        self._measured: tuple[Sample, ...] = ()
        self._version = 0
        self._groups = Groups()
        self._owned: dict[TargetId, str] = {}  # the last place of each

    def heed(self, said: EffectiveStrategy) -> EffectiveStrategy:
        """Links and disks of the machine are what strategies make of them, as far as nobody has put others there."""
        if said != self._said:
            self._said, self.facts = said, equipped(self._machine, said.strategy)
        return said

    def measure(self, samples: Iterable[Sample]) -> None:
        self._measured = tuple(samples)

    def sample(self, now: float, workloads: Collection[Workload], asked: Collection[TargetId] = ()) -> None:
        for target, metric, value in self._measured:
            self._book.add(now, target, metric, value)
        self._measured = ()

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
        readings = self._book.at(now)
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
