"""`cpu-suppress`: best-effort gets the CPU time that the others leave, and gives it back at once."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from j10ce.control.besteffort import cover, has_capped_parts, idlers, resizing
from j10ce.control.controller import Controller
from j10ce.control.cpu.cpusets.reserved import closed
from j10ce.control.cpu.rivals import Rival, protected, rival, sheltered, unweighed
from j10ce.control.cpu.suppression.confine import choose, count
from j10ce.control.cpu.suppression.room import Law, Room, next_room
from j10ce.control.cpu.suppression.terms import Mode, SuppressTerms, terms
from j10ce.control.cpu.suppression.water import RoomClaim, fill, wants
from j10ce.model.knob import KNOBS, NODE, PERIOD_US, Setting, TargetId, Value, format_cpus
from j10ce.model.machine.topology import Cpus
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot

FRESH_S: Final = 10.0  # an older reading says nothing about the present
UNWEIGHED_S: Final = 120.0  # a group that is light for longer than twice a kubelet's minute is meant to be light


class CpuSuppress:
    """Caps best-effort work by quota or by CPUs. Where cpu.idle is enough it stands back, unless the node's strategy
    says a threshold. The law is that of `room`, on the terms of `terms`."""

    name = "cpu-suppress"

    class Config(Law, frozen=True, kw_only=True):
        mode: Mode = "auto"

    def __init__(self, config: Config) -> None:
        self.config = config
        self._epoch = -1
        self._terms = SuppressTerms(config, "quota", stands_back=True)
        self._capped: dict[TargetId, tuple[TargetId, ...]] = {}
        self._idle: dict[TargetId, tuple[TargetId, ...]] = {}
        self._never_idle: dict[TargetId, tuple[TargetId, ...]] = {}
        self._protected: frozenset[TargetId] = frozenset()
        self._rivals: dict[TargetId, Rival] = {}  # of those who are idle, and capped all the same
        self._unweighed: dict[TargetId, float] = {}  # groups of the protected, since when
        self._usable: Cpus = frozenset()  # by best effort
        self._room: Room | None = None
        self._caps: dict[TargetId, float] = {}  # CPUs, at the last tick
        self._wants: dict[TargetId, float] = {}
        self._cpus: Cpus = frozenset()  # that it was confined to, at the last tick

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        self._look(snap)
        yielding = self._weigh(snap)
        for target in yielding:
            why = "cpu.idle yields to everyone else at once" if sheltered(snap, target) else "idle, and in light groups"
            yield self._at_most(target, "cpu.max", math.inf, f"{why}, so no cap is needed")
        if not self._capped:
            self._room, self._caps, self._wants, self._cpus = None, {}, {}, frozenset()
            return
        self._room = self._next_room(snap, yielding)
        if self._terms.by == "cpuset":
            yield from self._by_cpus(snap, self._room)
        else:
            yield from self._by_quota(snap, self._room)

    def _look(self, snap: Snapshot) -> None:
        """Who is suppressed, and how, changes only with the epoch."""
        if snap.epoch == self._epoch:
            return
        said = terms(self.config, self.config.mode, snap.strategy.suppress, placeable=snap.supports("cpuset.cpus"))
        if said != self._terms and self._room is not None:
            self._room = self._room._replace(uses=())  # other terms hold at once
        self._terms = said
        by_cpus = self._terms.by == "cpuset"
        wanted = {t for t, e in snap.entitlements.items() if e.chosen and e.cpu.suppressible}
        fit = {t for t in wanted if not resizing(snap, t) and (by_cpus or not has_capped_parts(snap, t))}
        targets = cover(snap, fit)
        idle = idlers(snap) if self._terms.stands_back and snap.supports("cpu.idle") else {}
        yielding = {w for inside in idle.values() for w in inside}
        self._idle = {t: inside for t, inside in targets.items() if yielding.issuperset(inside)}
        self._never_idle = {t: inside for t, inside in targets.items() if t not in self._idle}
        self._protected = protected(snap)
        self._usable = snap.node.cpus - closed(snap) or snap.node.cpus if by_cpus else frozenset()
        self._epoch = snap.epoch

    def _weigh(self, snap: Snapshot) -> list[TargetId]:
        """Those for whom being idle is enough; the others are capped. Weights of groups move without an epoch."""
        self._rivals = {t: r for t in self._idle if (r := rival(snap, t, self._protected)) is not None}
        light = {r.theirs for r in self._rivals.values() if unweighed(snap, r.theirs, self._protected)}
        self._unweighed = {group: self._unweighed.get(group, snap.now) for group in light}
        self._capped = self._never_idle | {t: self._idle[t] for t in self._rivals}
        return [t for t in self._idle if t not in self._rivals]

    def _next_room(self, snap: Snapshot, yielding: Iterable[TargetId]) -> Room:
        besteffort = [*self._capped.values(), *(self._idle[t] for t in yielding)]
        cpus = snap.node.capacity.cpu / 1000
        held = self._room or self._in_force(snap)
        return next_room(self._terms.law, held, snap.now, _others(snap, besteffort), cpus, _asked(snap, besteffort))

    def _in_force(self, snap: Snapshot) -> Room | None:
        """What an agent before this one gave, until there is a reading."""
        held = [snap.settings.get(s) for t in self._capped if (s := Setting(t, "cpu.max")) in snap.originals]
        quotas = [v for v in held if isinstance(v, float) and v != math.inf]
        if len(quotas) < len(self._capped):
            return None
        return Room(snap.now, math.fsum(quotas) / PERIOD_US, "")

    def _by_cpus(self, snap: Snapshot, room: Room) -> Iterator[Proposal]:
        """Where there is less room than one CPU, and a part of it may not be lent, a quota keeps within it."""
        if not snap.supports("cpuset.cpus"):
            return
        held = self._cpus or self._confined(snap)
        fit = count(room.cpus, len(held), whole=self._terms.whole)
        self._cpus = choose(fit, self._usable, held, snap.node.topology)
        for target in self._capped:
            yield self._at_most(target, "cpuset.cpus", self._cpus, f"{room.reason}: CPUs {format_cpus(self._cpus)}")
        if self._terms.whole and room.cpus < 1:
            yield from self._by_quota(snap, room)

    def _confined(self, snap: Snapshot) -> Cpus:
        """The CPUs that an agent before this one left it."""
        for target in self._capped:
            setting = Setting(target, "cpuset.cpus")
            there = snap.settings.get(setting)
            if setting in snap.originals and isinstance(there, frozenset):
                return there & self._usable
        return frozenset()

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


def _asked(snap: Snapshot, suppressed: Iterable[Collection[TargetId]]) -> float:
    """CPUs that all others ask for or are promised."""
    besteffort = {t for inside in suppressed for t in inside}
    others = (e for t, e in snap.entitlements.items() if t not in besteffort)
    return math.fsum(max(e.requests.cpu, e.floor.cpu) for e in others) / 1000


_: Controller = CpuSuppress(CpuSuppress.Config())
