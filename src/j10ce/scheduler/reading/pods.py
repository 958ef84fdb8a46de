"""A pod, as a scheduler knows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar, cast, get_args

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from j10ce.model.kube.native import Amounts, NativeOwner, Pool, slim
from j10ce.model.kube.placing import NativeVolume, PodResourceClaim
from j10ce.model.kube.pod import most
from j10ce.model.kube.wide_pod import (
    UNREADABLE,
    WideContainer,
    WideMeta,
    WidePod,
    WidePodSpec,
    WidePodStatus,
    decode_part,
    is_nothing,
)
from j10ce.scheduler.book.facts import OwnerFacts, Phase, PodFacts
from j10ce.scheduler.reading.shapes import Shapes

P = TypeVar("P")
# namespace, owner references, labels
FindOwner = Callable[[str, Iterable[NativeOwner], Mapping[str, str]], OwnerFacts | None]
MIRROR: Final = "kubernetes.io/config.mirror"  # annotation of a pod that its node runs whatever anybody says
CRITICAL: Final = ("system-cluster-critical", "system-node-critical")
PHASES: Final[tuple[str, ...]] = get_args(Phase)
STOCK: Final = "default-scheduler"


class PodReader:
    """`owner` finds the top of a pod's owners. What pods have in common is kept once."""

    def __init__(self, owner: FindOwner) -> None:
        self._owner = owner
        self._shapes = Shapes()
        self._pool = Pool()

    def read(self, text: bytes) -> PodFacts | None:
        """None for what is no pod that an API server could have: one without a name or a uid."""
        try:
            pod = slim(msgspec.json.decode(text, type=WidePod), self._pool)
        except UNREADABLE:
            return None
        return self.facts(pod) if pod.metadata.name and pod.metadata.uid else None

    def facts(self, pod: WidePod) -> PodFacts:
        faults: list[str] = []
        spec = _part(pod.spec, WidePodSpec, "spec", faults)
        status = _part(pod.status, WidePodStatus, "status", faults)
        meta = pod.metadata
        return PodFacts(
            meta.uid,
            meta.namespace,
            meta.name,
            self._shapes.shape(_held(spec, status), meta.labels, faults),
            meta.labels,
            meta.annotations,
            spec.scheduler_name or STOCK,
            spec.priority or 0,
            spec.preemption_policy != "Never",
            _seconds(meta.creation_timestamp) or 0.0,
            spec.node_name,
            status.nominated_node_name,
            _phase(status.phase),
            _started(status),
            _deleted(meta),
            tuple(gate.name for gate in spec.scheduling_gates),
            _claims(meta.name, spec, faults),
            (*_devices(spec.resource_claims, faults), *faults),
            self._owner(meta.namespace, meta.owner_references, meta.labels),
            MIRROR in meta.annotations or spec.priority_class_name in CRITICAL,
        )


def _part(text: Raw, into: type[P], path: str, faults: list[str]) -> P:
    """Of what is malformed, all that is right."""
    if is_nothing(text):
        return into()
    try:
        return cast("P", decode_part(text, into))
    except UNREADABLE:
        return _salvaged(text, into, path, faults)


def _salvaged(text: Raw, into: type[P], path: str, faults: list[str]) -> P:
    plain = _plain(text)
    if not isinstance(plain, dict):
        faults.append(f"{path} is no object")
        return into()
    kept = {}
    for key, value in plain.items():
        try:
            decode_part(msgspec.json.encode({key: value}), into)
            kept[key] = value
        except UNREADABLE as e:
            faults.append(f"{path}.{key} cannot be read: {e}")
    return cast("P", decode_part(msgspec.json.encode(kept), into))


def _plain(text: Raw) -> Any:
    try:
        return msgspec.json.decode(text)
    except UNREADABLE:
        return None


def _held(spec: WidePodSpec, status: WidePodStatus) -> WidePodSpec:
    """While it is resized a pod has the more of what it asks for and of what its kubelet has given it."""
    given = dict[str, Amounts]()
    for c in (*status.init_container_statuses, *status.container_statuses):
        of_kubelet = most(c.allocated_resources, c.resources.requests if c.resources else {})
        if of_kubelet:
            given[c.name] = of_kubelet
    if not given:
        return spec
    containers, init_containers = (
        tuple(_with_more(c, given.get(c.name, {})) for c in kind) for kind in (spec.containers, spec.init_containers)
    )
    return replace(spec, containers=containers, init_containers=init_containers)


def _with_more(container: WideContainer, given: Amounts) -> WideContainer:
    asked = container.resources.requests
    more = {name: amount for name, amount in given.items() if name not in asked or amount.amount > asked[name].amount}
    if not more:
        return container
    return replace(container, resources=replace(container.resources, requests=asked | more))


def _claims(pod: str, spec: WidePodSpec, faults: list[str]) -> tuple[str, ...]:
    """An ephemeral volume has a claim of its own, named for the pod."""
    return tuple(
        volume.persistent_volume_claim.claim_name if volume.persistent_volume_claim else f"{pod}-{volume.name}"
        for volume in _listed(spec.volumes, tuple[NativeVolume, ...], "spec.volumes", faults)
        if volume.persistent_volume_claim or volume.ephemeral
    )


def _devices(text: Raw, faults: list[str]) -> tuple[str, ...]:
    claims: tuple[PodResourceClaim, ...] = _listed(text, tuple[PodResourceClaim, ...], "spec.resourceClaims", faults)
    return tuple(f"resource claim {claim.name}" for claim in claims)


def _listed(text: Raw, into: Any, path: str, faults: list[str]) -> Any:
    if is_nothing(text):
        return ()
    try:
        return decode_part(text, into)
    except UNREADABLE as e:
        faults.append(f"{path} cannot be read: {e}")
        return ()


def _phase(phase: str) -> Phase:
    return cast("Phase", phase) if phase in PHASES else "Unknown" if phase else "Pending"


def _started(status: WidePodStatus) -> float | None:
    moments = (_seconds(c.state.running.started_at) for c in status.container_statuses if c.state.running)
    return min((moment for moment in moments if moment is not None), default=None)


def _deleted(meta: WideMeta) -> float | None:
    """The mark says when its grace ends."""
    ends = _seconds(meta.deletion_timestamp)
    return None if ends is None else ends - max(0, meta.deletion_grace_period_seconds)


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
