"""An etcd that lost what others have read: its data, or all since a snapshot. Nobody goes on from that."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from j10ce.errors import Compacted, Conflict
from j10ce.model.kinds import Object
from j10ce.store.etcd.address import read_address
from j10ce.store.etcd.store import EtcdStore
from j10ce.testing.build import WALL, reservation
from j10ce.testing.conformance_store import KIND, names, soon, take, with_cpu
from tests.etcd.cluster import Cluster, running
from tests.etcd.proxy import always, proxied


def opened(url: str) -> EtcdStore:
    return EtcdStore(read_address(url), lambda: WALL, patience_s=60)


def rv(obj: Object) -> str:
    return obj.metadata.resource_version


@pytest.mark.slow
async def test_an_etcd_that_lost_its_data_is_noticed(tmp_path: Path) -> None:
    with running(tmp_path, count=1) as cluster:
        store = opened(cluster.url)
        for n in range(20):
            await store.put(reservation(f"p-{n}"))
        watch = store.watch(KIND, (await store.list(KIND)).revision)
        missing = asyncio.ensure_future(anext(watch))  # noqa: TID251
        await asyncio.sleep(0)
        cluster.kill(0)
        shutil.rmtree(cluster.members[0].folder / "data")
        await asyncio.to_thread(cluster.restart, 0)
        assert not (await store.list(KIND)).items
        with pytest.raises(Compacted):
            await soon(missing)
        made = await store.put(reservation("p-1"))
        assert await store.get(KIND, "default", "p-1") == made
        await store.close()


async def put_back(cluster: Cluster, snapshot: Path) -> None:
    cluster.kill(0)
    shutil.rmtree(cluster.members[0].folder / "data")
    shutil.copytree(snapshot, cluster.members[0].folder / "data")
    await asyncio.to_thread(cluster.restart, 0)


async def saved(cluster: Cluster, snapshot: Path) -> None:
    cluster.kill(0)
    shutil.copytree(cluster.members[0].folder / "data", snapshot)
    await asyncio.to_thread(cluster.restart, 0)


@pytest.mark.slow
async def test_nobody_goes_on_from_what_an_etcd_that_was_put_back_has_lost(tmp_path: Path) -> None:
    """Neither with the manager that noticed, nor with one that knows nothing of it, nor with one that came later."""
    with running(tmp_path, count=1) as cluster:
        async with proxied(cluster.endpoints[0]) as proxy:
            noticed, unaware = opened(cluster.url), opened(f"etcd://{proxy.address}")
            first = await noticed.put(reservation("first"))
            assert names(await unaware.list(KIND)) == ["default/first"]
            proxy.judge = always("lose request")
            proxy.cut()
            await saved(cluster, tmp_path / "snapshot")
            lost = [await noticed.put(reservation(f"lost-{n}")) for n in range(30)]
            stale = await noticed.put(reservation("first", cpu="2"))
            listing = await noticed.list(KIND)
            await put_back(cluster, tmp_path / "snapshot")
            assert names(await noticed.list(KIND)) == ["default/first"]
            proxy.judge = always("pass")
            made = [await unaware.put(reservation(f"made-{n}")) for n in range(60)]
            later = opened(cluster.url)
            for cpu, store in enumerate((noticed, unaware, later), start=3):
                listed = await store.list(KIND)
                assert len(listed.items) == 1 + len(made)
                for since in (listing.revision, rv(lost[-1]), rv(first)):
                    with pytest.raises(Compacted):
                        await soon(anext(store.watch(KIND, since)))
                with pytest.raises(Conflict):
                    await store.put(stale, expect=rv(stale))
                put = await store.put(with_cpu(listed.items[0], str(cpu)), expect=rv(listed.items[0]))
                assert [event.object for event in await take(noticed, KIND, listed.revision, 1)] == [put]
            for store in (noticed, unaware, later):
                await store.close()


@pytest.mark.slow
async def test_a_restore_that_is_noticed_late_ends_watches_everywhere(tmp_path: Path) -> None:
    """A manager that was cut off has sent changes that are lost; others have not heard of it until it comes back."""
    with running(tmp_path, count=1) as cluster:
        async with proxied(cluster.endpoints[0]) as proxy:
            store = opened(f"etcd://{proxy.address}")
            for n in range(5):
                await store.put(reservation(f"lost-{n}"))
            since = (await store.list(KIND)).revision
            proxy.judge = always("lose request")
            proxy.cut()
            cluster.kill(0)
            shutil.rmtree(cluster.members[0].folder / "data")
            await asyncio.to_thread(cluster.restart, 0)
            other = opened(cluster.url)
            for n in range(50):
                await other.put(reservation(f"kept-{n}"))
            proxy.judge = always("pass")
            assert names(await store.list(KIND)) == names(await other.list(KIND))
            for each in (store, other):
                with pytest.raises(Compacted):
                    await soon(anext(each.watch(KIND, since)))
            await store.close()
            await other.close()


@pytest.mark.slow
async def test_an_etcd_that_was_put_back_and_has_overtaken_us_is_noticed(tmp_path: Path) -> None:
    """A manager that was cut off meanwhile must not answer from two pasts."""
    with running(tmp_path, count=1) as cluster:
        async with proxied(cluster.endpoints[0]) as proxy:
            store = opened(f"etcd://{proxy.address}")
            for n in range(5):
                await store.put(reservation(f"lost-{n}"))
            watch = store.watch(KIND, (await store.list(KIND)).revision)
            missing = asyncio.ensure_future(anext(watch))  # noqa: TID251
            await asyncio.sleep(0)
            proxy.judge = always("lose request")
            proxy.cut()
            cluster.kill(0)
            shutil.rmtree(cluster.members[0].folder / "data")
            await asyncio.to_thread(cluster.restart, 0)
            other = opened(cluster.url)
            for n in range(50):
                await other.put(reservation(f"kept-{n}"))
            proxy.judge = always("pass")
            assert names(await store.list(KIND)) == names(await other.list(KIND))
            with pytest.raises(Compacted):
                await soon(missing)
            await store.close()
            await other.close()
