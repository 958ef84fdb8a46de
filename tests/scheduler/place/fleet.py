"""Nodes as their agents would report them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from j10ce.model.kinds import (
    Capability,
    Condition,
    Meta,
    MinimalReservationPolicy,
    NodeQoS,
    NodeQoSSpec,
    NodeQoSStatus,
    NodeReport,
    ReservationReport,
    Witness,
    Workload,
    WorkloadSpec,
)
from j10ce.model.quantity import Quantity
from j10ce.policy.lifetime import in_force
from j10ce.policy.profiles import builtin
from j10ce.scheduler.cluster import Cluster, assemble, row
from j10ce.scheduler.place.demand import Request, request
from j10ce.testing.build import WALL, minimum, selector
from tests.hearing import by_heartbeat

KNOBS = ("cpu.weight", "memory.min", "memory.low")


def node(
    name: str = "n1",
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    reserved: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    cordoned: bool = False,
    armed: bool = True,
    heard: float = WALL,
    lacking: tuple[str, ...] = (),
    reservations: tuple[ReservationReport, ...] = (),
    overcommit: Mapping[str, str] | None = None,
) -> NodeQoS:
    report = NodeReport(
        heartbeat=datetime.fromtimestamp(heard, UTC),
        armed=armed,
        capacity=quantities({"cpu": cpu, "memory": memory}),
        reserved=quantities(reserved or {}),
        capabilities=tuple(Capability(feature=knob, ok=knob not in lacking) for knob in KNOBS),
        reservations=reservations,
    )
    return NodeQoS(
        metadata=Meta(name=name),
        spec=NodeQoSSpec(unschedulable=cordoned, labels=dict(labels or {})),
        status=NodeQoSStatus(node=report, overcommit=quantities(overcommit or {})),
    )


def quantities(spelled: Mapping[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in spelled.items()}


def witnessed(policy: MinimalReservationPolicy, **units: int) -> MinimalReservationPolicy:
    """Admitted, with its units on these nodes."""
    granted = Condition(type="Admitted", status="True", observed_generation=1)
    witness = tuple(Witness(node=name, units=n) for name, n in units.items())
    status = replace(policy.status, conditions=(granted,), witness=witness, admitted_generation=1)
    return replace(policy, metadata=replace(policy.metadata, generation=1), status=status)


def fleet(*nodes: NodeQoS, policies: tuple[MinimalReservationPolicy, ...] = (), wall: float = WALL) -> Cluster:
    """Silent is who has not been heard for forty seconds, by the clock of the test."""
    words = {n.metadata.name: by_heartbeat(lambda: wall)(n) for n in nodes}
    held = filter(None, (in_force(policy, ()) for policy in policies))
    silent = {name for name, word in words.items() if word.lost}
    return assemble(map(row, nodes), held, {name: word.silent_s for name, word in words.items()}, silent, wall=wall)


def workload(
    name: str = "web",
    *,
    labels: Mapping[str, str] | None = None,
    on: str = "",
    nodes: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    **amounts: str,
) -> Workload:
    spec = WorkloadSpec(node=on, minimum=minimum(**amounts), requests=minimum(**(requests or {})))
    if nodes:
        spec = replace(spec, node_selector=selector(nodes))
    return Workload(metadata=Meta(name=name, namespace="default", labels=dict(labels or {})), spec=spec)


def asked(name: str = "web", **more: object) -> Request:
    return request(workload(name, **more), builtin())  # type: ignore[arg-type]
