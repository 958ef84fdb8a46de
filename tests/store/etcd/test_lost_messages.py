"""A write whose answer never came: found out, carried out once, or honestly reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from j10ce.errors import Closed, Conflict, NotFound, Unavailable, Unsure
from j10ce.store.etcd.address import read_address
from j10ce.store.etcd.gateway import Gateway
from j10ce.store.etcd.proto import etcd_pb2 as pb
from j10ce.store.etcd.store import EtcdStore
from j10ce.store.etcd.wire import TXN, put_op
from j10ce.store.schemes import open_store
from j10ce.store.store import ABSENT, Store
from j10ce.testing.build import WALL, reservation
from j10ce.testing.conformance_store import KIND, names, take, with_cpu
from tests.etcd.cluster import Cluster, free_ports
from tests.etcd.proxy import Fate, Proxy, always, proxied


@pytest.fixture
async def proxy(etcd: Cluster) -> AsyncIterator[Proxy]:
    async with proxied(etcd.endpoints[0]) as proxy:
        yield proxy


@pytest.fixture
async def store(proxy: Proxy, url: str) -> AsyncIterator[Store]:
    """Behind the proxy."""
    store = open_store(f"etcd://{proxy.address}/{url.rpartition('/')[2]}", lambda: WALL)
    yield store
    await store.close()


@pytest.fixture
async def other(url: str) -> AsyncIterator[Store]:
    """Another process's store, beside the proxy."""
    store = open_store(url, lambda: WALL)
    yield store
    await store.close()


LOSSES: list[Any] = ["lose request", "lose answer", "delay"]


@pytest.mark.parametrize("fate", LOSSES)
async def test_a_create_happens_once(store: Store, other: Store, proxy: Proxy, fate: Fate) -> None:
    await store.put(reservation("before"))
    since = (await other.list(KIND)).revision
    proxy.lose(fate)
    made = await store.put(reservation("db", cpu="1"), expect=ABSENT)
    assert proxy.lost.is_set()
    assert await other.get(KIND, "default", "db") == made
    await proxy.release()
    end = await other.put(reservation("end"))
    assert [event.object for event in await take(other, KIND, since, 2)] == [made, end]


@pytest.mark.parametrize("fate", LOSSES)
async def test_an_update_happens_once(store: Store, other: Store, proxy: Proxy, fate: Fate) -> None:
    made = await store.put(reservation("db", cpu="1"))
    proxy.lose(fate)
    changed = await store.put(with_cpu(made, "2"), expect=made.metadata.resource_version)
    await proxy.release()
    end = await other.put(reservation("end"))
    events = await take(other, KIND, made.metadata.resource_version, 2)
    assert [event.object for event in events] == [changed, end]


@pytest.mark.parametrize("fate", LOSSES)
async def test_a_delete_happens_once(store: Store, other: Store, proxy: Proxy, fate: Fate) -> None:
    made = await store.put(reservation("db", cpu="1"))
    proxy.lose(fate)
    gone = await store.delete(KIND, "default", "db")
    assert gone.metadata.uid == made.metadata.uid
    again = await other.put(reservation("db", cpu="1"), expect=ABSENT)
    await proxy.release()
    events = await take(other, KIND, made.metadata.resource_version, 2)
    assert [event.object for event in events] == [gone, again]
    assert await other.get(KIND, "default", "db") == again


async def test_a_create_that_comes_late_does_not_bring_a_deleted_object_back(
    store: Store, other: Store, proxy: Proxy
) -> None:
    await store.put(reservation("before"))
    proxy.lose("delay")
    await store.put(reservation("db"), expect=ABSENT)
    await other.delete(KIND, "default", "db")
    (answer,) = await proxy.release()
    assert not answer.succeeded, "the fence stops it"
    with pytest.raises(NotFound):
        await other.get(KIND, "default", "db")


@pytest.mark.parametrize("apart", [False, True])
async def test_all_of_a_lost_batch_is_found_out(store: Store, other: Store, proxy: Proxy, apart: bool) -> None:
    """Another process overtakes one of its writes after that was decided."""
    old = await store.put(reservation("old", cpu="1"))
    proxy.meanwhile = lambda: other.put(with_cpu(old, "2"))
    proxy.lose("lose answer", apart=apart)
    outcomes = await asyncio.gather(
        *(store.put(reservation(f"p-{n}"), expect=ABSENT) for n in range(10)),
        store.put(with_cpu(old, "3"), expect=old.metadata.resource_version),
        return_exceptions=True,
    )
    assert isinstance(outcomes.pop(), Conflict)
    stale = await other.get(KIND, "default", "old")
    assert stale == with_cpu(stale, "2")
    assert [*outcomes, stale] == sorted(
        (await other.list(KIND)).items, key=lambda obj: (obj == stale, obj.metadata.name)
    )


async def test_what_was_overwritten_before_it_was_known_has_happened(store: Store, other: Store, proxy: Proxy) -> None:
    made = await store.put(reservation("db", cpu="1"))
    proxy.lose("lose answer", then="lose request")
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(store.put(with_cpu(made, "2"), expect=made.metadata.resource_version))
        await proxy.lost.wait()
        last = await other.put(with_cpu(made, "3"))
        proxy.judge = always("pass")
    events = await take(other, KIND, made.metadata.resource_version, 2)
    assert [event.object for event in events] == [writing.result(), last]


async def test_a_lost_create_that_another_overtook_conflicts(store: Store, other: Store, proxy: Proxy) -> None:
    await store.put(reservation("before"))
    proxy.lose("delay", then="lose request")
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(refused(store.put(reservation("db", cpu="1"), expect=ABSENT)))
        await proxy.lost.wait()
        theirs = await other.put(reservation("db", cpu="2"), expect=ABSENT)
        proxy.judge = always("pass")
    assert isinstance(writing.result(), Conflict)
    assert await other.get(KIND, "default", "db") == theirs


async def test_silence_differs_from_doubt(store: Store, other: Store, proxy: Proxy) -> None:
    assert isinstance(store, EtcdStore)
    await store.put(reservation("before"))
    store._gateway.patience_s = 0.5
    proxy.lose("lose answer", then="lose request")
    async with asyncio.TaskGroup() as group:
        sent = group.create_task(refused(store.put(reservation("sent"))))
        await proxy.lost.wait()
        queued = group.create_task(refused(store.put(reservation("queued"))))
    assert isinstance(sent.result(), Unsure)
    assert "may or may not have happened" in str(sent.result())
    assert isinstance(queued.result(), Unavailable)
    assert names(await other.list(KIND)) == ["default/before", "default/sent"]
    store._gateway.patience_s = 60
    proxy.judge = always("pass")
    await store.put(reservation("after"))
    assert names(await other.list(KIND)) == ["default/after", "default/before", "default/sent"]


async def test_a_write_that_is_cut_off_by_the_end_of_its_store_is_in_doubt(store: Store, proxy: Proxy) -> None:
    await store.put(reservation("before"))
    proxy.lose("lose answer", then="lose request")
    async with asyncio.TaskGroup() as group:
        sent = group.create_task(refused(store.put(reservation("sent"))))
        await proxy.lost.wait()
        queued = group.create_task(refused(store.put(reservation("queued"))))
        await asyncio.sleep(0)
        await store.close()
    assert isinstance(sent.result(), Unsure)
    assert isinstance(queued.result(), Closed)


async def test_what_could_not_be_sent_did_not_happen() -> None:
    (port,) = free_ports(1)
    gateway = Gateway(read_address(f"etcd://127.0.0.1:{port}"))
    with pytest.raises(Unavailable, match="refused"):
        await gateway.once(TXN, pb.TxnRequest(success=[put_op(b"x", b"")]))
    await gateway.close()
    with pytest.raises(Closed):
        await gateway.once(TXN, pb.TxnRequest())


async def refused(work: Any) -> Exception | None:
    try:
        await work
    except Exception as e:
        return e
    return None
