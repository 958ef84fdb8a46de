"""Both stores behave as the seam says, and so does what only bounded histories show."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from j10ce.errors import Compacted
from j10ce.store.memory import MemoryStore
from j10ce.store.mirror import Mirror
from j10ce.store.sqlite.store import SqliteStore
from j10ce.store.store import Store
from j10ce.testing.build import WALL, reservation
from j10ce.testing.conformance_store import KIND, StoreConformance, soon

Open = Callable[[int], Store]


def wall() -> float:
    return WALL


class TestMemory(StoreConformance):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        store = MemoryStore(wall)
        yield store
        await store.close()


class TestSqlite(StoreConformance):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        store = SqliteStore(tmp_path / "objects.db", wall)
        yield store
        await store.close()


@pytest.fixture(params=["memory", "sqlite"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "memory":
        return lambda kept: MemoryStore(wall, kept=kept)
    return lambda kept: SqliteStore(tmp_path / "objects.db", wall, kept=kept)


async def test_old_changes_are_compacted_and_recent_ones_kept(open_store: Open) -> None:
    store = open_store(100)
    since = (await store.list(KIND)).revision
    made = [await store.put(reservation(f"p-{n}")) for n in range(300)]
    with pytest.raises(Compacted, match="list again"):
        store.watch(KIND, since)
    watch = store.watch(KIND, made[-51].metadata.resource_version)
    assert [(await soon(anext(watch))).object for _ in range(50)] == made[-50:]
    await store.close()


async def test_a_watch_that_lags_behind_the_history_is_reported(open_store: Open) -> None:
    store = open_store(10)
    watch = store.watch(KIND, (await store.list(KIND)).revision)
    for n in range(30):
        await store.put(reservation(f"p-{n}"))
    with pytest.raises(Compacted):
        await anext(watch)
    await store.close()


async def test_a_mirror_that_lags_lists_again(open_store: Open) -> None:
    store = open_store(10)
    await store.put(reservation("goes"))
    stays = await store.put(reservation("stays"))
    changes = (followed := Mirror(store, KIND)).changes()
    first = [await soon(anext(changes)) for _ in range(2)]
    await store.put(reservation("triggers"))
    first.append(await soon(anext(changes)))
    await store.delete(KIND, "default", "goes")
    for n in range(30):
        await store.put(reservation("moves", cpu=f"{n + 1}"))
    events = [await soon(anext(changes)) for _ in range(2)]
    assert [(event.type, event.object.metadata.name) for event in events] == [("DELETED", "goes"), ("ADDED", "moves")]
    assert stays in followed.held.values()
    assert sorted(followed.held) == sorted(
        (KIND, "default", obj.metadata.name) for obj in (await store.list(KIND)).items
    )
    await store.close()


async def test_closing_ends_watches(open_store: Open) -> None:
    store = open_store(10)
    watch = store.watch(KIND, (await store.list(KIND)).revision)
    await store.close()
    with pytest.raises(StopAsyncIteration):
        await anext(watch)


async def test_a_file_made_anew_after_the_clock_went_back_continues_no_watch_of_the_old_one(tmp_path: Path) -> None:
    old = SqliteStore(tmp_path / "old.db", lambda: WALL)
    for n in range(3):
        await old.put(reservation(f"old-{n}"))
    since = (await old.list(KIND)).revision
    await old.close()
    anew = SqliteStore(tmp_path / "anew.db", lambda: WALL - 0.01)
    for n in range(50):
        await anew.put(reservation(f"new-{n}"))
    with pytest.raises(Compacted, match="list again"):
        anew.watch(KIND, since)
    await anew.close()
