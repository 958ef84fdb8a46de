"""Between public objects and what the ring works with: a Workload object in, a Workload object out."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from j10ce.model import kinds, schema
from j10ce.model.kinds import NAMESPACE_NAME_LABEL, PROFILE_LABEL, WORKLOAD_LABEL, Minimum, QoSProfile
from j10ce.model.quantity import Quantity
from j10ce.model.resource import Resources
from j10ce.model.snapshot import NodeFacts
from j10ce.model.workload import Ceiling, Entitlement, Handle, Overrides, Workload, heeded, unheeded
from j10ce.policy.choose import Chooser
from j10ce.policy.entitlement.resolve import amounts
from j10ce.policy.profiles import TRUSTED_LABEL, canonical

NO_STATUS: Final = kinds.WorkloadStatus()
UNLESS_CHOSEN: Final = "burstable"


def from_object(
    obj: kinds.Workload, node: NodeFacts, *, handle: Handle | None = None, uid: int = 0, since: float = 0.0
) -> Workload:
    """Percentages are of this node. Namespace and labels are the word of whoever placed it: root's counts, and that of
    the user whose agent this is."""
    namespace = obj.metadata.namespace or "default"
    return Workload(
        namespace=namespace,
        name=obj.metadata.name,
        labels={**obj.metadata.labels, WORKLOAD_LABEL: obj.metadata.name},
        namespace_labels=namespace_labels(namespace, uid),
        requests=amounts(obj.spec.requests, node.capacity),
        limits=ceiling(obj.spec.limits, node),
        minimum=amounts(obj.spec.minimum, node.capacity),
        handle=handle or Handle(),
        uid=uid,
        vouched=uid in (0, os.geteuid()),
        since=since,
        annotations=heeded(obj.metadata.annotations),
        overrides=Overrides(notes=unheeded(obj.metadata.annotations)),
    )


def to_object(workload: Workload, status: kinds.WorkloadStatus = NO_STATUS) -> kinds.Workload:
    created = datetime.fromtimestamp(workload.since, UTC) if workload.since else UNSET
    return kinds.Workload(
        metadata=kinds.Meta(
            name=workload.name,
            namespace=workload.namespace,
            labels={k: v for k, v in workload.labels.items() if k != WORKLOAD_LABEL},
            annotations=dict(workload.annotations),
            creation_timestamp=created,
        ),
        spec=kinds.WorkloadSpec(
            requests=minimum(workload.requests),
            limits=_limits(workload.limits),
            minimum=minimum(workload.minimum),
            parts=tuple(p.name for p in workload.parts),
        ),
        status=status,
    )


def entitlement(entitled: Entitlement) -> dict[str, Any]:
    """As users see it: a note is its sentence."""
    plain: dict[str, Any] = schema.plain(entitled)
    return plain | {"notes": [*map(str, entitled.notes)]}


def namespace_labels(namespace: str, uid: int) -> dict[str, str]:
    """Root is this machine's administrator: what it places may choose any profile.

    Anyone else may name any namespace, so the name earns nothing.
    """
    return {NAMESPACE_NAME_LABEL: namespace, TRUSTED_LABEL: "true" if uid == 0 else "false"}


def ceiling(limits: Minimum, node: NodeFacts) -> Ceiling:
    """Percentages are of this node."""
    given = (limits.cpu, limits.memory, limits.network, limits.disk_read, limits.disk_write)
    whole = amounts(limits, node.capacity)
    return Ceiling(*(math.inf if q is UNSET else float(n) for q, n in zip(given, whole, strict=True)))


def minimum(amount: Resources) -> Minimum:
    named = quantities(amount)
    return Minimum(
        cpu=named.get("cpu", UNSET),
        memory=named.get("memory", UNSET),
        network=named.get("network", UNSET),
        disk_read=named.get("diskRead", UNSET),
        disk_write=named.get("diskWrite", UNSET),
    )


def quantities(amount: Resources) -> dict[str, Quantity]:
    """By public name, without those that are zero."""
    return {name: Quantity(Fraction(n, 1000) if name == "cpu" else Fraction(n)) for name, n in amount.named()}


def _limits(limits: Ceiling) -> Minimum:
    every = (limits.cpu, limits.memory, limits.network, limits.disk_read, limits.disk_write)
    return minimum(Resources._make(0 if n == math.inf else int(n) for n in every))


def labelled(profile: str, labels: Mapping[str, str]) -> dict[str, str]:
    """A chosen profile is a label like any other."""
    return {**labels, PROFILE_LABEL: canonical(profile)} if profile else dict(labels)


def chosen(workload: Workload, profiles: Iterable[QoSProfile]) -> Workload:
    """Whoever places something wants it managed: where neither label nor selector finds a profile, as burstable."""
    if PROFILE_LABEL in workload.labels:
        return workload
    choice = Chooser(profiles).choose(workload)
    if choice.profile is not None or choice.ignored:
        return workload
    return replace(workload, labels=labelled(UNLESS_CHOSEN, workload.labels))
