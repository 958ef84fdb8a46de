"""Objects of a small fleet: nodes that report, policies that ask."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from j10ce.manager.policies.admission import Decision
from j10ce.model.kinds import (
    Meta,
    MinimalReservationPolicy,
    NodeQoS,
    NodeQoSSpec,
    NodeQoSStatus,
    NodeReport,
    ReservationReport,
    Witness,
)
from j10ce.model.quantity import Quantity
from j10ce.testing.build import WALL, reservation

# Of a machine with so much, 4 CPUs and 16 GiB may be promised.
CPUS, MEMORY = "4211m", str((16 << 30) * 20 // 19 + 1)


def node(
    name: str,
    *,
    cpu: str = CPUS,
    memory: str = MEMORY,
    heard: float = WALL,
    charged: dict[str, tuple[int, str]] | None = None,
    waiting: dict[str, int] | None = None,
    best_effort: str = "0",
    floors: str = "0",
    **spec: Any,
) -> NodeQoS:
    """`charged`: by policy, how many workloads run on how much CPU each; `floors`: CPU of those without a policy."""
    paid, refused = charged or {}, waiting or {}
    reports = tuple(
        ReservationReport(
            source=source,
            charged=paid.get(source, (0, "0"))[0],
            amount={"cpu": _times(*paid.get(source, (0, "0")))},
            unprotected=refused.get(source, 0),
        )
        for source in {**paid, **refused}
    )
    claimed = {source.split("/")[1]: {"cpu": _times(*counts)} for source, counts in paid.items()}
    report = NodeReport(
        heartbeat=datetime.fromtimestamp(heard, UTC),
        armed=True,
        capacity={"cpu": Quantity.parse(cpu), "memory": Quantity.parse(memory)},
        claimed={**claimed, "others": {"cpu": Quantity.parse(floors)}},
        reservations=reports,
        best_effort={"memory": Quantity.parse(best_effort)},
    )
    return NodeQoS(metadata=Meta(name=name), spec=NodeQoSSpec(**spec), status=NodeQoSStatus(node=report))


def _times(count: int, cpu: str) -> Quantity:
    return Quantity(Quantity.parse(cpu).amount * count)


def policy(name: str = "db", *, units: int = 1, age_s: float = 0.0, generation: int = 1, **spec: Any) -> Any:
    """Older by `age_s` than the others."""
    spec.setdefault("cpu", "1")
    made = reservation(name, units=units, created=WALL - age_s, **spec)
    return replace(made, metadata=replace(made.metadata, uid=f"uid-{name}", generation=generation))


def after(policy: MinimalReservationPolicy, decision: Decision) -> MinimalReservationPolicy:
    """The policy once its status is written."""
    status = replace(
        policy.status,
        conditions=decision.conditions,
        units=decision.units,
        witness=decision.witness,
        admitted_generation=decision.generation,
    )
    return replace(policy, status=status)


def where(decision: Decision) -> dict[str, int]:
    return {w.node: w.units for w in decision.witness}


def witness(**units: int) -> tuple[Witness, ...]:
    return tuple(Witness(node=node, units=n) for node, n in sorted(units.items()))
