"""The Policy Manager writes what the fleet decides, and a leader that takes over goes on from what is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from j10ce.manager.documents.view import View
from j10ce.manager.policies.history import keep_history
from j10ce.manager.policies.keeper import judge_policies
from j10ce.model.kinds import Meta, MinimalReservationPolicy, NodeQoS
from j10ce.store.memory import MemoryStore
from j10ce.store.store import Store
from j10ce.testing.build import WALL, reservation
from tests.reservations.objects import node

LONG_S = 150.0  # a wait that ends by an event, never by this


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    made = MemoryStore(lambda: WALL)
    for name in ("a", "b"):
        await made.put(NodeQoS(metadata=Meta(name=name)))
        await made.put(node(name), part="status")
    yield made
    await made.close()


@asynccontextmanager
async def leader(store: Store) -> AsyncIterator[View]:
    view = View(store)
    async with asyncio.TaskGroup() as group:
        keeping = [
            group.create_task(view.run()),
            group.create_task(keep_history(store, view)),
            group.create_task(judge_policies(store, view, lambda: WALL, namespace_limit=100)),
        ]
        yield view
        for task in keeping:
            task.cancel()


async def judged(view: View, name: str, test: Callable[[MinimalReservationPolicy], bool]) -> MinimalReservationPolicy:
    """The policy as soon as its status passes."""
    async with asyncio.timeout(LONG_S):
        while True:
            epoch = view.objects.epoch
            for policy in view.all(MinimalReservationPolicy):
                if policy.metadata.name == name and test(policy):
                    return policy
            await view.objects.moved(epoch)


def decided(policy: MinimalReservationPolicy) -> bool:
    return any(
        c.type == "Admitted" and c.observed_generation == policy.metadata.generation for c in policy.status.conditions
    )


async def test_the_witness_and_the_refusal_are_written(store: Store) -> None:
    await store.put(reservation("db", units=2, cpu="3", created=WALL - 60))
    async with leader(store) as view:
        db = await judged(view, "db", decided)
        assert [(w.node, w.units) for w in db.status.witness] == [("a", 1), ("b", 1)]
        assert (db.status.units.placed, db.status.admitted_generation) == (2, 1)
        await store.put(reservation("web", units=1, cpu="2"))
        web = await judged(view, "web", decided)
        assert (web.status.phase, web.status.conditions[0].reason, web.status.witness) == ("Pending", "NoRoom", ())


async def test_a_refused_edit_survives_a_change_of_leader(store: Store) -> None:
    made = await store.put(reservation("db", units=2, cpu="3"))
    async with leader(store) as view:
        first = await judged(view, "db", decided)
        assert isinstance(made, MinimalReservationPolicy)
        await store.put(replace(first, spec=replace(first.spec, units=3)))
        refused = await judged(view, "db", lambda p: p.metadata.generation == 2 and decided(p))
        assert refused.status.conditions[0].status == "False"
        assert (refused.status.admitted_generation, refused.status.witness) == (1, first.status.witness)
    async with leader(store) as view:
        await store.put(reservation("web", units=1, cpu="1"))
        await judged(view, "web", lambda p: p.status.admitted_generation == 1)
        again = await judged(view, "db", decided)
        assert (again.status.admitted_generation, again.status.witness) == (1, first.status.witness)
        assert again.status.units.placed == 2
