"""What placing a workload comes down to: the policy that holds its floor, and the answer that tells why. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from msgspec import UNSET, UnsetType

from j10ce.errors import Finding, Invalid
from j10ce.model.kinds import (
    PLACEMENT_LABEL,
    WORKLOAD_LABEL,
    Condition,
    Meta,
    MinimalReservationPolicy,
    MinimalReservationPolicySpec,
    Minimum,
    Selector,
    Workload,
)
from j10ce.model.placement import MOST_VERDICTS, Placement
from j10ce.model.quantity import Duration, Quantity
from j10ce.model.resource import RESOURCES, Resources
from j10ce.policy.document.document import HOSTNAME_LABEL, reference
from j10ce.policy.lifetime import ends
from j10ce.policy.overcommit import spelled
from j10ce.policy.validation import syntax
from j10ce.policy.validation.validate import validate
from j10ce.scheduler.cluster import STANDS_ON, node_of
from j10ce.scheduler.place.demand import Request
from j10ce.scheduler.place.place import PlaceDecision

DEFAULT_TTL: Final = Duration(600)
MARK: Final = Minimum(cpu=Quantity.parse("1m"))  # of a placement that takes a unit: it holds nothing itself


class Terms(NamedTuple):
    dry: bool = False
    ttl: Duration = DEFAULT_TTL
    unenforced: bool = False


def read_terms(params: Mapping[str, str], *, dry: bool) -> Terms:
    """`for=10m`, `unenforced=allow`; raises Invalid."""
    findings = []
    ttl = Duration.parse(params["for"]) if params.get("for") else DEFAULT_TTL
    if ttl.seconds <= 0:
        findings.append(Finding("for", params["for"], "no time at all", "write it as 30s, 10m or 7d"))
    if params.get("unenforced", "allow") != "allow":
        findings.append(Finding("unenforced", params["unenforced"], "not known", "write allow, or leave it out"))
    if findings:
        raise Invalid(findings, "query")
    return Terms(dry, ttl, params.get("unenforced") == "allow")


def placement_name(wanted: Request) -> str:
    return f"placement-{wanted.name}"


def answer(
    decision: PlaceDecision, chosen: Iterable[int], policy: MinimalReservationPolicy | None = None, *, dry: bool = False
) -> Placement:
    wanted, row = decision.demand.request, next(iter(chosen), None)
    payer = -1 if row is None else decision.demand.payer[row]
    held = {} if row is None else dict(zip(RESOURCES, decision.demand.floor[row].tolist(), strict=True))
    message = str(decision)
    if row is not None and not any(held.values()):
        message += "; it was promised nothing, so nothing is held"
    return Placement(
        metadata=Meta(name=wanted.name, namespace=wanted.namespace),
        node="" if row is None else decision.cluster.names[row],
        reservation=reference(policy) if policy else "",
        expires=expires(policy) if policy else UNSET,
        stands_on=decision.cluster.policies[payer].source if payer >= 0 else "",
        floor={name: spelled(name, n) for name, n in held.items() if n},
        message=message,
        refused=dict(decision.refused),
        nodes=decision.verdicts(MOST_VERDICTS),
        dry_run=dry,
    )


def check(workload: Workload) -> None:
    findings = validate(workload)
    findings += syntax.label_value("metadata.name", workload.metadata.name)  # its policy selects it by that
    if findings:
        raise Invalid(findings, f"Workload {workload.metadata.name}")


def policy_for(decision: PlaceDecision, row: int, ttl: Duration) -> MinimalReservationPolicy:
    wanted, payer = decision.demand.request, decision.demand.payer[row]
    on_unit = payer >= 0
    return MinimalReservationPolicy(
        metadata=Meta(
            name=placement_name(wanted),
            namespace=wanted.namespace,
            labels={PLACEMENT_LABEL: wanted.name},
            annotations={STANDS_ON: decision.cluster.policies[payer].source} if on_unit else {},
        ),
        spec=MinimalReservationPolicySpec(
            minimum=MARK if on_unit else floor_on(decision, row),
            selector=_alone(wanted),
            units=0 if on_unit else 1,
            node_selector=Selector(match_labels={HOSTNAME_LABEL: decision.cluster.names[row]}),
            ttl=ttl,
        ),
    )


def is_placement(policy: MinimalReservationPolicy, wanted: Request) -> bool:
    """Whether it is one for that workload alone, on one node, for a time: a label by itself makes none."""
    spec = policy.spec
    named = policy.metadata.labels.get(PLACEMENT_LABEL) == wanted.name and spec.selector == _alone(wanted)
    return named and spec.ttl is not UNSET and node_of(policy) != ""


def _alone(wanted: Request) -> Selector:
    return Selector(match_labels={WORKLOAD_LABEL: wanted.name})


def floor_on(decision: PlaceDecision, row: int) -> Minimum:
    floor = Resources._make(decision.demand.floor[row].tolist())
    amounts = {name: spelled(name, n) for name, n in floor.named()}
    return Minimum(
        cpu=amounts.get("cpu", UNSET),
        memory=amounts.get("memory", UNSET),
        network=amounts.get("network", UNSET),
        disk_read=amounts.get("diskRead", UNSET),
        disk_write=amounts.get("diskWrite", UNSET),
    )


def verdict(policy: MinimalReservationPolicy) -> Condition | None:
    """The leader's word on the present generation."""
    said = next((c for c in policy.status.conditions if c.type == "Admitted"), None)
    return said if said is not None and said.observed_generation >= policy.metadata.generation else None


def expires(policy: MinimalReservationPolicy) -> datetime | UnsetType:
    end = ends(policy)
    return UNSET if math.isinf(end) else datetime.fromtimestamp(end, UTC)
