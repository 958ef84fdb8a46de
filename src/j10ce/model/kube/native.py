"""Kubernetes' own objects, as far as we read them: everything else in them is skipped while decoding.

A manager holds a hundred thousand of these. So they keep little, share what is equal, and stay out of the garbage
collector's rounds: nothing in them can form a cycle.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from sys import intern
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from j10ce.errors import Invalid
from j10ce.model.quantity import LARGEST, Quantity

LONGEST_ANNOTATION: Final = 4096
APPLIED_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"  # the whole object once more

Amounts = dict[str, Quantity]
N = TypeVar("N", bound="NativeObject")
V = TypeVar("V")


class Native(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Part of an object of Kubernetes; fields that are not here are nobody's mistake."""


class NativeOwner(Native, frozen=True, kw_only=True):
    kind: str
    name: str
    uid: str = ""
    controller: bool = False


class NativeMeta(Native, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[NativeOwner, ...] = ()


class NativeObject(Native, frozen=True, kw_only=True):
    metadata: NativeMeta = NativeMeta()

    @property
    def kind(self) -> str:
        return type(self).__name__


class NativeCondition(Native, frozen=True, kw_only=True):
    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""


class Taint(Native, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: str = ""


class NodeSpec(Native, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Native, frozen=True, kw_only=True):
    capacity: Amounts = field(default_factory=dict)
    allocatable: Amounts = field(default_factory=dict)
    conditions: tuple[NativeCondition, ...] = ()


class Node(NativeObject, frozen=True, kw_only=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)


class Namespace(NativeObject, frozen=True, kw_only=True):
    pass


class LeaseSpec(Native, frozen=True, kw_only=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class Lease(NativeObject, frozen=True, kw_only=True):
    spec: LeaseSpec = LeaseSpec()


class Involved(Native, frozen=True, kw_only=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class NativeEvent(NativeObject, frozen=True, kw_only=True):
    """What happened to an object, for people: `kubectl describe` shows it."""

    involved_object: Involved = Involved()
    type: str = "Normal"
    reason: str = ""
    message: str = ""
    count: int = 0

    @property
    def kind(self) -> str:
        return "Event"


class Pool:
    """Makes one value of equal ones: most pods are like others but for their names. Forgets everything when full."""

    def __init__(self, most: int = 16_384) -> None:
        self._most = most
        self._held: dict[Hashable, Any] = {}

    def one(self, value: V, key: Hashable) -> V:
        """`value`, or the one that was given under an equal key of the same type before."""
        shared: V = self._held.setdefault((type(value), key), value)
        if shared is value and len(self._held) > self._most:
            self._held.clear()
        return shared

    def words(self, words: dict[str, str]) -> dict[str, str]:
        return self.one(words, tuple(words.items()))


def decode_native(text: bytes, into: type[N]) -> N:
    """Raises msgspec.MsgspecError for what is none."""
    return msgspec.json.decode(text, type=into, dec_hook=read_amount)


def without_nulls(raw: Any) -> Any:
    """A null is what is left out: Go writes one for every list that is empty and not optional."""
    if isinstance(raw, dict):
        return {key: without_nulls(value) for key, value in raw.items() if value is not None}
    return [without_nulls(value) for value in raw] if isinstance(raw, list) else raw


def slim(obj: N, pool: Pool) -> N:
    """Without long annotations, and with everything in common that is common."""
    meta = obj.metadata
    annotations = {
        key: value
        for key, value in meta.annotations.items()
        if key != APPLIED_ANNOTATION and len(value) <= LONGEST_ANNOTATION
    }
    kept = replace(
        meta,
        namespace=intern(meta.namespace),
        labels=pool.words(meta.labels),
        annotations=pool.words(annotations),
        owner_references=pool.one(meta.owner_references, meta.owner_references),
    )
    return replace(obj, metadata=kept)


def read_amount(into: type, raw: Any) -> Quantity:
    """What is beyond our numbers is as much as we can count: a pod is never overlooked for how much it asks."""
    if into is not Quantity:
        raise NotImplementedError(f"no decoder for {into}")
    try:
        return Quantity.parse(raw)
    except Invalid:
        return Quantity(LARGEST)
