"""What a node may say of itself: names of resources, amounts and counts that a machine can have, sources that exist.

Checked where a report comes in, and again where it is used: on Kubernetes agents write their status without us.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from msgspec import UNSET, UnsetType

from j10ce.errors import Finding
from j10ce.model.kinds import EffectiveFloor, NodeQoS, NodeReport, ReservationReport
from j10ce.model.knob import NR_CPUS
from j10ce.model.quantity import Quantity
from j10ce.model.resource import RESOURCES
from j10ce.policy.validation.sections import outside
from j10ce.policy.validation.syntax import LABEL, SUBDOMAIN, moment, namespace

MOST_CPUS: Final = 1_000_000
MOST_BYTES: Final = 1 << 50  # also of a rate: no machine has a petabyte
MOST_COUNT: Final = 1_000_000  # of workloads and units on one node
MOST_GENERATION: Final = 2**53
CPU_LIST: Final = re.compile(r"[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*")
POLICY: Final = "MinimalReservationPolicy"

PATH: Final = "status.node"
Amounts = Mapping[str, Quantity]


def report_findings(node: NodeQoS) -> list[Finding]:
    """All that makes no sense in what a node reports."""
    report = node.status.node
    return [
        *_times(report),
        *_amounts(report),
        *_counts(report),
        *_topology(report),
        *_promises(report, node.metadata.name),
    ]


def _times(report: NodeReport) -> Iterator[Finding]:
    yield from _zoned(f"{PATH}.heartbeat", report.heartbeat)
    for n, change in enumerate(report.applied):
        yield from _zoned(f"{PATH}.applied[{n}].received", change.received)
        yield from _zoned(f"{PATH}.applied[{n}].applied", change.applied)
    for n, condition in enumerate(report.conditions):
        yield from _zoned(f"{PATH}.conditions[{n}].lastTransitionTime", condition.last_transition_time)


def _zoned(path: str, time: datetime | UnsetType) -> Iterator[Finding]:
    if time is not UNSET:
        yield from moment(path, time)


def _amounts(report: NodeReport) -> Iterator[Finding]:
    yield from _named(f"{PATH}.capacity", report.capacity)
    yield from _named(f"{PATH}.reserved", report.reserved)
    yield from _named(f"{PATH}.bestEffort", report.best_effort)
    for name, claimed in report.claimed.items():
        yield from namespace(f"{PATH}.claimed.{name}", name)
        yield from _named(f"{PATH}.claimed.{name}", claimed)
    over = ((f"usageOver.{span}", measured) for span, measured in report.usage_over.items())
    fixed = (("usage", report.usage), ("demand", report.demand), ("predicted", report.predicted))
    zones = ((f"zones.{zone}", measured) for zone, measured in report.zones.items())
    for field, measured in (*fixed, *over, *zones):
        for resource, amounts in measured.items():
            yield from _resource(f"{PATH}.{field}.{resource}", resource)
            for name, q in amounts.items():
                yield from _amount(f"{PATH}.{field}.{resource}.{name}", resource, q)


def _named(path: str, amounts: Amounts) -> Iterator[Finding]:
    for resource, q in amounts.items():
        yield from _resource(f"{path}.{resource}", resource)
        yield from _amount(f"{path}.{resource}", resource, q)


def _resource(path: str, resource: str) -> Iterator[Finding]:
    if resource not in RESOURCES:
        yield Finding(path, resource, "no resource", "use one of " + ", ".join(RESOURCES))


def _amount(path: str, resource: str, q: Quantity) -> Iterator[Finding]:
    most = MOST_CPUS if resource == "cpu" else MOST_BYTES
    if q.percent:
        yield Finding(path, str(q), "a percentage", "write an amount")
    elif q.amount > most:
        yield Finding(path, str(q), "more than any machine has", f"at most {most}")


def _counts(report: NodeReport) -> Iterator[Finding]:
    yield from outside(f"{PATH}.workloads", report.workloads, 0, MOST_COUNT)
    for name, share in report.pressure.items():
        if not (math.isfinite(share) and 0 <= share <= 100):
            yield Finding(f"{PATH}.pressure.{name}", str(share), "no share of time", "use 0 to 1")
    for n, pair in enumerate(report.interference):
        yield from outside(f"{PATH}.interference[{n}].samples", pair.samples, 0, MOST_COUNT)
        if not -1 <= pair.correlation <= 1:
            at = f"{PATH}.interference[{n}].correlation"
            yield Finding(at, str(pair.correlation), "no correlation", "use -1 to 1")


def _topology(report: NodeReport) -> Iterator[Finding]:
    if (topology := report.topology) is UNSET:
        return
    for name, count in (
        ("threads", topology.threads),
        ("cores", topology.cores),
        ("siblingStep", topology.sibling_step),
    ):
        yield from outside(f"{PATH}.topology.{name}", count, 0, NR_CPUS)
    for name, groups in (
        ("sockets", topology.sockets),
        ("numaNodes", topology.numa_nodes),
        ("l3Caches", topology.l3_caches),
    ):
        for n, group in enumerate(groups):
            if not CPU_LIST.fullmatch(group.cpus):  # not unfolded: a short text may name very many
                yield Finding(f"{PATH}.topology.{name}[{n}].cpus", group.cpus, "no list of CPUs", "write it as 0-3,8")


def _promises(report: NodeReport, node: str) -> Iterator[Finding]:
    for n, reservation in enumerate(report.reservations):
        yield from _reservation(f"{PATH}.reservations[{n}]", reservation)
    for n, floor in enumerate(report.effective):
        yield from _effective(f"{PATH}.effective[{n}]", floor, node)
    for n, asked in enumerate(report.evictions):
        if not LABEL.fullmatch(asked.namespace) or not SUBDOMAIN.fullmatch(asked.name):
            where = f"{asked.namespace}/{asked.name}"
            yield Finding(f"{PATH}.evictions[{n}]", where, "no pod", "write namespace and name as Kubernetes does")


def _reservation(path: str, report: ReservationReport) -> Iterator[Finding]:
    kind, *where = report.source.split("/")
    if kind != POLICY or len(where) != 2 or not LABEL.fullmatch(where[0]) or not SUBDOMAIN.fullmatch(where[1]):
        yield Finding(f"{path}.source", report.source, "no policy", f"write it as {POLICY}/<namespace>/<name>")
    yield from outside(f"{path}.generation", report.generation, 0, MOST_GENERATION)
    counts = {
        "workloads": report.workloads,
        "units": report.units,
        "used": report.used,
        "charged": report.charged,
        "unprotected": report.unprotected,
    }
    for name, count in counts.items():
        yield from outside(f"{path}.{name}", count, 0, MOST_COUNT)
    yield from _named(f"{path}.amount", report.amount)


def _effective(path: str, floor: EffectiveFloor, node: str) -> Iterator[Finding]:
    if floor.node != node:
        yield Finding(f"{path}.node", floor.node, "another node", f"a node tells of itself alone: {node}")
    yield from _resource(f"{path}.resource", floor.resource)
    for name, q in (("promised", floor.promised), ("effective", floor.effective)):
        yield from _amount(f"{path}.{name}", floor.resource, q)
