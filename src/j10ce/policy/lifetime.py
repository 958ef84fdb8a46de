"""When a policy ends, and which of its generations is in force: the one answer for everyone who asks.

An edit of a policy with units counts once the fleet has admitted it; while it is refused, the generation before it
stays in force whole, but for `ttl` and `lending`: how long a policy lives and whether it lends follow the present wish
at once, since neither takes room from anyone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from j10ce.errors import Invalid
from j10ce.model.kinds import Hold, Meta, MinimalReservationPolicy, Owner, Policy, PolicyRevision, PolicySpec
from j10ce.model.plan import HeldSetting
from j10ce.model.schema import convert, plain
from j10ce.model.stored import Key
from j10ce.policy.reach import SYSTEM_NAMESPACE

Ending: TypeAlias = Hold | HeldSetting | MinimalReservationPolicy
P = TypeVar("P", bound=Policy)


def created(policy: Policy) -> float:
    """Wall clock of the manager that took it in."""
    stamp = policy.metadata.creation_timestamp
    return 0.0 if stamp is UNSET else stamp.timestamp()


def ends(obj: Ending) -> float:
    """Wall clock; never, for a policy without a ttl or one that is not stored yet."""
    if isinstance(obj, HeldSetting):
        return obj.expires
    if isinstance(obj, Hold):
        return obj.spec.expires.timestamp()
    if obj.spec.ttl is UNSET or obj.metadata.creation_timestamp is UNSET:
        return math.inf
    return created(obj) + obj.spec.ttl.seconds


def over(obj: Ending, wall: float) -> bool:
    return wall >= ends(obj)


def decided(policy: Policy) -> bool:
    """The Reservation Manager has judged it: its witness is the truth. Before that a node stands alone."""
    return any(c.type == "Admitted" for c in policy.status.conditions)


def in_force(policy: P, revisions: Iterable[PolicyRevision]) -> P | None:
    """The policy with the spec and generation that count; `revisions` are its own.

    None where the fleet has admitted no generation of it, or the admitted one is not kept any more.
    """
    if not isinstance(policy, MinimalReservationPolicy) or not policy.spec.units or not decided(policy):
        return policy
    held = policy.status.admitted_generation
    if held in (0, policy.metadata.generation):
        return policy if held else None
    earlier = at(policy, held, revisions)
    if earlier is None:
        return None
    return replace(earlier, spec=replace(earlier.spec, ttl=policy.spec.ttl, lending=policy.spec.lending))


def admitted(policy: P, revisions: Iterable[PolicyRevision]) -> P | None:
    """What the fleet holds of it; None also while nobody has decided."""
    return in_force(policy, revisions) if decided(policy) else None


def at(policy: P, generation: int, revisions: Iterable[PolicyRevision]) -> P | None:
    """The policy as it was in an earlier generation; None where that is not kept."""
    for revision in revisions:
        if revision.revision == generation and (spec := spec_of(policy, revision)) is not None:
            return replace(policy, metadata=replace(policy.metadata, generation=generation), spec=spec)
    return None


def spec_of(policy: Policy, revision: PolicyRevision) -> PolicySpec | None:
    """What the policy asked for then; None where this release cannot read it.

    It is read as stores read objects: another release may have written it, so fields that nobody knows are left out.
    """
    try:
        return convert(revision.data, type(policy.spec), [])
    except Invalid:
        return None


def revision_of(policy: Policy) -> PolicyRevision:
    """Its present generation as the history keeps it; that of a kind without a namespace, in the system's.

    Its name has the uid, too: a policy that was deleted and made again starts a history of its own.
    """
    meta = policy.metadata
    owner = Owner(api_version=policy.api_version, kind=policy.kind, name=meta.name, uid=meta.uid)
    _, namespace, name = revision_key(policy)
    kept = Meta(name=name, namespace=namespace, owner_references=(owner,))
    return PolicyRevision(metadata=kept, revision=meta.generation, data=plain(policy.spec))


def revision_key(policy: Policy) -> Key:
    """Under which the history keeps its present generation."""
    meta = policy.metadata
    name = f"{meta.name[:200].rstrip('-.')}-{meta.uid[:8]}-{meta.generation}"
    return Key("PolicyRevision", meta.namespace or SYSTEM_NAMESPACE, name)
