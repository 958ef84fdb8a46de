"""Objects as the fleet's ledger reads them."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from j10ce.model.kinds import MinimalReservationPolicy, NodeQoS
from j10ce.model.resource import NOTHING, Resources
from j10ce.policy.document.document import labels_of, reference
from j10ce.policy.entitlement.ledger import guaranteeable
from j10ce.policy.entitlement.resolve import amounts
from j10ce.policy.lifetime import created
from j10ce.policy.select import compiled
from j10ce.scheduler.cluster import resources
from j10ce.scheduler.ledger.pledge import Charge, FleetNode, Pledge

WITHIN_S: Final = 30.0  # of lending, when it is not said


def to_node(obj: NodeQoS, lost: bool, doubtful: bool) -> FleetNode:
    """Of a lost node nothing is known but that it can hold nothing; one that does not enforce, or may be lost, takes no
    units."""
    report, labels = obj.status.node, labels_of(obj)
    if lost:
        return FleetNode(obj.metadata.name, NOTHING, labels, open=False)
    return FleetNode(
        obj.metadata.name,
        guaranteeable(resources(report.capacity)),
        labels,
        report.armed and not (doubtful or obj.spec.unschedulable or obj.spec.disarmed),
        {namespace: resources(amount) for namespace, amount in report.claimed.items()},
        {
            r.source: Charge(r.charged, resources(r.amount), r.unprotected)
            for r in report.reservations
            if r.charged or r.unprotected
        },
        resources(report.best_effort),
    )


def to_pledge(policy: MinimalReservationPolicy) -> Pledge:
    """Units hold CPU and memory, whoever leads and whatever nodes there are; nobody can hold the rest."""
    spec = policy.spec
    return Pledge(
        reference(policy),
        policy.metadata.namespace,
        _held(policy),
        spec.units,
        created(policy),
        None if spec.node_selector is UNSET else compiled(spec.node_selector),
        lent_within_s(policy),
        compiled(spec.selector),
        spec.minimum,
    )


def lent_within_s(policy: MinimalReservationPolicy) -> float | None:
    """How soon a unit that was lent has to be back; None: it does not lend."""
    lending = policy.spec.lending
    if lending.mode != "Reclaimable":
        return None
    return WITHIN_S if lending.within is UNSET else lending.within.seconds


def not_held(policy: MinimalReservationPolicy) -> Resources:
    """What one unit asks for and nobody holds."""
    return amounts(policy.spec.minimum, NOTHING).minus(_held(policy)) if policy.spec.units else NOTHING


def _held(policy: MinimalReservationPolicy) -> Resources:
    asked = amounts(policy.spec.minimum, NOTHING)
    return Resources(asked.cpu, asked.memory)
