"""What every shared store's elector must do. Its test class inherits this and gives two fixtures.

class TestMine(ElectorConformance):
    @pytest.fixture
    def elect(self) -> Elect: ...  # an elector for a name, on one and the same store

    @pytest.fixture
    def steal(self) -> Steal: ...  # takes the claim away from whoever holds it
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from j10ce.store.elector import Elector

FOREVER_S = 3600  # a claim that does not run out in a test
SHORT_S = 3
LONG_S = 60.0  # a wait that ends by an event, never by this


Elect = Callable[[str, int], Elector]  # a name, and the claim's time to live in seconds
Steal = Callable[[], Awaitable[None]]


class Candidate:
    """An elector with work that notes when it begins and ends."""

    def __init__(self, elector: Elector) -> None:
        self.elector = elector
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()

    async def lead(self) -> None:
        await self.elector.lead(self._work)

    async def _work(self) -> None:
        self.ended.clear()
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.begun.clear()
            self.ended.set()


async def first(*candidates: Candidate) -> Candidate:
    """Whoever is at work first."""
    async with asyncio.timeout(LONG_S), asyncio.TaskGroup() as group:
        waits = {group.create_task(candidate.begun.wait()): candidate for candidate in candidates}
        done, others = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
    return waits[done.pop()]


class ElectorConformance:
    async def test_one_leads_and_a_leader_that_stops_hands_over_at_once(self, elect: Elect) -> None:
        candidates = [Candidate(elect(name, FOREVER_S)) for name in ("a", "b", "c")]
        async with asyncio.TaskGroup() as group:
            tasks = {c.elector: group.create_task(c.lead()) for c in candidates}
            leaders = []
            while candidates:
                leader = await first(*candidates)
                candidates.remove(leader)
                assert leader.elector.leader
                assert not any(other.begun.is_set() or other.elector.leader for other in candidates)
                leaders.append(leader.elector.holder)
                tasks[leader.elector].cancel()  # with an hour of its claim left
                await asyncio.wait([tasks[leader.elector]])
                assert leader.ended.is_set()
                assert not leader.elector.leader
        assert sorted(leaders) == ["a", "b", "c"]

    async def test_followers_know_who_leads(self, elect: Elect) -> None:
        leader, follower = (Candidate(elect(name, FOREVER_S)) for name in ("a", "b"))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(leader.lead())]
            await first(leader)
            tasks.append(group.create_task(follower.lead()))
            async with asyncio.timeout(LONG_S):
                while follower.elector.holder != "a":  # noqa: ASYNC110  an attribute cannot be waited for
                    await asyncio.sleep(0.01)
            assert not follower.elector.leader
            for task in tasks:
                task.cancel()

    async def test_a_lost_claim_ends_the_work_and_is_fought_for_again(self, elect: Elect, steal: Steal) -> None:
        mine = Candidate(elect("a", SHORT_S))
        async with asyncio.TaskGroup() as group:
            leading = group.create_task(mine.lead())
            await first(mine)
            await steal()
            async with asyncio.timeout(LONG_S):
                await mine.ended.wait()
            await first(mine)
            assert mine.elector.leader
            leading.cancel()

    async def test_work_that_raises_ends_leadership(self, elect: Elect) -> None:
        async def work() -> None:
            raise LookupError("broken")

        broken = elect("broken", FOREVER_S)
        with pytest.raises(LookupError):
            await broken.lead(work)
        assert not broken.leader
        next_ = Candidate(elect("next", FOREVER_S))
        async with asyncio.TaskGroup() as group:
            leading = group.create_task(next_.lead())
            await first(next_)
            leading.cancel()
