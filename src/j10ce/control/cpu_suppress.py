"""`cpu-suppress`: best-effort gets the CPU time that the others leave, and gives it back at once."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Final, Literal

from j10ce.control.besteffort import cover, idlers
from j10ce.control.controller import Controller
from j10ce.control.cpu_room import Law, Room, next_room
from j10ce.control.law import dead_band
from j10ce.model.knob import KNOBS, NODE, PERIOD_US, Setting, TargetId, Value, format_cpus
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot

FRESH_S: Final = 10.0  # an older reading says nothing about the present


class CpuSuppress:
    """Caps best-effort work by quota or by CPUs; where cpu.idle works it stands back. The law is `cpu_room`'s."""

    name = "cpu-suppress"

    class Config(Law, frozen=True, kw_only=True):
        mode: Literal["auto", "quota", "cpuset"] = "auto"

    def __init__(self, config: Config) -> None:
        self.config = config
        self._epoch = -1
        self._capped: dict[TargetId, tuple[TargetId, ...]] = {}
        self._idle: dict[TargetId, tuple[TargetId, ...]] = {}
        self._room: Room | None = None
        self._caps: dict[TargetId, float] = {}

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        self._look(snap)
        for target in self._idle:
            why = "cpu.idle yields to everyone else at once, so no cap is needed"
            yield self._at_most(target, "cpu.max", math.inf, why)
        if not self._capped:
            self._room, self._caps = None, {}
            return
        used = {t: _used(snap, inside) for t, inside in self._capped.items()}
        others = _others(snap, math.fsum(used.values()) + math.fsum(_used(snap, i) for i in self._idle.values()))
        self._room = next_room(self.config, self._room, snap.now, others, float(len(snap.node.cpus)))
        if self.config.mode == "cpuset":
            yield from self._by_cpus(snap, self._room)
        else:
            yield from self._by_quota(snap, used, self._room)

    def _look(self, snap: Snapshot) -> None:
        """Who is suppressed changes only with the epoch."""
        if snap.epoch == self._epoch:
            return
        wanted = {t for t, e in snap.entitlements.items() if e.chosen and e.cpu.suppressible}
        targets = cover(snap, wanted)
        idle = idlers(snap) if self.config.mode == "auto" and snap.supports("cpu.idle") else {}
        yielding = {w for inside in idle.values() for w in inside}
        self._idle = {t: inside for t, inside in targets.items() if yielding.issuperset(inside)}
        self._capped = {t: inside for t, inside in targets.items() if t not in self._idle}
        self._epoch = snap.epoch

    def _by_cpus(self, snap: Snapshot, room: Room) -> Iterator[Proposal]:
        """The lowest CPUs: floors reserve from the highest down."""
        if snap.supports("cpuset.cpus"):
            cpus = frozenset(sorted(snap.node.cpus)[: max(1, math.ceil(room.cpus))])
            for target in self._capped:
                yield self._at_most(target, "cpuset.cpus", cpus, f"{room.reason}: CPUs {format_cpus(cpus)}")

    def _by_quota(self, snap: Snapshot, used: Mapping[TargetId, float], room: Room) -> Iterator[Proposal]:
        if not snap.supports("cpu.max"):
            return
        width = self.config.dead_band * len(snap.node.cpus) if len(used) > 1 else 0.0
        portions = dict(zip(used, divide_room(room.cpus, tuple(used.values())), strict=True))
        self._caps = {t: dead_band(self._caps.get(t, math.inf), cpus, width) for t, cpus in portions.items()}
        for target, cpus in self._caps.items():
            promised = math.fsum(snap.entitlements[t].floor.cpu for t in self._capped[target]) / 1000
            quota = float(max(KNOBS["cpu.max"].low, round(max(cpus, promised) * PERIOD_US)))
            part = "" if len(used) == 1 else f", {cpus:.2f} of it here"
            yield self._at_most(target, "cpu.max", quota, f"{room.reason}{part}")

    def _at_most(self, target: TargetId, knob: str, value: Value, reason: str) -> Proposal:
        return Proposal(Setting(target, knob), Bound.AT_MOST, value, self.name, Rank.POLICY, reason)


def divide_room(room: float, used: Collection[float]) -> list[float]:
    """Each gets what it uses and an equal part of the rest; where that is too much, in proportion to its use."""
    total = math.fsum(used)
    if total > room:
        return [room * u / total for u in used]
    return [u + (room - total) / len(used) for u in used]


def _used(snap: Snapshot, workloads: Collection[TargetId]) -> float:
    """CPUs in use; one without a reading has just come or gone."""
    return math.fsum(snap.readings.window(t, "cpu.usage", FRESH_S).last() or 0.0 for t in workloads)


def _others(snap: Snapshot, suppressed: float) -> float | None:
    node = snap.readings.window(NODE, "cpu.usage", FRESH_S).last()
    return None if node is None else max(0.0, node - suppressed)


_: Controller = CpuSuppress(CpuSuppress.Config())
