"""A change of a node's document: what is new in it and what is gone, for an agent that has the one before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from msgspec import field
from msgspec.structs import replace

from j10ce.model.kinds import Hold, MinimalReservationPolicy, NodeQoSSpec, NodeStrategy, QoSProfile, Strict
from j10ce.policy.document.document import NodeDocument, digest, in_order, reference

Named = TypeVar("Named", QoSProfile, MinimalReservationPolicy, NodeStrategy, Hold)


class NodeChange(Strict, frozen=True, kw_only=True):
    node: str
    hash: str  # of the document that it leads to
    since: str  # of the one that it begins with
    format: int
    spec: NodeQoSSpec = NodeQoSSpec()  # what concerns the node alone is sent whole
    units: dict[str, int] = field(default_factory=dict)
    profiles: tuple[QoSProfile, ...] = ()  # new ones, and those that are other than before
    policies: tuple[MinimalReservationPolicy, ...] = ()
    strategies: tuple[NodeStrategy, ...] = ()
    holds: tuple[Hold, ...] = ()
    gone: tuple[str, ...] = ()  # MinimalReservationPolicy/payments/db


def changed(document: NodeDocument, change: NodeChange) -> NodeDocument | None:
    """The document after a change; None where the change does not belong to it, or leads elsewhere than it says."""
    if change.since != document.hash:
        return None
    made = replace(
        document,
        hash=change.hash,
        format=change.format,
        spec=change.spec,
        units=change.units,
        profiles=_merged(document.profiles, change.profiles, change.gone),
        policies=_merged(document.policies, change.policies, change.gone),
        strategies=_merged(document.strategies, change.strategies, change.gone),
        holds=_merged(document.holds, change.holds, change.gone),
    )
    return made if digest(made) == change.hash else None


def _merged(held: Iterable[Named], new: Iterable[Named], gone: Iterable[str]) -> tuple[Named, ...]:
    left = set(gone)
    kept = {reference(obj): obj for obj in held}
    kept |= {reference(obj): obj for obj in new}
    return in_order(obj for ref, obj in kept.items() if ref not in left)
