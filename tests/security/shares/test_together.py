"""Requests of one caller that are under way together: what each of them takes counts for all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from j10ce.manager.api import place
from j10ce.manager.fairness import desks
from j10ce.manager.fairness.desks import Desks
from j10ce.manager.fairness.metered import Meter, Metered
from j10ce.manager.fairness.rate_limits import Limits
from j10ce.manager.grpc.proto import actions_pb2 as actions
from j10ce.scheduler.cluster import Cluster
from j10ce.scheduler.place.demand import Request
from j10ce.scheduler.place.place import PlaceDecision
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL
from tests.manager.assembled import BASE, assemble
from tests.manager.grpc.both import running
from tests.manager.grpc.test_access import enrolled as enrolled_over_grpc
from tests.security.shares.test_shares import EDITOR, Hand, burn, enrolled

MANY = 12
WORKLOAD = {"apiVersion": "j10ce.io/v1alpha1", "kind": "Workload", "metadata": {"name": "w"}, "spec": {}}


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who was placed; each takes far more than a caller's share."""
    names: list[str] = []
    choose = place.place

    def dear(wanted: Request, cluster: Cluster) -> PlaceDecision:
        names.append(wanted.name)
        burn(0.5)
        return choose(wanted, cluster)

    monkeypatch.setattr(place, "place", dear)
    return names


async def test_requests_whose_bodies_end_together_are_not_all_worked_on(decided: list[str]) -> None:
    """Each had its turn while nobody knew what the others would take."""
    manager = assemble(MemoryStore(lambda: WALL), places=True, clock=Hand())
    begun, all_begun = 0, asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        nonlocal begun
        yield b"{"
        begun += 1
        if begun == MANY:
            all_begun.set()
        await all_begun.wait()
        yield b'"apiVersion":"j10ce.io/v1alpha1","kind":"Workload","metadata":{"name":"w"},"spec":{}}'

    async with asyncio.TaskGroup() as group, await enrolled(manager, "eve", "viewer") as eve:
        view = group.create_task(manager.view.run())
        await manager.view.ready()
        path, sent = f"{BASE}/namespaces/default/placements?dryRun=All", {"content-type": "application/json"}
        asked = [group.create_task(eve.post(path, content=body(), headers=sent)) for _ in range(MANY)]
        answers = [await one for one in asked]
        view.cancel()
    assert decided == ["w"]
    assert Counter(answer.status_code for answer in answers) == {200: 1, 429: MANY - 1}
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert "what eve asks takes more than 25% of our time" in refused.json()["message"]


async def test_calls_whose_messages_come_together_are_not_all_worked_on(decided: list[str], tmp_path: Path) -> None:
    async with running(tmp_path / "audit", clock=Hand()) as both:
        eve = await enrolled_over_grpc(both, "eve", role="viewer")
        raw = actions.PlaceRequest(dry_run=True)
        raw.workload.metadata.name, raw.workload.metadata.namespace = "w", "default"
        calls = [both.channel.stream_unary("/j10ce.v1alpha1.PlacementService/Place")(metadata=eve) for _ in range(MANY)]
        await asyncio.sleep(0.2)  # all have had their turn
        for call in calls:
            await call.write(raw.SerializeToString())
            await call.done_writing()
        codes = Counter([await call.code() for call in calls])
    assert decided == ["w"]
    assert codes == {grpc.StatusCode.OK: 1, grpc.StatusCode.RESOURCE_EXHAUSTED: MANY - 1}


async def test_what_a_request_has_used_counts_before_it_is_over() -> None:
    share = Limits(Hand())
    meter = Meter(share, EDITOR, writes=True)
    over = asyncio.Event()

    async def work() -> None:
        await meter.begin()
        burn(0.5)
        await over.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(waited(Metered(work(), meter)))
        await asyncio.sleep(0)
        with pytest.raises(Exception, match="takes more than 25% of our time"):
            await Meter(share, EDITOR, writes=True).begin()
        over.set()


async def waited(work: Metered[None]) -> None:
    await work


@pytest.mark.parametrize(("short", "together"), [(False, desks.MOST_TOGETHER), (True, 1)])
async def test_few_requests_of_one_caller_are_worked_on_together(short: bool, together: int) -> None:
    """One where its time is nearly used up; whoever came first is next, and who gives up stands in nobody's way."""
    kept, order, go = Desks(), list[int](), asyncio.Semaphore(0)

    async def one(n: int) -> None:
        await kept.begin("eve", lambda: short, lambda: 0.0)
        order.append(n)
        await go.acquire()
        kept.end("eve")

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(n)) for n in range(8)]
        await turns()
        assert order == list(range(together))
        tasks[together].cancel()
        await turns()
        go.release()
        await turns()
        assert order == [*range(together), together + 1]
        await kept.begin("alice", lambda: short, lambda: 0.0)
        kept.end("alice")
        for _ in tasks:
            go.release()
    assert len(kept) == 0


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
