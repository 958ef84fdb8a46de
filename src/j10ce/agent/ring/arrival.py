"""The part of the ring that an arrival needs: itself, the groups above it, and everyone else of a group as one.

A workload that has just come must not wait until 200 others have been decided again. In the snapshot made here the
others of each group stand in as one workload with the sum of their floors and weights, so that controllers see the same
contest. Only what concerns the arrival is kept of the plan; the next tick decides the whole tree.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.control.cpu.needs import base_of
from j10ce.model import knob
from j10ce.model.kinds import CpuSection, IoSection, NetworkSection
from j10ce.model.knob import KNOBS, ROOT, KnobRole, Setting, TargetId, Value
from j10ce.model.plan import Change, Enable, Plan, ValueChange
from j10ce.model.quantity import Bytes, Millicores
from j10ce.model.resource import Resources
from j10ce.model.snapshot import Foreign, Group, Groups, Snapshot
from j10ce.model.workload import Entitlement, Handle, Traffic, Workload
from j10ce.policy.effect.cpu_share import cpu_times
from j10ce.policy.effect.effective import CPU_SLACK

MOST: Final = 8  # more at once are decided with the whole tree
FEWEST_OTHERS: Final = 16  # with fewer the whole tree costs no more
OTHERS: Final = "(others)"  # no namespace can be called that
NO_WISHES: Final = (Traffic(), Traffic(), NetworkSection(), IoSection())
PINNED: Final = ("reserved", "exclusive")


def around(snap: Snapshot, arrivals: Sequence[Workload], fresh: Mapping[TargetId, Entitlement]) -> Snapshot | None:
    """`snap` reduced to the arrivals and what they compete with.

    None where that would lose something: a group is not there yet, whole CPUs are handed out one by one, a link or a
    disk is divided, which no group is, or real-time floors are counted together.
    """
    wanted = [fresh[w.target] for w in arrivals]
    if any(map(_divides, wanted)) or any(e.cpu.latency == "realtime" for e in wanted):
        return None
    if not all(e.chosen and not e.notes for e in wanted) or any(map(_pinned, fresh.values())):
        return None
    parents = {w.target: knob.group(w.handle.path.rpartition("/")[0]) for w in arrivals}
    groups = snap.groups
    if not all((group := groups.get(p)) is not None and group.exists for p in parents.values()):
        return None
    above = {up for p in parents.values() for up in (p, *groups.ancestors(p))}
    siblings = {t for up in above for t in groups.children.get(up, ()) if t.startswith("group/")}
    kept = {t: groups[t] for t in above | {t for t in siblings if groups[t].owned}}
    stands = {up: _stand_in(up, inside) for up, inside in _others(snap, kept).items()}
    kept = {t: replace(g, foreign=(*g.foreign, *_strangers(t, kept, snap))) for t, g in kept.items()}
    kept |= {e.target: _group(e.target, up, kept[up]) for up, e in stands.items()}
    kept |= {w.target: Group(w.target, parents[w.target], w.handle.path, owned=True, exists=False) for w in arrivals}
    entitlements = {e.target: e for e in stands.values()} | {w.target: fresh[w.target] for w in arrivals}
    workloads = {w.target: w for w in (*map(_workload, stands.values()), *arrivals)}
    return replace(snap, groups=Groups(kept), workloads=workloads, entitlements=entitlements)


def extended(
    snap: Snapshot, part: Snapshot, workloads: Mapping[TargetId, Workload], entitlements: Mapping[TargetId, Entitlement]
) -> Snapshot:
    """The whole tree with the arrivals in it, for whoever asks before the next tick."""
    arrived = {t: part.groups[t] for t in part.groups.by_target if t in workloads}
    groups = Groups({**snap.groups.by_target, **arrived})
    return replace(snap, groups=groups, workloads=workloads, entitlements=entitlements)


def concerning(plan: Plan, arrivals: Sequence[Entitlement]) -> Plan:
    """What a plan does for the arrivals. Groups above them are only raised: guarantees cover what is inside, weights as
    well where CPU time is promised to one of them."""
    targets, promised = {e.target for e in arrivals}, any(e.floor.cpu for e in arrivals)
    changes = tuple(c for c in plan.changes if _concerns(c, targets, promised=promised))
    raised = {c.setting for c in changes if isinstance(c, ValueChange)}
    verdicts = {s: v for s, v in plan.verdicts.items() if s.target in targets or s in raised}
    return Plan(changes, verdicts, plan.notes)


def holds(snap: Snapshot, plan: Plan, arrivals: Sequence[Entitlement], short: Collection[TargetId]) -> bool:
    """Whether everyone has the CPU time it was promised once the plan is in force.

    The weights of the others stay as they are, and it is not sure that they leave an arrival enough, nor it them. One
    that is promised nothing is felt by those in its own group alone: nothing above it gets heavier. `short`: whose
    floor did not hold before either.
    """
    everywhere, beside = any(e.floor.cpu for e in arrivals), {snap.groups.parent(e.target) for e in arrivals}
    promised = (e for t, e in snap.entitlements.items() if e.chosen and e.floor.cpu and t not in short)
    judged = [e for e in promised if everywhere or snap.groups.parent(e.target) in beside]
    if not judged:
        return True
    times = cpu_times(replace(snap, settings={**snap.settings, **{s: v.value for s, v in plan.verdicts.items()}}))
    return all(times[e.target].total >= e.floor.cpu - CPU_SLACK for e in judged if e.target in times)


def _concerns(change: Change, targets: set[TargetId], *, promised: bool) -> bool:
    if isinstance(change, Enable):
        return True
    target = change.setting.target if isinstance(change, ValueChange) else change.target
    if target in targets or not isinstance(change, ValueChange):
        return target in targets
    known = KNOBS[change.setting.knob]
    heavier = promised and known.name == "cpu.weight" and _number(change.new) > _number(change.old)
    return target.startswith("group/") and (known.role is KnobRole.GUARANTEE or heavier)


def _divides(e: Entitlement) -> bool:
    of_disks = any(e.floor[2:]) or min(e.ceiling.disk_read, e.ceiling.disk_write) < math.inf
    return of_disks or (e.egress, e.ingress, e.network, e.io) != NO_WISHES


def _pinned(e: Entitlement) -> bool:
    return e.cpu.pinning in PINNED and e.floor.cpu >= 1000


def _others(snap: Snapshot, kept: Mapping[TargetId, Group]) -> dict[TargetId, list[Entitlement]]:
    """Chosen workloads of the tree so far, by the group they are in."""
    others: dict[TargetId, list[Entitlement]] = {}
    for target, e in snap.entitlements.items():
        up = snap.groups.parent(target)
        if e.chosen and up in kept and up is not None:
            others.setdefault(up, []).append(e)
    return others


def _stand_in(up: TargetId, inside: Sequence[Entitlement]) -> Entitlement:
    weight, idle, suppressible = 0.0, True, True
    for e in inside:
        weight += base_of(e)
        idle = idle and e.cpu.idle and not e.floor.cpu
        suppressible = suppressible and e.cpu.suppressible
    return Entitlement(
        target=knob.workload(OTHERS, up.replace("/", "-")),
        chosen=True,
        tier=inside[0].tier,
        requests=_sum([e.requests for e in inside]),
        floor=_sum([e.floor for e in inside]),
        cpu=CpuSection(weight=max(2, int(weight)), idle=idle, suppressible=suppressible),
    )


def _strangers(up: TargetId, kept: Mapping[TargetId, Group], snap: Snapshot) -> Iterator[Foreign]:
    """Groups that are managed, but lie elsewhere: they compete with the weight they have."""
    for child in snap.groups.children.get(up, ()):
        if child not in kept and child.startswith("group/"):
            yield Foreign(child, _number(snap.settings.get(Setting(child, "cpu.weight"), 1024.0)))


def _group(target: TargetId, up: TargetId, parent: Group) -> Group:
    return Group(target, up, f"{parent.path}/{OTHERS}" if up != ROOT else OTHERS, owned=True)


def _workload(e: Entitlement) -> Workload:
    name = e.target.rpartition("/")[2]
    return Workload(OTHERS, name, requests=e.requests, handle=Handle(path=f"{OTHERS}/{name}"))


def _sum(amounts: Sequence[Resources]) -> Resources:
    return Resources(Millicores(sum([a.cpu for a in amounts])), Bytes(sum([a.memory for a in amounts])))


def _number(value: Value | None) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def in_the_end(events: Iterable[WorkloadEvent]) -> tuple[frozenset[TargetId], dict[TargetId, Workload]]:
    """(who is gone, who is here as what): of several events of one workload the last one counts."""
    last = {e.workload.target: (e.type, e.workload) for e in events if e.workload is not None}
    here = {target: workload for target, (kind, workload) in last.items() if kind != "DELETED"}
    return frozenset(last.keys() - here.keys()), here
