"""Work that takes long is done beside the event loop: others have their turns meanwhile, and its caller pays."""

from __future__ import annotations

import asyncio
import threading

import pytest

from j10ce.http.status import Refusal
from j10ce.manager.api import place
from j10ce.manager.asgi.beside import beside
from j10ce.manager.fairness.metered import Meter
from j10ce.manager.fairness.rate_limits import Limits
from j10ce.manager.identity import Act, Caller, Role, acting
from j10ce.scheduler.cluster import Cluster
from j10ce.scheduler.place.demand import Request
from j10ce.scheduler.place.place import PlaceDecision
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL
from tests.manager.assembled import BASE, Manager, assemble
from tests.security.shares.test_shares import EDITOR, Hand, burn

ALICE, ADMIN = Caller("alice", Role.EDITOR), Caller("adm", Role.ADMIN)
WORKLOAD = {"apiVersion": "j10ce.io/v1alpha1", "kind": "Workload", "metadata": {"name": "w"}, "spec": {}}


class Work:
    """That begins, and ends when it is told to."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.may_end.wait(30)
        return "done"

    async def until_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 30)


async def of(caller: Caller, work: Work) -> str:
    with acting(Act(caller)):
        return await beside(work)


@pytest.mark.parametrize("query", ["?dryRun=All", ""])
async def test_gets_are_answered_while_a_node_is_chosen(monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    """With 1,500 policies everybody waited half a second for each who asked where a workload would fit."""
    manager: Manager = assemble(MemoryStore(lambda: WALL), places=True)
    choosing, choose = Work(), place.place

    def slowly(wanted: Request, cluster: Cluster) -> PlaceDecision:
        choosing()
        return choose(wanted, cluster)

    monkeypatch.setattr(place, "place", slowly)
    async with asyncio.TaskGroup() as group, manager.client() as api:
        view = group.create_task(manager.view.run())
        await manager.view.ready()
        asked = group.create_task(api.post(f"{BASE}/namespaces/default/placements{query}", json=WORKLOAD))
        await choosing.until_begun()
        assert (await api.get(f"{BASE}/qosprofiles")).status_code == 200
        assert not asked.done()
        choosing.may_end.set()
        assert (await asked).status_code in (200, 409), "no node has ever reported"
        view.cancel()


async def test_of_all_callers_one_is_worked_for_at_a_time_and_an_administrator_waits_for_none() -> None:
    first, second, other, admins = Work(), Work(), Work(), Work()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(of(caller, work)) for caller, work in ((EDITOR, first), (EDITOR, second))]
        await first.until_begun()
        tasks.append(group.create_task(of(ALICE, other)))
        tasks.append(group.create_task(of(ADMIN, admins)))
        await admins.until_begun()
        assert not second.begun.is_set()
        assert not other.begun.is_set()
        first.may_end.set()
        await other.until_begun()
        assert not second.begun.is_set(), "one of a caller is in the queue"
        for work in (second, other, admins):
            work.may_end.set()
    assert [task.result() for task in tasks] == ["done"] * 4


async def test_whoever_gives_up_pays_for_what_was_begun_and_has_one_thread() -> None:
    share, act, working = Limits(Hand()), Act(EDITOR), Work()
    act.meter = Meter(share, EDITOR, writes=True)

    def work() -> None:
        working()
        burn(0.5)

    async def asked() -> None:
        with acting(act):
            await beside(work)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(asked())
        await working.until_begun()
        task.cancel()
        next_ = Work()
        later = group.create_task(of(EDITOR, next_))
        await asyncio.sleep(0)
        assert not next_.begun.is_set()
        working.may_end.set()
        await next_.until_begun()
        next_.may_end.set()
    assert (task.cancelled(), later.result()) == (True, "done")
    with pytest.raises(Refusal, match="takes more than 25% of our time"):
        act.meter.ask()
