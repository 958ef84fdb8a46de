"""Objects as the fleet's ledger reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from j10ce.model.kinds import MinimalReservationPolicy, MinimalReservationPolicySpec, NodeQoS, PolicyRevision
from j10ce.model.resource import NOTHING, Resources
from j10ce.model.schema import convert
from j10ce.policy.document import labels_of, reference
from j10ce.policy.ledger import guaranteeable
from j10ce.policy.resolve import amounts
from j10ce.policy.select import compiled
from j10ce.scheduler.cluster import resources
from j10ce.scheduler.pledge import Charge, Node, Pledge

WITHIN_S: Final = 30.0  # of lending, when it is not said


def to_node(obj: NodeQoS, *, lost: bool) -> Node:
    """Of a lost node nothing is known but that it can hold nothing; one that does not enforce takes no units."""
    report, labels = obj.status.node, labels_of(obj)
    if lost:
        return Node(obj.metadata.name, NOTHING, labels, open=False)
    return Node(
        obj.metadata.name,
        guaranteeable(resources(report.capacity)),
        labels,
        report.armed and not (obj.spec.unschedulable or obj.spec.disarmed),
        {namespace: resources(amount) for namespace, amount in report.claimed.items()},
        {
            r.source: Charge(r.charged, resources(r.amount), r.unprotected)
            for r in report.reservations
            if r.charged or r.unprotected
        },
        resources(report.best_effort),
    )


def to_pledge(policy: MinimalReservationPolicy, whole: Resources) -> Pledge:
    """What no node of the fleet has a measure of cannot be promised by anyone, and is left out."""
    spec, lending = policy.spec, policy.spec.lending
    within_s = WITHIN_S if lending.within is UNSET else lending.within.seconds
    return Pledge(
        reference(policy),
        policy.metadata.namespace,
        _promisable(amounts(spec.minimum, NOTHING), whole),
        spec.units,
        created(policy),
        None if spec.node_selector is UNSET else compiled(spec.node_selector),
        within_s=within_s if lending.mode == "Reclaimable" else None,
    )


def _promisable(shape: Resources, whole: Resources) -> Resources:
    """Every node has CPUs and memory, also one that has not reported yet."""
    cpu, memory, *rest = shape
    return Resources._make((cpu, memory, *(n if there else 0 for n, there in zip(rest, whole[2:], strict=True))))


def created(policy: MinimalReservationPolicy) -> float:
    stamp = policy.metadata.creation_timestamp
    return 0.0 if stamp is UNSET else stamp.timestamp()


def expires(policy: MinimalReservationPolicy) -> float:
    """Wall clock."""
    return math.inf if policy.spec.ttl is UNSET else created(policy) + policy.spec.ttl.seconds


def in_force(policy: MinimalReservationPolicy, revisions: Sequence[PolicyRevision]) -> MinimalReservationPolicy | None:
    """The generation that was admitted; None when there is none, or it is not kept any more.

    How long it lives and whether it lends follow the present wish at once: neither takes room from anyone.
    """
    held = policy.status.admitted_generation
    if held in (0, policy.metadata.generation):
        return policy if held else None
    for revision in revisions:
        if revision.revision == held:
            spec = convert(revision.data, MinimalReservationPolicySpec)
            spec = replace(spec, ttl=policy.spec.ttl, lending=policy.spec.lending)
            return replace(policy, metadata=replace(policy.metadata, generation=held), spec=spec)
    return None
