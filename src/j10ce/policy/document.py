"""The node document: all that an agent obeys, derived by one pure function from the objects and the node.

Nodes with the same inputs get the same hash. What moves without changing a decision (status, resourceVersion,
annotations) is left out, so that a report of one agent never wakes the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from j10ce.model.kinds import (
    IGNORE_LABEL,
    TRACE_ANNOTATION,
    Hold,
    HoldStatus,
    Meta,
    MinimalReservationPolicy,
    MinimalReservationPolicyStatus,
    NodeQoS,
    NodeQoSSpec,
    PolicyRevision,
    PolicyStatus,
    QoSProfile,
    Rollout,
    Strict,
)
from j10ce.model.schema import convert, plain
from j10ce.policy.select import Labels, matches

FORMAT: Final = 1
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"  # every node carries its own name under it

Policy: TypeAlias = QoSProfile | MinimalReservationPolicy
P = TypeVar("P", QoSProfile, MinimalReservationPolicy)
Named = TypeVar("Named", QoSProfile, MinimalReservationPolicy, Hold)


class NodeDocument(Strict, frozen=True, kw_only=True):
    node: str
    format: int = FORMAT
    profiles: tuple[QoSProfile, ...] = ()
    policies: tuple[MinimalReservationPolicy, ...] = ()
    holds: tuple[Hold, ...] = ()
    spec: NodeQoSSpec = NodeQoSSpec()
    hash: str = ""  # of everything but the node's name


def render(
    node: NodeQoS,
    *,
    profiles: Iterable[QoSProfile] = (),
    policies: Iterable[MinimalReservationPolicy] = (),
    holds: Iterable[Hold] = (),
    revisions: Iterable[PolicyRevision] = (),
) -> NodeDocument:
    """What `node` has to obey.

    A policy that is being rolled out and has not reached this node yet stays in the newest revision that has.
    A node labelled `j10ce.io/ignore` is disarmed.
    """
    name, labels, history = node.metadata.name, labels_of(node), _by_owner(revisions)
    here = (_for_node(p, name, labels) for p in _rolled_out(policies, name, history))
    document = NodeDocument(
        node=name,
        profiles=_sorted(_bare(p, PolicyStatus()) for p in _rolled_out(profiles, name, history)),
        policies=_sorted(_bare(p, MinimalReservationPolicyStatus()) for p in here if p is not None),
        holds=_sorted(_held(h) for h in holds if h.spec.node in ("", name)),
        spec=replace(node.spec, labels={}, disarmed=node.spec.disarmed or labels.get(IGNORE_LABEL) == "true"),
    )
    return replace(document, hash=digest(document))


def labels_of(node: NodeQoS) -> dict[str, str]:
    """The operator's labels go before those the agent reported."""
    return {HOSTNAME_LABEL: node.metadata.name, **node.metadata.labels, **node.spec.labels}


def digest(document: NodeDocument) -> str:
    """Names the content; the same on every node that has to obey the same."""
    content = plain(replace(document, node="", hash=""))
    return hashlib.blake2b(msgspec.json.encode(content, order="sorted"), digest_size=12).hexdigest()


def cohort(node: str, policy: str) -> int:
    """0 to 99: a rollout reaches a node when its canaryPercent exceeds this. Another order for every policy."""
    return int.from_bytes(hashlib.blake2b(f"{node}\0{policy}".encode(), digest_size=8).digest(), "big") % 100


def reference(policy: Policy | Hold) -> str:
    """`QoSProfile/ls`, `MinimalReservationPolicy/payments/db`: how sources and notes name an object."""
    where = f"{policy.metadata.namespace}/" if policy.metadata.namespace else ""
    return f"{policy.kind}/{where}{policy.metadata.name}"


def _rolled_out(policies: Iterable[P], node: str, history: Mapping[str, list[PolicyRevision]]) -> Iterable[P]:
    for policy in policies:
        if _reaches(policy.spec.rollout, node, reference(policy)):
            yield policy
        elif (earlier := _earlier(policy, node, history.get(policy.metadata.uid, []))) is not None:
            yield earlier


def _earlier(policy: P, node: str, revisions: list[PolicyRevision]) -> P | None:
    """The newest revision before the present one that reached this node."""
    for revision in revisions:
        if revision.revision < policy.metadata.generation:
            spec = convert(revision.data, type(policy.spec))
            if _reaches(spec.rollout, node, reference(policy)):
                generation = replace(policy.metadata, generation=revision.revision)
                return replace(policy, metadata=generation, spec=spec)
    return None


def _reaches(rollout: Rollout | UnsetType, node: str, policy: str) -> bool:
    return rollout is UNSET or cohort(node, policy) < rollout.canary_percent


def _by_owner(revisions: Iterable[PolicyRevision]) -> dict[str, list[PolicyRevision]]:
    """Newest first, by the uid of the policy that owns them."""
    found: dict[str, list[PolicyRevision]] = {}
    for revision in sorted(revisions, key=lambda r: -r.revision):
        for owner in revision.metadata.owner_references:
            found.setdefault(owner.uid, []).append(revision)
    return found


def _for_node(p: MinimalReservationPolicy, node: str, labels: Labels) -> MinimalReservationPolicy | None:
    """None where nodeSelector excludes the node; `units` become those that the witness places here.

    Without a witness the node stands alone, and all units are its own.
    """
    wanted = p.spec.node_selector
    if wanted is not UNSET and not matches(wanted, labels):
        return None
    if not p.status.witness:
        return p
    here = sum(w.units for w in p.status.witness if w.node == node)
    return replace(p, spec=replace(p.spec, units=here))


def _bare(policy: P, status: PolicyStatus) -> P:
    return replace(policy, metadata=_lasting(policy.metadata), status=status)


def _held(hold: Hold) -> Hold:
    return replace(hold, metadata=_lasting(hold.metadata), status=HoldStatus())


def _lasting(meta: Meta) -> Meta:
    traced = {name: text for name, text in meta.annotations.items() if name == TRACE_ANNOTATION}
    return replace(
        meta, resource_version="", annotations=traced, owner_references=(), generate_name="", managed_fields=()
    )


def _sorted(objects: Iterable[Named]) -> tuple[Named, ...]:
    return tuple(sorted(objects, key=lambda o: (o.metadata.namespace, o.metadata.name)))
