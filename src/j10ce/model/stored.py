"""What is said of objects that are kept: by which key, what changed, what cannot be read, and what became of them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from j10ce.errors import StoreError
from j10ce.model.kinds import Object

Part = Literal["spec", "status"]


class Key(NamedTuple):
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def key_of(obj: Object) -> Key:
    return Key(obj.kind, obj.metadata.namespace, obj.metadata.name)


class Event(NamedTuple):
    """One change. A delete carries the last object. `revision` continues a watch after this event."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: Object
    revision: str
    old: Object | None = None  # what it was before, where the store knows


class Happening(NamedTuple):
    """What became of an object, for people: a turn, not a number."""

    type: Literal["Normal", "Warning"]
    reason: str  # one word, as Kubernetes wants it
    message: str


class Listing(NamedTuple):
    items: tuple[Object, ...]
    revision: str  # a watch from here misses nothing and repeats nothing


class Unreadable(StoreError):
    """An object that was stored, and makes no sense to us."""

    def __init__(self, key: Key, why: str) -> None:
        super().__init__(f"{key} is stored as something that cannot be read: {why}")
        self.key = key
