"""Three etcds in network namespaces that cannot hear each other for a while."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from j10ce.store.etcd.address import read_address
from j10ce.store.etcd.elector import etcd_elector
from j10ce.store.etcd.gateway import Gateway
from j10ce.store.etcd.store import EtcdStore
from j10ce.store.etcd.wire import Keyspace
from j10ce.store.store import Store
from j10ce.testing.build import WALL, reservation
from j10ce.testing.conformance_store import KIND, soon
from tests.etcd.chaos import KEYS, Fault, torture
from tests.etcd.cluster import Cluster
from tests.etcd.history import is_linearizable
from tests.etcd.network import Network, bridged

pytestmark = pytest.mark.host


@pytest.fixture
def network() -> Iterator[Network]:
    with bridged(3) as network:
        yield network


@pytest.fixture
def cluster(network: Network, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, network.hosts)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
async def stores(cluster: Cluster) -> AsyncIterator[list[Store]]:
    """One that prefers each member: its list of endpoints begins there."""
    opened: list[Store] = []
    for n in range(3):
        store = EtcdStore(read_address(cluster.url), lambda: WALL, patience_s=30)
        store._gateway._at = n
        opened.append(store)
    yield opened
    for store in opened:
        await store.close()


async def test_reads_and_writes_leave_a_member_that_is_alone(
    stores: list[Store], cluster: Cluster, network: Network
) -> None:
    for store in stores:
        await store.put(reservation("db", cpu="1"))
    lonely = await asyncio.to_thread(cluster.leader)
    network.isolate(lonely)
    made = await stores[lonely].put(reservation("db", cpu="2"))
    for store in stores:
        assert await store.get(KIND, "default", "db") == made


async def test_a_watch_leaves_a_member_that_is_alone(stores: list[Store], cluster: Cluster, network: Network) -> None:
    lonely = 0
    watch = stores[lonely].watch(KIND, (await stores[lonely].list(KIND)).revision)
    await stores[1].list(KIND)
    network.isolate(lonely)
    made = await stores[1].put(reservation("db"))
    assert (await soon(anext(watch))).object == made, "the store has to look for another member by itself"


async def test_partitions_do_not_break_the_order_of_things(
    stores: list[Store], cluster: Cluster, network: Network
) -> None:
    def parted(choose: Fault) -> Fault:
        async def fault(cluster: Cluster, chance: random.Random) -> None:
            await choose(cluster, chance)
            await asyncio.sleep(chance.uniform(1.0, 4.0))
            network.heal()

        return fault

    async def leader_alone(cluster: Cluster, chance: random.Random) -> None:
        network.isolate(await asyncio.to_thread(cluster.leader))

    async def one_line(cluster: Cluster, chance: random.Random) -> None:
        network.part(*chance.sample(range(3), 2))

    async def nobody(cluster: Cluster, chance: random.Random) -> None:
        for n in range(3):
            network.isolate(n)

    faults = [parted(fault) for fault in (leader_alone, one_line, nobody, leader_alone)]
    notes = await torture(stores, cluster, faults, seed=2)
    assert notes.count("ok") > 100
    for key in KEYS:
        assert is_linearizable(notes.histories[key]), key


async def test_a_leader_without_etcd_stops_before_another_starts(cluster: Cluster, network: Network) -> None:
    """Each candidate knows one member only, so that parting the member parts the candidate."""
    events: list[tuple[str, str]] = []
    working = asyncio.Event()
    gateways = [Gateway(read_address(f"etcd://{endpoint}"), patience_s=1) for endpoint in cluster.endpoints]
    electors = [etcd_elector(gateway, Keyspace("/test"), str(n), ttl_s=3) for n, gateway in enumerate(gateways)]

    async def work(n: int) -> None:
        events.append(("begin", str(n)))
        working.set()
        try:
            await asyncio.Event().wait()
        finally:
            events.append(("end", str(n)))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(elector.lead(lambda n=n: work(n))) for n, elector in enumerate(electors)]  # type: ignore[misc]
        for _ in range(2):
            async with asyncio.timeout(60):
                await working.wait()
            working.clear()
            (leader,) = (n for n, elector in enumerate(electors) if elector.leader)
            network.isolate(leader)
            async with asyncio.timeout(60):
                await working.wait()
            assert not electors[leader].leader
            network.heal()
            working.set()
        for task in tasks:
            task.cancel()
    for gateway in gateways:
        await gateway.close()
    assert [kind for kind, _ in events] == ["begin", "end"] * (len(events) // 2), events
    assert len(events) >= 6
