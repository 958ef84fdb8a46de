"""Whether a workload has the minimum that was asked for it alone, and if not, why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from j10ce.agent.ring.ring import Report
from j10ce.model.kinds import Tier
from j10ce.model.knob import Setting, TargetId
from j10ce.model.plan import ValueChange
from j10ce.model.resource import RESOURCES, spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Workload
from j10ce.policy.effect.cpu_share import cpu_times
from j10ce.policy.effect.effective import effective
from j10ce.policy.effect.support import missing
from j10ce.policy.equipment import UNMEASURED
from j10ce.policy.validation.sections import OWN_CPUS

UPHELD_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "cpu": ("cpu.weight",),
    "memory": ("memory.min",),
    "network": ("net.egress.floor",),
    "diskRead": ("io.max.rbps",),
    "diskWrite": ("io.max.wbps",),
}
# What has to be there before a knob of a workload is worth anything.
BELOW: Final = {"network": ("link.egress.rate", "link.ingress.rate")}


def unmet(report: Report, workload: Workload, unwritable: str) -> list[str]:
    """Every reason; empty where it is upheld or none was asked for. `unwritable`: why nothing can be written here."""
    asked = [name for name, amount in workload.minimum.named() if amount]
    if not asked:
        return []
    return list(dict.fromkeys(_reasons(report, workload, asked, unwritable))) or [*_annulled(report, workload)]


def unlimited(report: Report, target: TargetId) -> Iterator[str]:
    """Limits of traffic that this machine cannot hold, and a floor of what comes in that it cannot."""
    entitled, snap = report.snap.entitlements[target], report.snap
    if entitled.chosen and entitled.ingress.floor and not snap.supports("net.ingress.floor"):
        yield f"only what is sent has its floor: {missing(snap, 'net.ingress.floor')}"
    for way, said in (("egress", entitled.egress), ("ingress", entitled.ingress)):
        if entitled.chosen and said.ceiling < math.inf and not report.snap.supports(f"net.{way}.ceil"):
            yield f"{way} is not limited to {spell('network', said.ceiling)}: {missing(report.snap, f'net.{way}.ceil')}"


def _annulled(report: Report, workload: Workload) -> Iterator[str]:
    """What a limit above it, its CPUs or its neighbours leave, once all that was decided is in force."""
    decided = {s: verdict.value for s, verdict in report.plan.verdicts.items()}
    after = replace(report.snap, settings={**report.snap.settings, **decided})
    judged = effective(after, only={workload.target}).get(workload.target)
    if judged is None:
        return
    minimum, page = workload.minimum, report.snap.node.page
    # CPUs of its own are proof enough where others of ours keep off: no weight gives whole ones beside strangers.
    pinned = after.entitlements[workload.target].cpu.pinning in OWN_CPUS
    whole = pinned and len(_alone_on(after, workload)) * 1000 >= minimum.cpu
    if judged.cpu_reason and judged.cpu < minimum.cpu and not whole:
        yield f"cpu {spell('cpu', int(judged.cpu))} of {spell('cpu', minimum.cpu)}: {judged.cpu_reason}"
    if judged.memory_reason and judged.memory < minimum.memory - page:
        has, wanted = (spell("memory", int(n)) for n in (judged.memory, minimum.memory))
        yield f"memory {has} of {wanted}: {judged.memory_reason}"
    for resource, rate in judged.rates.items():
        least = minimum[RESOURCES.index(resource)]
        if rate.reason and rate.amount < least:
            yield f"{resource} {spell(resource, rate.amount)} of {spell(resource, least)}: {rate.reason}"


def _alone_on(snap: Snapshot, workload: Workload) -> frozenset[int]:
    """The CPUs of its set that no other of ours can use; none where it has no set.

    Those that are reserved are lent to best effort that gives way at once.
    """
    own = snap.settings.get(Setting(workload.target, "cpuset.cpus"))
    if not isinstance(own, frozenset):
        return frozenset()
    times = cpu_times(snap)
    lends = snap.entitlements[workload.target].cpu.pinning == "reserved"
    others = (t for t, e in snap.entitlements.items() if e.chosen and not (lends and e.tier is Tier.BESTEFFORT))
    return own.difference(*(times[t].cpus for t in others if t != workload.target and t in times))


def _reasons(report: Report, workload: Workload, asked: list[str], unwritable: str) -> Iterator[str]:
    entitled = report.snap.entitlements[workload.target]
    own = f"Workload/{workload.namespace}/{workload.name}"
    yield from (note.text for note in entitled.notes if note.kind == "Unprotected" and note.source == own)
    if not report.armed:
        yield f"the agent is read-only (not armed), so nothing upholds it{f': {unwritable}' if unwritable else ''}"
    elif not entitled.chosen:
        yield "its labels say that it is ignored, so nothing upholds it"
    for resource in asked:
        yield from _unable(report.snap, resource)
    upheld = {knob for resource in asked for knob in UPHELD_BY.get(resource, ())}
    ground = {knob for resource in asked for knob in BELOW.get(resource, ())}
    for change, result in report.outcome.refused() if report.armed else ():
        if not isinstance(change, ValueChange):
            continue
        setting = change.setting
        if setting.knob in ground or (setting.target == workload.target and setting.knob in upheld):
            yield f"{setting.name}: {result.reason}" if setting.knob in upheld else f"{setting}: {result.reason}"


def _unable(snap: Snapshot, resource: str) -> Iterator[str]:
    """What this machine lacks to know the resource, or to divide it."""
    if not snap.node.capacity[RESOURCES.index(resource)]:
        yield f"{resource} cannot be promised here: {UNMEASURED[resource]}"
    elif resource not in UPHELD_BY:
        yield f"nothing upholds a minimum of {resource} here"
    else:
        yield from (missing(snap, knob) for knob in UPHELD_BY[resource] if not snap.supports(knob))
