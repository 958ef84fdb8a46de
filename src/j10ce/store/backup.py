"""Backups and moves: all objects of a store as a file, and back into a store, with proof that nothing changed.

A file is lines of JSON: a header, the objects as the API shows them, and an end with their number and a checksum of
everything before it. Uids, ages, generations and status are kept; revisions are the new store's own.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from j10ce.errors import Conflict, Corrupt, Invalid, StoreError, Unsupported
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Object, PolicyRevision, Strict
from j10ce.model.schema import decode, encode, parse_plain
from j10ce.model.stored import Key, Listing, key_of
from j10ce.store.store import Movable

FORMAT: Final = 1
AT_A_TIME: Final = 64


class Head(Strict, frozen=True, kw_only=True, omit_defaults=False):
    backup: Literal["j10ce-qos"] = "j10ce-qos"
    format: int = FORMAT
    revision: str  # of the store, when the objects were read
    taken: datetime


class End(Strict, frozen=True, kw_only=True):
    objects: int
    sha256: str


class Imported(NamedTuple):
    """What became of each object of a backup."""

    added: tuple[Key, ...]
    present: tuple[Key, ...]  # there already, with the same content
    conflicts: tuple[Key, ...]  # there already, with other content: left as they are


def written(listing: Listing, wall: float) -> bytes:
    """The file; raises Corrupt for a listing that is not of one instant."""
    _check_consistent(listing)
    head = Head(revision=listing.revision, taken=datetime.fromtimestamp(int(wall), UTC))
    lines = b"".join(line + b"\n" for line in (encode(head), *map(encode, listing.items)))
    end = End(objects=len(listing.items), sha256=hashlib.sha256(lines).hexdigest())
    return lines + encode(end) + b"\n"


def read(data: bytes) -> Listing:
    """The objects of a file; raises Corrupt for a file that is not whole, Unsupported for one of another release."""
    lines = data.splitlines(keepends=True)
    try:
        head, end = _head(lines[0]), msgspec.json.decode(lines[-1], type=End)
    except (IndexError, ValueError) as e:
        raise Corrupt(f"this is no whole backup: {e}; take it again") from None
    if hashlib.sha256(b"".join(lines[:-1])).hexdigest() != end.sha256:
        raise Corrupt("the backup was changed since it was taken: its checksum differs")
    try:
        listing = Listing(tuple(decode(parse_plain(line)) for line in lines[1:-1]), head.revision)
    except Invalid as e:
        raise Corrupt(f"the backup holds an object that this release does not read: {e}") from None
    if len(listing.items) != end.objects:
        raise Corrupt(f"the backup holds {len(listing.items)} objects, not {end.objects}")
    _check_consistent(listing)
    return listing


async def restore(store: Movable, listing: Listing, *, merge: bool = False) -> Imported:
    """Bring all objects into the store, then read them back and compare.

    Raises Conflict when the store is not empty, unless merging; Corrupt when what came out is not what went in.
    """
    held = {key_of(obj): obj for obj in (await store.snapshot()).items}
    if held and not merge:
        raise Conflict(f"the store holds {len(held)} objects; give an empty one, or add what is missing with --merge")
    missing = [obj for obj in listing.items if key_of(obj) not in held]
    for at in range(0, len(missing), AT_A_TIME):
        await asyncio.gather(*map(store.restore, missing[at : at + AT_A_TIME]))
    imported = Imported(
        added=tuple(map(key_of, missing)),
        present=tuple(key for obj in listing.items if (key := key_of(obj)) in held and same(obj, held[key])),
        conflicts=tuple(key for obj in listing.items if (key := key_of(obj)) in held and not same(obj, held[key])),
    )
    _verify(missing, {key_of(obj): obj for obj in (await store.snapshot()).items})
    return imported


def movable(store: object, url: str) -> Movable:
    if isinstance(store, Movable):
        return store
    raise Unsupported(f"moving the objects of {url}", needs="a store that can be read at one revision")


def same(one: Object, other: Object) -> bool:
    """Whether both ask for the same; who made them and what became of them does not count."""
    return _wish(one) == _wish(other)


def digest(obj: Object) -> str:
    """Of all that a move keeps."""
    return hashlib.sha256(encode(replace(obj, metadata=replace(obj.metadata, resource_version="")))).hexdigest()


def _wish(obj: Object) -> tuple[object, ...]:
    meta = obj.metadata
    wish = (obj.revision, obj.data) if isinstance(obj, PolicyRevision) else obj.spec
    return wish, meta.labels, meta.annotations


def _head(line: bytes) -> Head:
    plain = msgspec.json.decode(line)
    if not isinstance(plain, dict) or plain.get("backup") != "j10ce-qos":
        raise Corrupt("this is no backup of j10ce-qos")
    if plain.get("format") != FORMAT:
        raise Unsupported(f"backup format {plain.get('format')}", needs=f"another release; this one reads {FORMAT}")
    return msgspec.convert(plain, Head)


def _check_consistent(listing: Listing) -> None:
    """Every object once, of a kind that is stored, and none newer than the instant of the backup."""
    seen: set[Key] = set()
    for obj in listing.items:
        key, at = key_of(obj), obj.metadata.resource_version
        if not KINDS[key.kind].stored or not obj.metadata.uid:
            raise Corrupt(f"{key} was never stored, so it cannot be in a backup")
        if key in seen:
            raise Corrupt(f"the backup holds {key} twice")
        if not at.isdecimal() or int(at) > int(listing.revision):
            raise Corrupt(f"{key} is at revision {at}, after the backup's {listing.revision}: it is not of one instant")
        seen.add(key)


def _verify(objects: Sequence[Object], held: dict[Key, Object]) -> None:
    differing = [str(key_of(obj)) for obj in objects if not _arrived(obj, held.get(key_of(obj)))]
    if differing:
        some = ", ".join(differing[:5])
        raise StoreError(f"{len(differing)} of {len(objects)} objects did not arrive as they were: {some}")


def _arrived(obj: Object, there: Object | None) -> bool:
    return there is not None and digest(there) == digest(obj)
