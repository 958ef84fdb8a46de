"""`cpu-suppress`: best-effort gets the CPU time that the others leave, and gives it back at once."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from typing import Final, Literal

from j10ce.control.besteffort import cover, has_capped_parts, idlers, resizing
from j10ce.control.controller import Controller
from j10ce.control.cpu.rivals import Rival, protected, rival, sheltered, unweighed
from j10ce.control.cpu.room import Law, Room, next_room
from j10ce.control.cpu.water import RoomClaim, fill, wants
from j10ce.model.knob import KNOBS, NODE, PERIOD_US, Setting, TargetId, Value, format_cpus
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot

FRESH_S: Final = 10.0  # an older reading says nothing about the present
UNWEIGHED_S: Final = 120.0  # a group that is light for longer than twice a kubelet's minute is meant to be light


class CpuSuppress:
    """Caps best-effort work by quota or by CPUs; where cpu.idle is enough it stands back. The law is that of `room`."""

    name = "cpu-suppress"

    class Config(Law, frozen=True, kw_only=True):
        mode: Literal["auto", "quota", "cpuset"] = "auto"

    def __init__(self, config: Config) -> None:
        self.config = config
        self._epoch = -1
        self._capped: dict[TargetId, tuple[TargetId, ...]] = {}
        self._idle: dict[TargetId, tuple[TargetId, ...]] = {}
        self._never_idle: dict[TargetId, tuple[TargetId, ...]] = {}
        self._protected: frozenset[TargetId] = frozenset()
        self._rivals: dict[TargetId, Rival] = {}  # of those who are idle, and capped all the same
        self._unweighed: dict[TargetId, float] = {}  # groups of the protected, since when
        self._room: Room | None = None
        self._caps: dict[TargetId, float] = {}  # CPUs, at the last tick
        self._wants: dict[TargetId, float] = {}

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        self._look(snap)
        yielding = self._weigh(snap)
        for target in yielding:
            why = "cpu.idle yields to everyone else at once" if sheltered(snap, target) else "idle, and in light groups"
            yield self._at_most(target, "cpu.max", math.inf, f"{why}, so no cap is needed")
        if not self._capped:
            self._room, self._caps, self._wants = None, {}, {}
            return
        others = _others(snap, (*self._capped.values(), *(self._idle[t] for t in yielding)))
        self._room = next_room(self.config, self._room, snap.now, others, snap.node.capacity.cpu / 1000)
        if self.config.mode == "cpuset":
            yield from self._by_cpus(snap, self._room)
        else:
            yield from self._by_quota(snap, self._room)

    def _look(self, snap: Snapshot) -> None:
        """Who is suppressed changes only with the epoch."""
        if snap.epoch == self._epoch:
            return
        wanted = {t for t, e in snap.entitlements.items() if e.chosen and e.cpu.suppressible}
        targets = cover(snap, {t for t in wanted if not resizing(snap, t) and not has_capped_parts(snap, t)})
        idle = idlers(snap) if self.config.mode == "auto" and snap.supports("cpu.idle") else {}
        yielding = {w for inside in idle.values() for w in inside}
        self._idle = {t: inside for t, inside in targets.items() if yielding.issuperset(inside)}
        self._never_idle = {t: inside for t, inside in targets.items() if t not in self._idle}
        self._protected = protected(snap)
        self._epoch = snap.epoch

    def _weigh(self, snap: Snapshot) -> list[TargetId]:
        """Those for whom being idle is enough; the others are capped. Weights of groups move without an epoch."""
        self._rivals = {t: r for t in self._idle if (r := rival(snap, t, self._protected)) is not None}
        light = {r.theirs for r in self._rivals.values() if unweighed(snap, r.theirs, self._protected)}
        self._unweighed = {group: self._unweighed.get(group, snap.now) for group in light}
        self._capped = self._never_idle | {t: self._idle[t] for t in self._rivals}
        return [t for t in self._idle if t not in self._rivals]

    def _by_cpus(self, snap: Snapshot, room: Room) -> Iterator[Proposal]:
        """The lowest CPUs: floors reserve from the highest down."""
        if snap.supports("cpuset.cpus"):
            cpus = frozenset(sorted(snap.node.cpus)[: max(1, math.ceil(room.cpus))])
            for target in self._capped:
                yield self._at_most(target, "cpuset.cpus", cpus, f"{room.reason}: CPUs {format_cpus(cpus)}")

    def _by_quota(self, snap: Snapshot, room: Room) -> Iterator[Proposal]:
        if not snap.supports("cpu.max"):
            return
        fair = room.cpus / sum(len(inside) for inside in self._capped.values())
        self._wants = {t: self._want(snap, t, fair) for t in self._capped}
        claims = [RoomClaim(len(inside), self._wants[t]) for t, inside in self._capped.items()]
        shares = dict(zip(self._capped, fill(room.cpus, claims), strict=True))
        self._caps = {}
        for target, inside in self._capped.items():
            waits = self._waits(snap, target)
            cpus = 0.0 if waits else shares[target]
            promised = math.fsum(snap.entitlements[t].floor.cpu for t in inside) / 1000
            quota = float(max(KNOBS["cpu.max"].low, round(max(cpus, promised) * PERIOD_US)))
            self._caps[target] = quota / PERIOD_US
            part = "" if waits or len(claims) == 1 else f", {cpus:.2f} of it here"
            given = "as little as can be until that group is weighed" if waits else f"{room.reason}{part}"
            idle = f"; idle among its siblings, but {self._rivals[target]}" if target in self._rivals else ""
            yield self._at_most(target, "cpu.max", quota, f"{given}{idle}")

    def _waits(self, snap: Snapshot, target: TargetId) -> bool:
        """Within any larger cap idle work runs at the weight of the protected, a few ms of each period."""
        since = self._unweighed.get(self._rivals[target].theirs) if target in self._rivals else None
        return since is not None and snap.now - since < UNWEIGHED_S

    def _want(self, snap: Snapshot, target: TargetId, fair: float) -> float:
        """Whoever has no reading yet has just come, and may want its whole share."""
        inside = self._capped[target]
        unread = sum(1 for t in inside if _reading(snap, t) is None)
        cap, held = self._caps.get(target, math.inf), self._wants.get(target, math.inf)
        known = wants(held, _used(snap, inside), cap, fair * (len(inside) - unread)) if unread < len(inside) else 0.0
        return known + fair * unread

    def _at_most(self, target: TargetId, knob: str, value: Value, reason: str) -> Proposal:
        return Proposal(Setting(target, knob), Bound.AT_MOST, value, self.name, Rank.POLICY, reason)


def _used(snap: Snapshot, workloads: Collection[TargetId]) -> float:
    """CPUs in use; one without a reading has just come or gone."""
    return math.fsum(_reading(snap, t) or 0.0 for t in workloads)


def _reading(snap: Snapshot, target: TargetId) -> float | None:
    return snap.readings.window(target, "cpu.usage", FRESH_S).last()


def _others(snap: Snapshot, suppressed: Iterable[Collection[TargetId]]) -> float | None:
    node = _reading(snap, NODE)
    return None if node is None else max(0.0, node - math.fsum(_used(snap, inside) for inside in suppressed))


_: Controller = CpuSuppress(CpuSuppress.Config())
