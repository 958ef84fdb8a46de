"""What a write makes of an object: expectations, generation and stamps, alike in every store. Pure but for uids."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

from msgspec.structs import replace

from j10ce.errors import Conflict, NotFound, StoreError, cut
from j10ce.model.kinds import Object, PolicyRevision
from j10ce.model.stored import Key, Part, key_of
from j10ce.store.store import Expect

# What to store, given what is there, under a revision: `old` itself for nothing. Raises when it must not be stored.
Decide = Callable[[Object | None, str], Object]


def revise(old: Object | None, obj: Object, *, expect: str | Expect, part: Part, revision: str, wall: float) -> Object:
    """The object as it will be stored, or `old` itself when the write changes nothing.

    Raises NotFound when an object to be changed is absent, Conflict when `expect` does not hold.
    """
    if old is not None or expect is not Expect.ABSENT:
        check(old, key_of(obj), expect)
    if part == "status" and isinstance(obj, PolicyRevision):
        raise StoreError("a PolicyRevision has no status")
    if old is None:
        if part == "status":
            raise NotFound(f"{key_of(obj)} does not exist, so it has no status to write")
        return _created(obj, revision, wall)
    merged = _with_spec(old, obj) if part == "spec" else _with_status(old, obj)
    if merged == old:
        return old
    generation = old.metadata.generation + (_wish(merged) != _wish(old))
    return replace(merged, metadata=replace(merged.metadata, generation=generation, resource_version=revision))


def kept(old: Object | None, obj: Object, *, revision: str) -> Object:
    """An object out of a backup as it will be stored: itself, but for the revision."""
    check(old, key_of(obj), Expect.ABSENT)
    return replace(obj, metadata=replace(obj.metadata, resource_version=revision))


def check(old: Object | None, key: Key, expect: str | Expect) -> None:
    """Whether a write may go on, given what is there."""
    if old is None:
        if isinstance(expect, str):
            raise NotFound(f"{key} does not exist")
    elif expect is Expect.ABSENT:
        raise Conflict(f"{key} exists already: change that one, or choose another name")
    elif isinstance(expect, str) and expect != old.metadata.resource_version:
        raise Conflict(f"{key} is at revision {old.metadata.resource_version}, not {cut(expect)}: read it again")


def removed(old: Object | None, key: Key, *, expect: str | Expect, revision: str) -> Object:
    """The last state of an object that is being deleted, at the revision of its end."""
    if old is None:
        raise NotFound(f"{key} does not exist")
    check(old, key, expect)
    return replace(old, metadata=replace(old.metadata, resource_version=revision))


def _created(obj: Object, revision: str, wall: float) -> Object:
    stamped = replace(
        obj.metadata,
        uid=_uid(),
        creation_timestamp=datetime.fromtimestamp(int(wall), UTC),
        generation=1,
        resource_version=revision,
    )
    if isinstance(obj, PolicyRevision):
        return replace(obj, metadata=stamped)
    return replace(obj, metadata=stamped, status=type(obj.status)())


def _uid() -> str:
    """As uuid4 spells it, at half its cost.

    It is a name, not a secret: asking the kernel for randomness would hand the interpreter to another thread.
    """
    digits = f"{random.getrandbits(122):031x}"
    variant = "89ab"[int(digits[0])]
    return f"{digits[1:9]}-{digits[9:13]}-4{digits[13:16]}-{variant}{digits[16:19]}-{digits[19:]}"


def _with_spec(old: Object, obj: Object) -> Object:
    was = old.metadata
    metadata = replace(
        obj.metadata,
        uid=was.uid,
        creation_timestamp=was.creation_timestamp,
        generation=was.generation,
        generate_name=was.generate_name,
        resource_version=was.resource_version,
    )
    if isinstance(obj, PolicyRevision) or isinstance(old, PolicyRevision):
        return replace(obj, metadata=metadata)
    return replace(obj, metadata=metadata, status=old.status)


def _with_status(old: Object, obj: Object) -> Object:
    """Who decided what is kept with either half; a caller that says nothing about it changes nothing."""
    owners = obj.metadata.managed_fields or old.metadata.managed_fields
    return replace(old, metadata=replace(old.metadata, managed_fields=owners), status=obj.status)  # type: ignore[union-attr]


def _wish(obj: Object) -> object:
    """The part whose changes move the generation."""
    return (obj.revision, obj.data) if isinstance(obj, PolicyRevision) else obj.spec
