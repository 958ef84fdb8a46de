"""A backup is whole or refused; a move keeps everything but revisions, and proves it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.errors import Conflict, Corrupt, StoreError, Unsupported
from j10ce.model.kinds import Object
from j10ce.model.stored import Listing
from j10ce.store.backup import digest, read, restore, written
from j10ce.store.memory import MemoryStore
from j10ce.store.sqlite.store import SqliteStore
from j10ce.testing.build import WALL, profile, reservation
from j10ce.testing.conformance_store import KIND, judged, labelled, with_cpu


def wall() -> float:
    return WALL


async def lived(store: MemoryStore | SqliteStore | None = None) -> MemoryStore | SqliteStore:
    """A store whose objects have seen changes, status and deletions."""
    store = store or MemoryStore(wall)
    await store.put(profile("mine"))
    for n in range(5):
        made = await store.put(reservation(f"db-{n}", namespace="pay", cpu="1"))
        await store.put(with_cpu(made, "2"))
        await store.put(judged(made, "fits"), part="status")
    await store.delete(KIND, "pay", "db-4")
    return store


@pytest.fixture
async def listing() -> Listing:
    return await (await lived()).snapshot()


def test_what_is_written_is_read(listing: Listing) -> None:
    assert read(written(listing, WALL)) == listing
    assert len(listing.items) == 5


@given(where=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_no_bit_can_change_unnoticed(where: int, bit: int) -> None:
    data = bytearray(written(asyncio.run(some()), WALL))
    data[where % len(data)] ^= 1 << bit
    with pytest.raises((Corrupt, Unsupported)):
        read(bytes(data))


@given(length=st.integers(0, 10**6))
def test_no_part_passes_for_the_whole(length: int) -> None:
    data = written(asyncio.run(some()), WALL)
    with pytest.raises(Corrupt):
        read(data[: length % (len(data) - 1)])


async def some() -> Listing:
    return await (await lived()).snapshot()


def rewritten(listing: Listing, **changes: object) -> bytes:
    """A file with another header, and the checksum that fits."""
    head, *rest = written(listing, WALL).splitlines()
    lines = b"\n".join([json.dumps({**json.loads(head), **changes}).encode(), *rest[:-1]]) + b"\n"
    end = {"objects": len(rest) - 1, "sha256": hashlib.sha256(lines).hexdigest()}
    return lines + json.dumps(end).encode() + b"\n"


def test_a_backup_of_another_release_is_recognised(listing: Listing) -> None:
    with pytest.raises(Unsupported, match="format 2"):
        read(rewritten(listing, format=2))


def test_another_file_is_no_backup() -> None:
    with pytest.raises(Corrupt, match="no whole backup"):
        read(b"")
    with pytest.raises(Corrupt, match="no backup of j10ce-qos"):
        read(b'{"kind": "List"}\n{"objects": 0, "sha256": ""}\n')


def test_a_backup_that_is_not_of_one_instant_is_refused(listing: Listing) -> None:
    newest = max(int(obj.metadata.resource_version) for obj in listing.items)
    with pytest.raises(Corrupt, match="not of one instant"):
        read(rewritten(listing, revision=str(newest - 1)))
    with pytest.raises(Corrupt, match="not of one instant"):
        written(listing._replace(revision=str(newest - 1)), WALL)
    with pytest.raises(Corrupt, match="twice"):
        written(listing._replace(items=(*listing.items, listing.items[0])), WALL)
    with pytest.raises(Corrupt, match="never stored"):
        written(listing._replace(items=(reservation("db"),)), WALL)


def digests(objects: tuple[Object, ...]) -> set[str]:
    return set(map(digest, objects))


async def test_a_move_keeps_uids_ages_generations_and_status(tmp_path: Path) -> None:
    source = await lived(SqliteStore(tmp_path / "source.db", wall))
    listing = await source.snapshot()
    target = SqliteStore(tmp_path / "target.db", lambda: WALL + 1000)
    imported = await restore(target, listing)
    assert len(imported.added) == 5
    assert digests((await target.snapshot()).items) == digests(listing.items)
    await target.close()
    again = SqliteStore(tmp_path / "target.db", wall)
    assert digests((await again.snapshot()).items) == digests(listing.items)
    await again.close()
    await source.close()


async def test_a_moved_object_lives_on(listing: Listing) -> None:
    target = MemoryStore(wall)
    await restore(target, listing)
    moved = await target.get(KIND, "pay", "db-1")
    changed = await target.put(with_cpu(moved, "3"), expect=moved.metadata.resource_version)
    assert changed.metadata.generation == moved.metadata.generation + 1
    assert changed.metadata.uid == moved.metadata.uid


async def test_a_store_that_is_not_empty_is_left_alone(listing: Listing) -> None:
    target = MemoryStore(wall)
    await target.put(reservation("mine"))
    before = await target.snapshot()
    with pytest.raises(Conflict, match="holds 1 objects"):
        await restore(target, listing)
    assert await target.snapshot() == before


async def test_a_merge_adds_and_reports_but_never_overwrites(listing: Listing) -> None:
    target = MemoryStore(wall)
    await target.put(profile("mine"))  # the same wish, made by someone else
    theirs = await target.put(labelled(reservation("db-0", namespace="pay", cpu="9"), by="others"))
    imported = await restore(target, listing, merge=True)
    assert [key.name for key in imported.present] == ["mine"]
    assert [key.name for key in imported.conflicts] == ["db-0"]
    assert [key.name for key in imported.added] == ["db-1", "db-2", "db-3"]
    assert await target.get(KIND, "pay", "db-0") == theirs
    again = await restore(target, listing, merge=True)
    assert (len(again.added), len(again.present)) == (0, 4), "repeating it changes nothing"


class Forgetful(MemoryStore):
    async def restore(self, obj: Object) -> Object:
        return await super().restore(replace(obj, metadata=replace(obj.metadata, generation=1)))


async def test_what_did_not_arrive_as_it_was_is_reported(listing: Listing) -> None:
    with pytest.raises(StoreError, match="4 of 5 objects did not arrive as they were"):
        await restore(Forgetful(wall), listing)
