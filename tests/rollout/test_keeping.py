"""What the leader does about policies by itself: a write per change, the stable revision kept, the expired removed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from time import perf_counter
from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.daemon.pace import TURN_S, unhurried
from j10ce.errors import StoreError
from j10ce.manager.documents.view import View
from j10ce.manager.keepers.expiry import KEPT_S, Overdue, ends, look, tidy
from j10ce.manager.policies.admission import Decision
from j10ce.manager.policies.history import KEPT, keep_history
from j10ce.manager.policies.keeper import Judge
from j10ce.manager.policies.reservations import Reservations
from j10ce.model.kinds import (
    Hold,
    Meta,
    MinimalReservationPolicy,
    NodeQoS,
    NodeQoSStatus,
    NodeReport,
    Object,
    PolicyRevision,
    PolicyStatus,
    QoSProfile,
    Rollout,
)
from j10ce.model.parts.progress import RolloutStatus
from j10ce.policy.document.document import Policy
from j10ce.policy.lifetime import revision_of
from j10ce.store.memory import MemoryStore
from j10ce.store.store import Store
from j10ce.testing.build import WALL, hold, profile, reservation
from tests.hearing import Roster


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    made = MemoryStore(lambda: WALL)
    yield made
    await made.close()


async def revision(store: Store, kind: str, name: str) -> str:
    items = (await store.list(kind)).items
    return next(obj.metadata.resource_version for obj in items if obj.metadata.name == name)


async def beside(*works: Awaitable[None], do: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]  # type: ignore[arg-type]
        await asyncio.wait_for(do(), 30)
        for task in tasks:
            task.cancel()


async def test_a_round_writes_each_status_once_and_a_second_one_nothing(store: Store) -> None:
    view = View(store)
    judge = Judge(store, view, Reservations(Roster()))

    async def scene() -> None:
        await store.put(profile("web"))
        await store.put(reservation("db", cpu="1"))
        await store.put(NodeQoS(metadata=Meta(name="n1")))
        await view.ready()
        await seen(view, lambda: len(view.all(NodeQoS)) == 1)
        with view.heard(judge.reports.take):
            await judge.round(WALL)
            await seen(view, lambda: all(p.status.observed_generation for p in view.all(QoSProfile)))
            await seen(view, lambda: all(p.status.observed_generation for p in view.all(MinimalReservationPolicy)))
            written = [("QoSProfile", "web"), ("MinimalReservationPolicy", "db")]
            before = [await revision(store, *what) for what in written]
            await judge.round(WALL + 1)
            await judge.round(WALL + 2)
            assert [await revision(store, *what) for what in written] == before

    await beside(view.run(), do=scene)


async def test_a_heartbeat_makes_no_work_for_policies(store: Store) -> None:
    view = View(store)
    judge = Judge(store, view, Reservations(Roster()))

    def node(heard: float) -> NodeQoS:
        report = NodeReport(heartbeat=datetime.fromtimestamp(heard, UTC), document=view.documents.of("n1").hash)
        return NodeQoS(metadata=Meta(name="n1"), status=NodeQoSStatus(node=report))

    async def scene() -> None:
        await store.put(profile("web"))
        await store.put(NodeQoS(metadata=Meta(name="n1")))
        await view.ready()
        await seen(view, lambda: len(view.all(QoSProfile)) == len(view.all(NodeQoS)) == 1)
        with view.heard(judge.reports.take):
            writes = set()
            for n in range(3):
                await store.put(node(WALL + n), part="status")
                await seen(view, lambda n=n: view.all(NodeQoS)[0].status == node(WALL + n).status)  # type: ignore[misc]
                await judge.round(WALL + n)
                await seen(view, lambda: view.all(QoSProfile)[0].status.nodes.applied == 1)
                writes.add(await revision(store, "QoSProfile", "web"))
            assert len(writes) == 1

    await beside(view.run(), do=scene)


class Counted(Judge):
    """Counts judgements."""

    judgements = 0

    def _status(self, policy: Policy, wall: float) -> PolicyStatus:
        self.judgements += 1
        return super()._status(policy, wall)


async def test_what_the_judge_wrote_itself_is_not_judged_again(store: Store) -> None:
    view = View(store)
    judge = Counted(store, view, Reservations(Roster()))

    async def scene() -> None:
        await store.put(reservation("db", cpu="1"))
        await view.ready()
        await seen(view, lambda: len(view.all(MinimalReservationPolicy)) == 1)
        with view.heard(judge.reports.take):
            await judge.round(WALL)
            await seen(view, lambda: bool(view.all(MinimalReservationPolicy)[0].status.observed_generation))
            await judge.round(WALL + 1)
            assert judge.judgements == 1
            await store.put(reservation("db", cpu="2"))
            await seen(view, lambda: view.all(MinimalReservationPolicy)[0].metadata.generation == 2)
            await judge.round(WALL + 2)
            assert judge.judgements == 2

    await beside(view.run(), do=scene)


class Slow(Reservations):
    """Takes as long as a test wants."""

    go_on = threading.Event()

    def weigh(self, *given: Any) -> Mapping[str, Decision]:
        assert self.go_on.wait(30), "nobody else had a turn"
        return super().weigh(*given)


async def test_a_fleet_that_takes_long_to_decide_keeps_nobody_waiting(store: Store) -> None:
    """The event loop carries requests, and the lease that the leader leads by."""
    view, fleet = View(store), Slow(Roster())

    async def scene() -> None:
        await view.ready()
        async with asyncio.TaskGroup() as group:
            group.create_task(Judge(store, view, fleet).round(WALL))
            await asyncio.sleep(0)
            await store.put(reservation("db", cpu="1"))
            fleet.go_on.set()

    await beside(view.run(), do=scene)


async def test_others_have_their_turn_in_a_long_round() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def scene() -> None:
        async for before in unhurried([0, 1, 2]):
            assert turns >= before
            until = perf_counter() + TURN_S
            while perf_counter() < until:
                pass

    await beside(others(), do=scene)
    assert turns >= 3


async def seen(view: View, holds: Callable[[], bool]) -> None:
    while not holds():
        await view.objects.moved(view.objects.epoch)


async def test_the_stable_revision_is_kept_however_old_it_is(store: Store) -> None:
    async def numbers() -> list[int]:
        return sorted(r.revision for r in (await store.list("PolicyRevision")).items if isinstance(r, PolicyRevision))

    async def until(wanted: list[int]) -> None:
        while await numbers() != wanted:
            await anext(store.watch("PolicyRevision", (await store.list("PolicyRevision")).revision))

    async def scene() -> None:
        made = await store.put(reservation("db", cpu="1"))
        assert isinstance(made, MinimalReservationPolicy)
        await until([1])
        status = replace(made.status, rollout=RolloutStatus(revision=1, stable=1))
        await store.put(replace(made, status=status), part="status")
        for n in range(2, KEPT + 5):
            await store.put(reservation("db", cpu=str(n), rollout=Rollout(canary_percent=1)))
            await until([1, *range(max(2, n - KEPT + 1), n + 1)])
        last = await store.get("MinimalReservationPolicy", "default", "db")
        moved = replace(status, rollout=RolloutStatus(revision=KEPT + 4, stable=KEPT + 4))
        await store.put(replace(last, status=moved), part="status")  # type: ignore[arg-type]
        await until([*range(5, KEPT + 5)])
        await store.delete("MinimalReservationPolicy", "default", "db")
        await until([])

    view = View(store)
    await beside(view.run(), keep_history(store, view), do=scene)


class Recording(MemoryStore):
    """Notes what it was asked to write."""

    def __init__(self) -> None:
        super().__init__(lambda: WALL)
        self.asked: list[str] = []

    async def put(self, obj: Object, **how: Any) -> Object:
        self.asked.append(f"{obj.kind} {obj.metadata.name}")
        return await super().put(obj, **how)


async def test_a_fresh_leader_does_not_record_again_what_is_in_the_history() -> None:
    store = Recording()
    view = View(store)
    old, fresh = await store.put(reservation("old", cpu="1")), reservation("fresh", cpu="1")
    assert isinstance(old, MinimalReservationPolicy)
    await store.put(revision_of(old))
    store.asked.clear()

    async def scene() -> None:
        await store.put(fresh)
        await seen(view, lambda: len(view.all(PolicyRevision)) == 2)
        assert [asked.partition("-")[0] for asked in store.asked] == [
            "MinimalReservationPolicy fresh",
            "PolicyRevision fresh",
        ]

    await beside(view.run(), keep_history(store, view), do=scene)
    await store.close()


async def test_a_hold_that_was_prolonged_meanwhile_stays(store: Store) -> None:
    old = await store.put(hold("node", "cpu.max", expires=WALL))
    assert isinstance(old, Hold)
    fresh = await store.put(hold("node", "cpu.max", expires=WALL + 9999))
    await tidy(store, old, WALL + KEPT_S, gone=True)
    assert await store.get("Hold", "j10ce-system", "hold") == fresh


class Choosy(MemoryStore):
    """Takes no status of one hold."""

    async def put(self, obj: Object, **how: Any) -> Object:
        if obj.metadata.name == "refused" and how.get("part") == "status":
            raise StoreError("not this one")
        return await super().put(obj, **how)


async def test_a_hold_that_cannot_be_tidied_does_not_keep_the_others() -> None:
    """Neither one that another release stored with a time that has no UTC, nor one that the store refuses."""
    store = Choosy(lambda: WALL)
    view = View(store)
    first, odd = hold("node", "cpu.max", expires=WALL - 1, name="refused"), hold("node", "cpu.max", name="odd")
    await store.put(first)
    earliest = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
    await store.put(replace(odd, spec=replace(odd.spec, expires=earliest)))
    await store.put(hold("node", "cpu.max", expires=WALL - 1, name="right"))

    async def scene() -> None:
        await view.ready()
        with pytest.raises(StoreError, match="not this one"):
            await look(store, view, Overdue(lambda: 0.0), WALL)
        right = await store.get("Hold", "j10ce-system", "right")
        assert isinstance(right, Hold)
        assert [c.type for c in right.status.conditions] == ["Expired"]

    await beside(view.run(), do=scene)
    await store.close()


def test_only_what_has_an_end_ends() -> None:
    assert ends(reservation("db", cpu="1", ttl="10m")) == WALL + 600
    assert ends(reservation("db", cpu="1")) == float("inf")
