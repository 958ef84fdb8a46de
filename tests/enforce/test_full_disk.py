"""The store on a disk that is really full."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from j10ce.errors import StoreError
from j10ce.model.kinds import Object
from j10ce.store.sqlite.store import SqliteStore
from j10ce.store.store import Store
from j10ce.testing.build import WALL, reservation
from j10ce.testing.conformance_store import KIND


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "j10ce-test", disk], check=True)
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


async def test_a_full_disk_refuses_writes_whole_and_recovers(tiny_disk: Path) -> None:
    store = SqliteStore(tiny_disk / "objects.db", lambda: WALL)
    made: list[Object] = []
    with pytest.raises(StoreError, match="nothing was written"):
        await fill(store, made)
    assert made
    assert (await store.list(KIND)).items == tuple(made)

    subprocess.run(["mount", "-o", "remount,size=64m", tiny_disk], check=True)
    made.append(await store.put(reservation("z-after", cpu="1")))
    await asyncio.gather(*(store.put(obj) for obj in made))
    await store.close()
    store = SqliteStore(tiny_disk / "objects.db", lambda: WALL)
    assert (await store.list(KIND)).items == tuple(made)
    await store.close()


async def fill(store: Store, made: list[Object]) -> None:
    for n in range(1000):
        made += [await store.put(reservation(f"p-{n:04}", cpu="1"))]


def test_a_store_on_a_full_disk_does_not_start(tiny_disk: Path) -> None:
    with pytest.raises(OSError, match="No space"):
        (tiny_disk / "ballast").write_bytes(bytes(1 << 20))
    with pytest.raises(StoreError, match="full"):
        SqliteStore(tiny_disk / "objects.db", lambda: WALL)
