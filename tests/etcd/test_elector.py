"""Leadership on a real etcd: one at a time, handed over, lost, and won back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from j10ce.store.elector import Alone
from j10ce.store.etcd_address import read_address
from j10ce.store.etcd_elector import EtcdElector
from j10ce.store.etcd_gateway import Gateway
from j10ce.store.etcd_wire import Delete, KeyValue, Layout, Lease, Nothing, Range, RangeAnswer
from j10ce.store.memory import MemoryStore
from j10ce.store.opening import elector_for, open_store
from j10ce.testing.build import WALL

FOREVER_S = 3600  # a lease that does not run out in a test
LONG_S = 60.0


class Candidate:
    """An elector with work that notes when it begins and ends."""

    def __init__(self, gateway: Gateway, layout: Layout, name: str, ttl_s: int = FOREVER_S) -> None:
        self.elector = EtcdElector(gateway, layout, name, ttl_s=ttl_s)
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()

    async def work(self) -> None:
        self.ended.clear()
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.begun.clear()
            self.ended.set()


@pytest.fixture
async def gateway(url: str) -> AsyncIterator[Gateway]:
    gateway = Gateway(read_address(url))
    yield gateway
    await gateway.close()


@pytest.fixture
def layout(url: str) -> Layout:
    return Layout(read_address(url).prefix)


async def first(*candidates: Candidate) -> Candidate:
    """Whoever is at work first."""
    async with asyncio.timeout(LONG_S), asyncio.TaskGroup() as group:
        waits = {group.create_task(candidate.begun.wait()): candidate for candidate in candidates}
        done, others = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
    return waits[done.pop()]


async def claim(gateway: Gateway, layout: Layout) -> KeyValue:
    return (await gateway.ask("kv/range", Range(layout.leader), RangeAnswer)).kvs[0]


async def test_one_leads_and_a_leader_that_stops_hands_over_at_once(gateway: Gateway, layout: Layout) -> None:
    candidates = [Candidate(gateway, layout, name) for name in ("a", "b", "c")]
    async with asyncio.TaskGroup() as group:
        tasks = {c.elector: group.create_task(c.elector.lead(c.work)) for c in candidates}
        leaders = []
        while candidates:
            leader = await first(*candidates)
            candidates.remove(leader)
            assert leader.elector.leader
            assert await leader.elector.still_leads()
            assert not any(other.begun.is_set() or other.elector.leader for other in candidates)
            leaders.append(leader.elector.holder)
            tasks[leader.elector].cancel()  # with an hour of lease left
            await asyncio.wait([tasks[leader.elector]])
            assert leader.ended.is_set()
            assert not leader.elector.leader
    assert sorted(leaders) == ["a", "b", "c"]


async def test_followers_know_who_leads(gateway: Gateway, layout: Layout) -> None:
    leader, follower = (Candidate(gateway, layout, name) for name in ("a", "b"))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(leader.elector.lead(leader.work))]
        await first(leader)
        tasks.append(group.create_task(follower.elector.lead(follower.work)))
        async with asyncio.timeout(LONG_S):
            while follower.elector.holder != "a":  # noqa: ASYNC110  an attribute cannot be waited for
                await asyncio.sleep(0.01)
        assert not await follower.elector.still_leads()
        for task in tasks:
            task.cancel()


async def test_a_lost_claim_ends_the_work_and_is_fought_for_again(gateway: Gateway, layout: Layout) -> None:
    mine = Candidate(gateway, layout, "a", ttl_s=3)
    async with asyncio.TaskGroup() as group:
        leading = group.create_task(mine.elector.lead(mine.work))
        await first(mine)
        lease = (await claim(gateway, layout)).lease
        await gateway.ask("lease/revoke", Lease(lease), Nothing)
        assert not await mine.elector.still_leads()
        async with asyncio.timeout(LONG_S):
            await mine.ended.wait()
        await first(mine)
        assert (await claim(gateway, layout)).lease != lease
        leading.cancel()


async def test_a_stolen_key_is_noticed(gateway: Gateway, layout: Layout) -> None:
    leader, thief = (Candidate(gateway, layout, name) for name in ("a", "b"))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(leader.elector.lead(leader.work))]
        await first(leader)
        await gateway.ask("kv/deleterange", Delete(layout.leader), Nothing)
        tasks.append(group.create_task(thief.elector.lead(thief.work)))
        await first(thief)
        assert not await leader.elector.still_leads()
        assert await thief.elector.still_leads()
        for task in tasks:
            task.cancel()


async def test_work_that_raises_ends_leadership(gateway: Gateway, layout: Layout) -> None:
    async def work() -> None:
        raise LookupError("broken")

    broken = EtcdElector(gateway, layout, "broken", ttl_s=FOREVER_S)
    with pytest.raises(LookupError):
        await broken.lead(work)
    assert not broken.leader
    next_ = Candidate(gateway, layout, "next")
    async with asyncio.TaskGroup() as group:
        leading = group.create_task(next_.elector.lead(next_.work))
        await first(next_)
        leading.cancel()


async def test_each_store_has_its_elector(url: str) -> None:
    store = open_store(url, lambda: WALL)
    assert isinstance(elector_for(store, "a"), EtcdElector)
    await store.close()
    assert isinstance(alone := elector_for(MemoryStore(lambda: WALL), "a"), Alone)
    assert (alone.leader, alone.holder) == (True, "a")
