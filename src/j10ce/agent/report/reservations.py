"""What a node reports of its ledger, for the fleet's: who pays for whom, who waits, what is lent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from j10ce.agent.ring.objects import quantities
from j10ce.agent.ring.ring import Report
from j10ce.model.bounds import MOST_ITEMS
from j10ce.model.kinds import MinimalReservationPolicy, ReservationReport, Tier
from j10ce.model.knob import TargetId
from j10ce.model.quantity import Bytes, Millicores, Quantity
from j10ce.model.resource import NOTHING, Resources
from j10ce.model.workload import Workload
from j10ce.policy.document.document import NodeDocument, reference
from j10ce.policy.entitlement.ledger import Line
from j10ce.policy.select import compiled

RECENT_S: Final = 10.0


def reservations(report: Report, document: NodeDocument) -> tuple[ReservationReport, ...]:
    """One per policy that there is something to say about: a fleet may have hundreds that no node has to do with.

    The hash of the document says that the others are obeyed, and in which revision.
    """
    charged: dict[str, list[Line]] = {}
    for line in report.resolution.ledger:
        charged.setdefault(line.charged, []).append(line)
    refused = _refused(report)
    nobody = NotGranted()
    every = (
        _reservation(p, report, charged.get(reference(p), []), refused.get(reference(p), nobody))
        for p in document.policies
    )
    return tuple(r for r in every if r.workloads or r.units or r.charged or r.refused)


def claimed(report: Report) -> dict[str, dict[str, Quantity]]:
    """By namespace, what is promised to its workloads; units that nobody uses are not in it."""
    sums: dict[str, Resources] = {}
    for line in report.resolution.ledger:
        kind, _, rest = line.holder.partition("/")
        if kind == "workload":
            namespace = rest.partition("/")[0]
            sums[namespace] = sums.get(namespace, NOTHING).plus(line.amount)
    return {namespace: quantities(amount) for namespace, amount in sorted(sums.items())}


def best_effort(report: Report) -> dict[str, Quantity]:
    """What the tier that gives way uses."""
    snap, cpu, memory = report.snap, 0.0, 0.0
    for target, entitled in snap.entitlements.items():
        if entitled.tier is Tier.BESTEFFORT:
            cpu += snap.readings.window(target, "cpu.usage", RECENT_S).mean() or 0.0
            memory += snap.readings.window(target, "memory.working_set", RECENT_S).mean() or 0.0
    return quantities(Resources(Millicores(int(cpu * 1000)), Bytes(int(memory))))


class NotGranted(NamedTuple):
    """What was not granted of one policy: the first reason, and the names of the workloads."""

    why: str = ""
    workloads: tuple[str, ...] = ()


def _refused(report: Report) -> Mapping[str, NotGranted]:
    """By policy: its units first, then its workloads."""
    refused: dict[str, NotGranted] = {}
    for note in report.resolution.notes:
        refused.setdefault(note.source, NotGranted(str(note)))
    for target, entitled in report.resolution.entitlements.items():
        for note in entitled.notes:
            if note.kind == "Unprotected":
                why, workloads = refused.get(note.source, NotGranted(str(note)))
                refused[note.source] = NotGranted(why, (*workloads, target.rpartition("/")[2]))
    return refused


def _reservation(
    policy: MinimalReservationPolicy, report: Report, lines: list[Line], refused: NotGranted
) -> ReservationReport:
    source = reference(policy)
    paid = [line for line in lines if line.holder != source]
    amount = NOTHING
    for line in paid:
        amount = amount.plus(line.amount)
    return ReservationReport(
        source=source,
        generation=policy.metadata.generation,
        workloads=len(matching(policy, report.snap.workloads)),
        units=sum(line.units for line in lines),
        used=sum(line.units for line in paid),
        charged=len(paid),
        amount=quantities(amount),
        unprotected=len(refused.workloads),
        unprotected_workloads=refused.workloads[:MOST_ITEMS],
        refused=refused.why,
    )


def matching(policy: MinimalReservationPolicy, workloads: Mapping[TargetId, Workload]) -> list[TargetId]:
    test, namespace = compiled(policy.spec.selector), policy.metadata.namespace
    return [target for target, w in workloads.items() if w.namespace == namespace and test(w.labels)]
