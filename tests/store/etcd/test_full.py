"""An etcd whose quota is used up, and one that comes near it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.errors import Conflict, NotFound, StoreError
from j10ce.model.kinds import Object
from j10ce.store.etcd.store import EtcdStore
from j10ce.testing.build import reservation
from j10ce.testing.conformance_store import KIND, names
from tests.etcd.cluster import running
from tests.store.etcd.test_table import opened


def large(name: str) -> Object:
    made = reservation(name)
    return replace(made, metadata=replace(made.metadata, annotations={"note": "x" * 200_000}))


async def filled(store: EtcdStore) -> None:
    for n in range(1000):
        await store.put(large(f"p{n}"))


async def test_what_is_deleted_on_a_full_etcd_is_gone(tmp_path: Path) -> None:
    """Whoever puts things right begins there: also through a manager that has written nothing before."""
    with running(tmp_path, 1, flags=["--quota-backend-bytes=8388608"]) as cluster:
        store, other = opened(cluster.url), opened(cluster.url)
        kept = await store.put(reservation("kept"))
        await store.put(reservation("one"))
        await store.put(reservation("two"))
        with pytest.raises(StoreError, match="database is full"):
            await filled(store)
        await store.delete(KIND, "default", "one")
        await other.delete(KIND, "default", "two")
        for name in ("one", "two"):
            with pytest.raises(NotFound):
                await other.delete(KIND, "default", name)
            with pytest.raises(NotFound):
                await store.get(KIND, "default", name)
        with pytest.raises(Conflict):
            await store.delete(KIND, "default", "kept", expect=str(int(kept.metadata.resource_version) - 1))
        with pytest.raises(StoreError, match="database is full"):
            await store.put(reservation("more"))
        await store.delete(KIND, "default", "kept", expect=kept.metadata.resource_version)
        await store.close()
        await other.close()


async def test_deletes_on_a_full_etcd_cost_no_reader_anything(tmp_path: Path) -> None:
    """They move no mark, so that another manager learns of them by its watch alone."""
    with running(tmp_path, 1, flags=["--quota-backend-bytes=8388608"]) as cluster:
        store, other = opened(cluster.url), opened(cluster.url)
        for n in range(40):
            await store.put(reservation(f"small-{n}"))
        with pytest.raises(StoreError, match="database is full"):
            await filled(store)

        async def reading(by: EtcdStore) -> None:
            while True:
                await by.list(KIND)

        async with asyncio.TaskGroup() as group:
            readers = [group.create_task(reading(by)) for by in (store, other) for _ in range(8)]
            for n in range(40):
                await store.delete(KIND, "default", f"small-{n}")
                with pytest.raises(NotFound):
                    await store.get(KIND, "default", f"small-{n}")
            for task in readers:
                task.cancel()
        assert not [name for name in names(await store.list(KIND)) if "small-" in name]
        async with asyncio.timeout(60):
            while [name for name in names(await other.list(KIND)) if "small-" in name]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await store.close()
        await other.close()


async def test_what_we_write_counts_before_etcd_is_asked_how_full_it_is(tmp_path: Path) -> None:
    """So that nobody but an administrator fills it: others are refused at 95 %."""
    with running(tmp_path, 1, flags=["--quota-backend-bytes=33554432"]) as cluster:
        store = opened(f"{cluster.url}?quota=32Mi")
        await store.put(reservation("db"))
        async with asyncio.timeout(60):
            for n in range(1000):
                await store.put(large(f"p{n}"))
                if store.fullness() >= 0.95:
                    break
        assert store.fullness() >= 0.95
        await store.close()
