"""Leadership on a real etcd: one at a time, handed over, lost, and won back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from j10ce.store.elector import Alone, ClaimElector
from j10ce.store.etcd.address import read_address
from j10ce.store.etcd.elector import etcd_elector
from j10ce.store.etcd.gateway import Gateway
from j10ce.store.etcd.proto import etcd_pb2 as pb
from j10ce.store.etcd.wire import DELETE, RANGE, REVOKE, Keyspace
from j10ce.store.memory import MemoryStore
from j10ce.store.schemes import elector_for, open_store
from j10ce.testing.build import WALL
from j10ce.testing.conformance_elector import Elect, ElectorConformance, Steal


@pytest.fixture
async def gateway(url: str) -> AsyncIterator[Gateway]:
    gateway = Gateway(read_address(url))
    yield gateway
    await gateway.close()


@pytest.fixture
def layout(url: str) -> Keyspace:
    return Keyspace(read_address(url).prefix)


class TestEtcd(ElectorConformance):
    @pytest.fixture
    def elect(self, gateway: Gateway, layout: Keyspace) -> Elect:
        return lambda name, ttl_s: etcd_elector(gateway, layout, name, ttl_s=ttl_s)

    @pytest.fixture(params=["lease", "key"])
    def steal(self, request: pytest.FixtureRequest, gateway: Gateway, layout: Keyspace) -> Steal:
        async def revoke() -> None:
            (key,) = (await gateway.ask(RANGE, pb.RangeRequest(key=layout.leader))).kvs
            await gateway.ask(REVOKE, pb.LeaseRequest(id=key.lease))

        async def delete() -> None:
            await gateway.ask(DELETE, pb.DeleteRangeRequest(key=layout.leader))

        return revoke if request.param == "lease" else delete


async def test_each_store_has_its_elector(url: str) -> None:
    store = open_store(url, lambda: WALL)
    assert isinstance(elector_for(store, "a"), ClaimElector)
    await store.close()
    assert isinstance(alone := elector_for(MemoryStore(lambda: WALL), "a"), Alone)
    assert (alone.leader, alone.holder) == (True, "a")
