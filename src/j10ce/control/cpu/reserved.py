"""Whole CPUs for whole-CPU floors: which ones, and who keeps off them.

`exclusive`: the workload runs on its CPUs and everyone else of ours keeps off. `reserved`: best-effort keeps off,
and the workload may still run anywhere. CPUs are handed out from the highest number down, so the lowest stays common;
whoever is below a group that is not ours gets those of that group. First come CPUs to which nobody is confined by
whoever owns it; what someone cannot leave is not handed out at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from j10ce.control.besteffort import cover
from j10ce.control.cpu.owners import Cpus, Stay, above, confined, stay, within
from j10ce.model.kinds import Tier
from j10ce.model.knob import Setting, TargetId, format_cpus
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement


class Reserved(NamedTuple):
    """Which CPUs belong to which workload, and who asked in vain."""

    exclusive: Mapping[TargetId, Cpus]
    shared: Mapping[TargetId, Cpus]  # reserved from best-effort only
    refused: Mapping[TargetId, str]

    @property
    def of(self) -> dict[TargetId, Cpus]:
        return {**self.exclusive, **self.shared}


def reserve(snap: Snapshot, held: Mapping[TargetId, Cpus]) -> Reserved:
    """Hand out CPUs. Whoever has some keeps them: from `held`, or after a restart from the kernel's own record."""
    claims = sorted(filter(_claims, snap.entitlements.values()), key=_order)
    if not claims:
        return Reserved({}, {}, {})
    hand = _Hand(snap)
    for e in claims:
        had = held.get(e.target) or snap.settings.get(Setting(e.target, "cpuset.cpus"))
        if isinstance(had, frozenset) and len(had) == e.floor.cpu // 1000 and had == frozenset(hand.best(e, had)):
            hand.got[e.target] = had
    refused: dict[TargetId, str] = {}
    for e in claims:
        count = e.floor.cpu // 1000
        if e.target in hand.got:
            continue
        best = hand.best(e, snap.node.cpus)
        if count > len(best):
            left = f"{len(best)} of {len(within(snap, e.target))} left to reserve"
            refused[e.target] = f"{count} whole CPUs asked, {left}"
            continue
        hand.got[e.target] = frozenset(best[:count])
    pinned = {e.target for e in claims if e.cpu.pinning == "exclusive"}
    exclusive = {t: cpus for t, cpus in hand.got.items() if t in pinned}
    return Reserved(exclusive, {t: cpus for t, cpus in hand.got.items() if t not in pinned}, refused)


class _Hand:
    """The CPUs as they are handed out."""

    def __init__(self, snap: Snapshot) -> None:
        self.snap = snap
        self.got: dict[TargetId, Cpus] = {}
        self._stays = {t: stay(snap, w) for t, w in snap.workloads.items() if t in snap.entitlements}

    def best(self, e: Entitlement, among: Cpus) -> list[int]:
        """Those that it may have, the best first: nobody who is to keep off is confined there, then the highest.

        Where all are taken that nobody is confined to, whoever is confined keeps as many as its promises need.
        """
        free = self.snap.node.cpus.difference(*self.got.values())
        here = free & above(self.snap, e.target)
        stuck = confined(self._keep_off(e), self.snap.node.cpus)
        anyone = frozenset[int]().union(*(s.cpus for s in stuck))
        chosen: list[int] = []
        for cpu in sorted(here & within(self.snap, e.target) & among, key=lambda cpu: (cpu in anyone, -cpu)):
            left = free.difference(chosen, {cpu})
            if all(len(s.cpus & left) >= s.least for s in stuck if cpu in s.cpus):
                chosen.append(cpu)
        return chosen[: max(0, len(here) - 1)]  # one CPU stays common

    def _keep_off(self, e: Entitlement) -> list[Stay]:
        """Where those are who are to share no CPU with it; whoever has CPUs of its own is elsewhere already."""
        every, entitled = self._stays.items(), self.snap.entitlements
        all_of_them = e.cpu.pinning == "exclusive"
        others = ((t, s) for t, s in every if all_of_them or entitled[t].tier is Tier.BESTEFFORT)
        return [s for t, s in others if t != e.target and t not in self.got]


def _claims(e: Entitlement) -> bool:
    whole = e.floor.cpu > 0 and e.floor.cpu % 1000 == 0
    return e.chosen and whole and e.cpu.pinning in ("reserved", "exclusive")


def _order(e: Entitlement) -> tuple[bool, int, str]:
    return e.cpu.pinning != "exclusive", -e.tier.rank, e.target


def placements(snap: Snapshot, reserved: Reserved, owner: str) -> Iterator[Proposal]:
    """Who runs where; nothing at all while nobody has CPUs of its own."""

    def place(target: TargetId, cpus: Cpus, reason: str) -> Proposal:
        return Proposal(Setting(target, "cpuset.cpus"), Bound.WANT, cpus, owner, Rank.POLICY, reason)

    taken = frozenset[int]().union(*reserved.exclusive.values())
    kept = taken.union(*reserved.shared.values())
    common = snap.node.cpus - taken
    for target, cpus in reserved.exclusive.items():
        yield place(target, cpus, f"floor {len(cpus)} as whole CPUs, exclusive: {format_cpus(cpus)}")
    for target, why in reserved.refused.items():
        yield place(target, common & within(snap, target) or common, f"{why}; the floor is kept by weight alone")
    others = {t for t, e in snap.entitlements.items() if e.chosen}.difference(reserved.exclusive)
    besteffort = {t for t in others.difference(reserved.shared) if snap.entitlements[t].tier is Tier.BESTEFFORT}
    if taken:
        for target in cover(snap, others - besteffort):
            if target not in reserved.refused:
                yield place(target, common, f"without {format_cpus(taken)}: exclusive to others")
    if kept:
        for target in cover(snap, besteffort):
            yield place(target, snap.node.cpus - kept, f"without {format_cpus(kept)}: reserved from best-effort")


def followers(snap: Snapshot, owner: str) -> Iterator[Proposal]:
    """cgroup v1 takes a CPU that goes offline out of every set and never puts it back: ours follow their parents."""
    support = snap.support.get("cpuset.cpus")
    for target, group in snap.groups.by_target.items() if support and support.via == "cgroup1" else ():
        setting = Setting(target, "cpuset.cpus")
        if group.owned and setting in snap.settings:
            reason = "as its group: on cgroup v1 a CPU that comes back is added by hand"
            yield Proposal(setting, Bound.WANT, frozenset[int](), owner, Rank.ADVICE, reason)
