"""Whole CPUs for whole-CPU floors: which ones, and who keeps off them.

`exclusive`: the workload runs on its CPUs and everyone else of ours keeps off. `reserved`: best-effort keeps off,
and the workload may still run anywhere. CPUs are handed out from the highest number down, so the lowest stays common;
whoever is below a group that is not ours gets those of that group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from j10ce.control.besteffort import cover
from j10ce.model.kinds import Tier
from j10ce.model.knob import Setting, TargetId, format_cpus
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement

Cpus = frozenset[int]


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
    free, got = set(snap.node.cpus), dict[TargetId, Cpus]()
    for e in claims:
        had = held.get(e.target) or snap.settings.get(Setting(e.target, "cpuset.cpus"))
        here = free & within(snap, e.target)
        if isinstance(had, frozenset) and len(had) == e.floor.cpu // 1000 and had < here:
            got[e.target] = had
            free -= had
    refused: dict[TargetId, str] = {}
    for e in claims:
        count = e.floor.cpu // 1000
        if e.target in got:
            continue
        may = within(snap, e.target)
        here = free & may
        if count >= len(here):  # one CPU stays common
            left = f"{max(0, len(here) - 1)} of {len(may)} left to reserve"
            refused[e.target] = f"{count} whole CPUs asked, {left}"
            continue
        got[e.target] = frozenset(sorted(here)[-count:])
        free -= got[e.target]
    pinned = {e.target for e in claims if e.cpu.pinning == "exclusive"}
    exclusive = {t: cpus for t, cpus in got.items() if t in pinned}
    return Reserved(exclusive, {t: cpus for t, cpus in got.items() if t not in pinned}, refused)


def within(snap: Snapshot, target: TargetId) -> Cpus:
    """The CPUs that the groups above leave it, as far as those groups are not ours."""
    found = snap.node.cpus
    for up in snap.groups.ancestors(target):
        value = snap.settings.get(Setting(up, "cpuset.cpus"))
        if isinstance(value, frozenset) and not snap.groups[up].owned:
            found = found & value or found
    return found


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
