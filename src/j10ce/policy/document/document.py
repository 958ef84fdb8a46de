"""The node document: all that an agent obeys, derived by one pure function from the objects and the node.

Nodes with the same inputs get the same hash. What moves without changing a decision (status, resourceVersion,
annotations) is left out, so that a report of one agent never wakes the others. What differs from node to node is small:
`spec` and `units`; everything else is shared by all nodes that obey the same revisions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, field
from msgspec.structs import replace

from j10ce.model.kinds import (
    IGNORE_LABEL,
    TRACE_ANNOTATION,
    Condition,
    Hold,
    HoldStatus,
    Meta,
    MinimalReservationPolicy,
    MinimalReservationPolicyStatus,
    NodeQoS,
    NodeQoSSpec,
    NodeStrategy,
    Policy,
    PolicyRevision,
    PolicyStatus,
    QoSProfile,
    Strict,
)
from j10ce.model.schema import plain
from j10ce.policy.document.rollout import Near, Stage, stage, whole_before
from j10ce.policy.lifetime import at, decided, in_force
from j10ce.policy.reach import may_cut, reaches
from j10ce.policy.select import Labels, matches

# 1 had no `units`: each policy carried the node's own count in its spec. 2 had no `strategies`.
FORMAT: Final = 3
FORMATS: Final = (FORMAT, FORMAT - 1)  # that agents obey, and managers tell whoever asks for them
LIMITED: Final = "Limited"  # condition of a policy whose namespace reserves as much of the fleet as it may
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"  # every node carries its own name under it

Named = TypeVar("Named", QoSProfile, MinimalReservationPolicy, NodeStrategy, Hold)


class NodeDocument(Strict, frozen=True, kw_only=True):
    node: str
    hash: str = ""  # of everything but the node's name
    format: int = 1  # what a document that does not say was written in
    spec: NodeQoSSpec = NodeQoSSpec()
    units: dict[str, int] = field(
        default_factory=dict
    )  # of each policy whose units the fleet has placed: those held here
    profiles: tuple[QoSProfile, ...] = ()
    policies: tuple[MinimalReservationPolicy, ...] = ()
    strategies: tuple[NodeStrategy, ...] = ()  # those that select the node; `policy.strategy` merges them
    holds: tuple[Hold, ...] = ()


def render(
    node: NodeQoS,
    *,
    profiles: Iterable[QoSProfile] = (),
    policies: Iterable[MinimalReservationPolicy] = (),
    strategies: Iterable[NodeStrategy] = (),
    holds: Iterable[Hold] = (),
    revisions: Iterable[PolicyRevision] = (),
) -> NodeDocument:
    """What `node` has to obey.

    A policy that is being rolled out and has not reached this node stays in the revision that was stable before.
    A node labelled `j10ce.io/ignore` is disarmed.
    """
    name, labels, history = node.metadata.name, labels_of(node), by_owner(revisions)
    promises = tuple(policies)
    every: tuple[Policy, ...] = (*profiles, *promises, *strategies)
    here = [spread(p, history.get(p.metadata.uid, ())).on(name, labels) for p in every]
    document = NodeDocument(
        node=name,
        format=FORMAT,
        spec=obeyed_spec(node),
        units={reference(p): units for p in promises if (units := placed(p).get(name, 0))},
        profiles=in_order(p for p in here if isinstance(p, QoSProfile)),
        policies=in_order(p for p in here if isinstance(p, MinimalReservationPolicy)),
        strategies=in_order(p for p in here if isinstance(p, NodeStrategy)),
        holds=in_order(bare_hold(h) for h in holds if h.spec.node in ("", name) and reaches(h)),
    )
    return replace(document, hash=digest(document))


def knows(format_: int, kind: str) -> bool:
    """Whether documents of a format tell of objects of a kind."""
    return kind != "NodeStrategy" or format_ >= 3


class Spread(NamedTuple):
    """Which revision of one policy is obeyed where, as agents see it."""

    name: str
    stage: Stage
    present: Policy
    earlier: Policy | None  # of the nodes that the rollout has not reached, where there are any

    @property
    def uniform(self) -> bool:
        """Every node obeys the same."""
        everywhere = isinstance(self.present, QoSProfile) or self.present.spec.node_selector is UNSET
        return self.stage.whole and everywhere

    def near(self, nodes: Iterable[tuple[str, Labels]]) -> Near | None:
        """Of those that the present revision concerns, the one whose cohort is reached first."""
        concerned = (node for node, labels in nodes if _concerns(self.present, labels))
        return min((Near(cohort(node, self.name), node) for node in concerned), default=None)

    def on(self, node: str, labels: Labels) -> Policy | None:
        """None where the policy does not concern the node."""
        taken = self.stage.whole or self.stage.takes(node, cohort(node, self.name))
        chosen = self.present if taken else self.earlier
        return chosen if chosen is not None and _concerns(chosen, labels) else None


def spread(policy: Policy, revisions: Sequence[PolicyRevision]) -> Spread:
    """`revisions` are the policy's own.

    One that the fleet refused altogether is a wish that agents grant as they can.
    """
    held = in_force(policy, revisions) or policy
    now, present = stage(held), bare_policy(held)
    if now.whole:
        return Spread(reference(policy), now, present, None)
    stable = whole_before(held, revisions) if now.stable is None else now.stable
    earlier = at(policy, stable, revisions) if stable else None
    if stable != 0 and earlier is None:  # it is not kept: the present revision is better than no floor at all
        now = Stage(100)
    return Spread(reference(policy), now, present, earlier and bare_policy(earlier))


def placed(policy: MinimalReservationPolicy) -> dict[str, int]:
    """Units by node, as the fleet has placed them."""
    return {w.node: w.units for w in policy.status.witness} if decided(policy) else {}


def obeyed_spec(node: NodeQoS) -> NodeQoSSpec:
    ignored = labels_of(node).get(IGNORE_LABEL) == "true"
    return replace(node.spec, labels={}, disarmed=node.spec.disarmed or ignored)


def labels_of(node: NodeQoS) -> dict[str, str]:
    """The operator's labels go before those the agent reported."""
    return {**node.metadata.labels, **node.spec.labels, HOSTNAME_LABEL: node.metadata.name}


def digest(document: NodeDocument) -> str:
    """Names the content; the same on every node that has to obey the same."""
    objects: tuple[Policy | Hold, ...] = (
        *document.profiles,
        *document.policies,
        *document.strategies,
        *document.holds,
    )
    return combined(map(fingerprint, objects), own_part(document.spec, document.units, document.format))


def combined(fingerprints: Iterable[bytes], own: bytes) -> str:
    return hashlib.blake2b(b"".join(fingerprints) + own, digest_size=12).hexdigest()


def own_part(spec: NodeQoSSpec, units: Mapping[str, int], format_: int) -> bytes:
    """What a document says about its node alone, as it enters the hash."""
    return msgspec.json.encode({"format": format_, "spec": plain(spec), "units": units}, order="sorted")


def fingerprint(obj: Policy | Hold) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(plain(obj), order="sorted"), digest_size=16).digest()


def cohort(node: str, policy: str) -> int:
    """0 to 99: a rollout reaches a node when its canaryPercent exceeds this. Another order for every policy."""
    return int.from_bytes(hashlib.blake2b(f"{node}\0{policy}".encode(), digest_size=8).digest(), "big") % 100


def reference(policy: Policy | Hold) -> str:
    """`QoSProfile/ls`, `MinimalReservationPolicy/payments/db`: how sources and notes name an object."""
    where = f"{policy.metadata.namespace}/" if policy.metadata.namespace else ""
    return f"{policy.kind}/{where}{policy.metadata.name}"


def by_owner(revisions: Iterable[PolicyRevision]) -> dict[str, list[PolicyRevision]]:
    """By the uid of the policy that owns them."""
    owned: dict[str, list[PolicyRevision]] = {}
    for revision in revisions:
        for owner in revision.metadata.owner_references:
            owned.setdefault(owner.uid, []).append(revision)
    return owned


def bare_hold(hold: Hold) -> Hold:
    spec = replace(hold.spec, breaks_reservation=may_cut(hold))
    return replace(hold, metadata=_lasting(hold.metadata), spec=spec, status=HoldStatus())


def _concerns(policy: Policy, labels: Labels) -> bool:
    if isinstance(policy, QoSProfile) or policy.spec.node_selector is UNSET:
        return True
    return matches(policy.spec.node_selector, labels)


def bare_policy(policy: Policy) -> Policy:
    """Without what decides nothing. Units that the fleet places are counted per node, not here."""
    metadata = _lasting(policy.metadata)
    if not isinstance(policy, MinimalReservationPolicy):
        return replace(policy, metadata=metadata, status=PolicyStatus())
    spec = replace(policy.spec, units=0) if decided(policy) else policy.spec
    return replace(
        policy, metadata=metadata, spec=spec, status=MinimalReservationPolicyStatus(conditions=limit(policy))
    )


def limit(policy: MinimalReservationPolicy) -> tuple[Condition, ...]:
    """The one condition that agents obey: the namespace reserves as much as it may. Without its numbers, which move."""
    limited = any(c.type == LIMITED and c.status == "True" for c in policy.status.conditions)
    return (Condition(type=LIMITED, status="True"),) if limited else ()


def _lasting(meta: Meta) -> Meta:
    traced = {name: text for name, text in meta.annotations.items() if name == TRACE_ANNOTATION}
    return replace(
        meta, resource_version="", annotations=traced, owner_references=(), generate_name="", managed_fields=()
    )


def in_order(objects: Iterable[Named]) -> tuple[Named, ...]:
    """As a document lists objects of one kind."""
    return tuple(sorted(objects, key=lambda o: (o.metadata.namespace, o.metadata.name)))
