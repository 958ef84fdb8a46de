"""The seam to the State Store: optimistic concurrency and watches, per kind; no transactions across objects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from enum import Enum
from typing import Final, Literal, Protocol, runtime_checkable

from j10ce.model.kinds import Object
from j10ce.model.stored import Event, Listing


class Expect(Enum):
    """What a write takes for granted, besides a revision."""

    ABSENT = "absent"  # create
    ANY = "any"  # last write wins


ABSENT: Final = Expect.ABSENT
ANY: Final = Expect.ANY


class Store(Protocol):
    """Objects by (kind, namespace, name). Revisions are opaque strings, ordered per kind.

    A put returns the object as stored: uid, creationTimestamp, resourceVersion and generation are the store's.
    `generation` moves with spec only. `part` says which half the caller owns: the other half is kept as it is.
    A put that changes nothing returns the object as it is: no revision, no event.
    Errors: NotFound, Conflict (stale `expect`, or ABSENT and present), Compacted (watch from a lost revision),
    Unreadable (it is there and makes no sense to us: lists leave it out, watches tell its end).
    An acknowledged put survives a crash where the store is durable. Safe to call from many tasks of one loop.
    """

    async def get(self, kind: str, namespace: str, name: str) -> Object: ...

    async def list(self, kind: str, namespace: str | None = None) -> Listing: ...

    async def put(
        self, obj: Object, *, expect: str | Expect = ANY, part: Literal["spec", "status"] = "spec"
    ) -> Object: ...

    async def delete(self, kind: str, namespace: str, name: str, *, expect: str | Expect = ANY) -> Object: ...

    def watch(self, kind: str, since: str) -> AsyncIterator[Event]:
        """Every change after `since`, in order, none lost, none twice; then waits for more until the store closes.

        A wait may be cancelled and repeated. Compacted is raised by the call or by a wait. Of a NodeQoS that changed
        so often that it would end the history of all others, only the latest state may be sent.
        """
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Movable(Protocol):
    """A store whose objects can be carried into another one with their uids, ages, generations and status."""

    async def snapshot(self) -> Listing:
        """All objects of all kinds at one revision."""
        ...

    async def restore(self, obj: Object) -> Object:
        """Store it as it is; only the revision is the store's own. Conflict where its name is taken."""
        ...


@runtime_checkable
class Forgiving(Protocol):
    """A store that leaves out what it cannot read, instead of failing."""

    def unreadable(self) -> Mapping[str, int]:
        """How many stored objects of each kind are left out."""
        ...


@runtime_checkable
class Discarding(Protocol):
    """A store from which what nobody can read can be removed through us."""

    async def discard(self, kind: str, namespace: str, name: str) -> None:
        """Raises NotFound, and Conflict where it can be read, or changed meanwhile."""
        ...


@runtime_checkable
class Filling(Protocol):
    """A store that can run out of room."""

    def fullness(self) -> float:
        """From 0 to 1, as far as is known."""
        ...
