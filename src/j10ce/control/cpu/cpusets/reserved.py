"""Whole CPUs for whole-CPU floors: which ones, and who keeps off them.

`exclusive`: the workload runs on its CPUs and everyone else of ours keeps off. `reserved`: likewise, but best effort
may use what it leaves idle, where best effort gives way: it is idle, or suppressed. CPUs that are near to each other go
together (`nearest`), and the lowest core stays common; whoever is below a group that is not ours gets those of that
group. First come CPUs to which nobody is confined by whoever owns it; what someone cannot leave, what a kubelet's
static policy gave away, and what the node's strategy keeps for tier system, is not handed out at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import UNSET

from j10ce.control.besteffort import cover, has_capped_parts
from j10ce.control.cpu.cpusets.nearest import Machine, pick
from j10ce.control.cpu.cpusets.owners import Cpus, Stay, above, confined, static, stay, within
from j10ce.control.cpu.rivals import sheltered
from j10ce.model.kinds import Tier
from j10ce.model.knob import Setting, TargetId, format_cpus, parse_cpus
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement


class Reserved(NamedTuple):
    """Which CPUs belong to which workload, and who asked in vain."""

    exclusive: Mapping[TargetId, Cpus]
    lent: Mapping[TargetId, Cpus]  # while idle, to best effort
    refused: Mapping[TargetId, str]
    static: Mapping[TargetId, Cpus] = {}  # of a kubelet: left alone

    @property
    def of(self) -> dict[TargetId, Cpus]:
        return {**self.exclusive, **self.lent}


def reserve(snap: Snapshot, held: Mapping[TargetId, Cpus]) -> Reserved:
    """Hand out CPUs. Whoever has some keeps them: from `held`, or after a restart from the kernel's own record."""
    wanted = sorted(filter(_claims, snap.entitlements.values()), key=_order)
    if not wanted:
        return Reserved({}, {}, {})
    hand = _Hand(snap)
    claims = [e for e in wanted if e.target not in hand.static]
    had = {e.target: _had(snap, e, held) for e in claims}
    for e in claims:
        hand.keep(e, had[e.target])
    in_vain = [e for e in claims if e.target not in hand.got and not hand.give(e, had[e.target])]
    refused = {e.target: hand.refusal(e) for e in in_vain}  # once all is given: the same on every tick
    pinned = {e.target for e in claims if e.cpu.pinning == "exclusive"}
    exclusive = {t: cpus for t, cpus in hand.got.items() if t in pinned}
    lent = {t: cpus for t, cpus in hand.got.items() if t not in pinned}
    return Reserved(exclusive, lent, refused, hand.static)


def closed(snap: Snapshot) -> Cpus:
    """The CPUs that best effort may never use: those that are exclusive to someone, or that a kubelet gave away."""
    reserved = reserve(snap, {})
    return kept_for_system(snap).union(*reserved.exclusive.values(), *reserved.static.values())


def system_cpus(snap: Snapshot) -> Cpus:
    """Those of tier system, as far as this machine has them."""
    said = snap.strategy.system_cpus.cpus
    return frozenset() if said is UNSET else parse_cpus(said) & snap.node.cpus


def kept_for_system(snap: Snapshot) -> Cpus:
    """Those that nobody else may use; none where that would be all."""
    cpus = system_cpus(snap) if snap.strategy.system_cpus.exclusive is not False else frozenset()
    return cpus if cpus < snap.node.cpus else frozenset()


def _had(snap: Snapshot, e: Entitlement, held: Mapping[TargetId, Cpus]) -> Cpus:
    """What was handed to it; in the kernel a set of another size is one that it shares with others."""
    if had := held.get(e.target):
        return had
    there = snap.settings.get(Setting(e.target, "cpuset.cpus"))
    return there if isinstance(there, frozenset) and len(there) * 1000 == e.floor.cpu else frozenset()


class _Offer(NamedTuple):
    """CPUs that one may have, and of each whether someone who is to keep off is confined there."""

    cpus: dict[int, bool]
    most: int  # how many of them: one CPU stays common


class _Hand:
    """The CPUs as they are handed out."""

    def __init__(self, snap: Snapshot) -> None:
        self.snap = snap
        self.got: dict[TargetId, Cpus] = {}
        self.static = {t: cpus for t, w in snap.workloads.items() if (cpus := static(snap, w))}
        self._machine = Machine(snap.node.cpus, snap.node.topology)
        self._stays = {t: stay(snap, w) for t, w in snap.workloads.items() if t in snap.entitlements}

    def keep(self, e: Entitlement, had: Cpus) -> None:
        """Let it have what it has, if that is still right."""
        if len(had) == e.floor.cpu // 1000:
            offer = self._offer(e, had)
            if len(had) <= offer.most and self._pick(e, frozenset(offer.cpus)) == had:
                self.got[e.target] = had

    def give(self, e: Entitlement, had: Cpus) -> bool:
        """CPUs to which nobody is confined, without the lowest core if that can be; else those and some others."""
        offer = self._offer(e, self.snap.node.cpus)
        if e.floor.cpu // 1000 > offer.most:
            return False
        lowest = self._machine.core(min(self.snap.node.cpus, default=0))
        easy = frozenset(cpu for cpu, confines in offer.cpus.items() if not confines)
        cpus = (
            self._pick(e, easy, had, lowest - had)
            or self._pick(e, easy, had)
            or self._pick(e, frozenset(offer.cpus), had | easy)
        )
        if cpus:
            self.got[e.target] = cpus
        return bool(cpus)

    def refusal(self, e: Entitlement) -> str:
        offer = self._offer(e, self.snap.node.cpus)
        left = f"{min(len(offer.cpus), offer.most)} of {len(within(self.snap, e.target))} left to reserve"
        cores = ", in whole cores" if e.cpu.bind == "full-cores" else ""
        return f"{e.floor.cpu // 1000} whole CPUs asked{cores}, {left}"

    def _pick(self, e: Entitlement, free: Cpus, had: Cpus = frozenset(), spared: Cpus = frozenset()) -> Cpus:
        return pick(e.floor.cpu // 1000, free, self._machine, e.cpu.bind, had, spared)

    def _offer(self, e: Entitlement, among: Cpus) -> _Offer:
        """Where all are taken that nobody is confined to, whoever is confined keeps as many as its promises need."""
        free = self.snap.node.cpus.difference(kept_for_system(self.snap), *self.got.values(), *self.static.values())
        here = free & above(self.snap, e.target)
        stuck = confined(self._keep_off(e), self.snap.node.cpus)
        anyone = frozenset[int]().union(*(s.cpus for s in stuck))
        chosen: dict[int, bool] = {}
        for cpu in sorted(here & within(self.snap, e.target) & among, key=lambda cpu: (cpu in anyone, -cpu)):
            left = free.difference(chosen, {cpu})
            if all(len(s.cpus & left) >= s.least for s in stuck if cpu in s.cpus):
                chosen[cpu] = cpu in anyone
        return _Offer(chosen, max(0, len(here) - 1))

    def _keep_off(self, e: Entitlement) -> list[Stay]:
        """Where those are who are to share no CPU with it; whoever has CPUs of its own is elsewhere already."""
        lends = e.cpu.pinning == "reserved"
        others = ((t, s) for t, s in self._stays.items() if t != e.target and t not in self.got)
        return [s for t, s in others if not (lends and _may_borrow(self.snap, t))]


def _may_borrow(snap: Snapshot, target: TargetId) -> bool:
    return snap.entitlements[target].tier is Tier.BESTEFFORT and _gives_way(snap, target, target)


def _claims(e: Entitlement) -> bool:
    whole = e.floor.cpu > 0 and e.floor.cpu % 1000 == 0
    return e.chosen and whole and e.cpu.pinning in ("reserved", "exclusive")


def _order(e: Entitlement) -> tuple[bool, int, str]:
    return e.cpu.pinning != "exclusive", -e.tier.rank, e.target


def placements(snap: Snapshot, reserved: Reserved, owner: str) -> Iterator[Proposal]:
    """Who runs where; nothing at all while nobody has CPUs of its own."""

    def place(target: TargetId, cpus: Cpus, reason: str) -> Proposal:
        return Proposal(Setting(target, "cpuset.cpus"), Bound.WANT, cpus, owner, Rank.POLICY, reason)

    kept, system = kept_for_system(snap), system_cpus(snap)
    taken = kept.union(*reserved.of.values())
    common = (snap.node.cpus - taken).difference(*reserved.static.values()) or snap.node.cpus - taken
    for target, cpus in reserved.exclusive.items():
        yield place(target, cpus, f"floor {len(cpus)} as whole CPUs, exclusive: {format_cpus(cpus)}")
    for target, cpus in reserved.lent.items():
        yield place(target, cpus, f"floor {len(cpus)} as whole CPUs, lent while idle: {format_cpus(cpus)}")
    for target, why in reserved.refused.items():
        yield place(target, common & within(snap, target) or common, f"{why}; the floor is kept by weight alone")
    others = {t for t, e in snap.entitlements.items() if e.chosen}.difference(reserved.of, reserved.static)
    apart = {t for t in others if system and snap.entitlements[t].tier is Tier.SYSTEM}
    for target in cover(snap, apart):
        yield place(target, system, f"CPUs {format_cpus(system)} are of tier system, by the node's strategy")
    if not taken:
        return
    others -= apart
    besteffort = {t for t in others if snap.entitlements[t].tier is Tier.BESTEFFORT}
    for target in cover(snap, others - besteffort):
        if target not in reserved.refused:
            yield place(target, common, f"without {format_cpus(taken)}: CPUs of others")
    for target, inside in cover(snap, besteffort).items():
        off, why = _kept_off(snap, reserved, target, inside)
        if off:
            yield place(target, snap.node.cpus - off, f"without {format_cpus(off)}: {why}")


def _kept_off(snap: Snapshot, reserved: Reserved, target: TargetId, inside: tuple[TargetId, ...]) -> tuple[Cpus, str]:
    """The CPUs that best effort may not even use while they are idle, and why."""
    exclusive = kept_for_system(snap).union(*reserved.exclusive.values())
    if not reserved.lent or all(_gives_way(snap, target, t) for t in inside):
        return exclusive, "exclusive to others"
    return exclusive.union(*reserved.lent.values()), "CPUs of others, and it is neither idle nor suppressed here"


def _gives_way(snap: Snapshot, target: TargetId, workload: TargetId) -> bool:
    cpu = snap.entitlements[workload].cpu
    idle = cpu.idle and snap.supports("cpu.idle") and sheltered(snap, target)
    return idle or (cpu.suppressible and snap.supports("cpu.max") and not has_capped_parts(snap, workload))


def followers(snap: Snapshot, owner: str) -> Iterator[Proposal]:
    """cgroup v1 takes a CPU that goes offline out of every set and never puts it back: ours follow their parents."""
    support = snap.support.get("cpuset.cpus")
    for target, group in snap.groups.by_target.items() if support and support.via == "cgroup1" else ():
        setting = Setting(target, "cpuset.cpus")
        if group.owned and setting in snap.settings:
            reason = "as its group: on cgroup v1 a CPU that comes back is added by hand"
            yield Proposal(setting, Bound.WANT, frozenset[int](), owner, Rank.ADVICE, reason)
