"""Which generation of a policy is in force: one answer, whoever asks, whatever was refused, whoever leads."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from j10ce.manager.api.place import Placements
from j10ce.manager.api.place_policy import Terms
from j10ce.manager.identity import SYSTEM, Act, acting
from j10ce.manager.keepers.overcommit import held_policies, withheld
from j10ce.model.kinds import Lending, MinimalReservationPolicy, PolicyRevision, Rollout
from j10ce.model.quantity import Duration, Quantity
from j10ce.policy.lifetime import admitted, in_force
from j10ce.scheduler.book.pledged import pledge_of
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import minimum, reservation
from tests.manager.keepers.world import Agent, Clock, Manager, condition, edit, numbers, placed, running, stored
from tests.scheduler.place.fleet import workload

DB = "MinimalReservationPolicy/default/db"
EDITS = 12  # more than the history keeps


async def two_units(manager: Manager, store: MemoryStore) -> Agent:
    """`db` holds two CPUs of four on n0."""
    agent = Agent("n0")
    await agent.report(manager)
    await store.put(reservation("db", cpu="1", units=2, labels={"app": "db"}))
    for _ in range(2):
        await manager.round()
        await agent.report(manager)
    assert placed(manager.policy("db")) == {"n0": 2}
    return agent


async def refused_edit(manager: Manager, store: MemoryStore, agent: Agent) -> None:
    await edit(store, "db", units=200, minimum=minimum(cpu="64", memory="1000Gi"))
    for _ in range(2):
        await manager.round()
        await agent.report(manager)
    assert condition(manager.policy("db"), "Admitted").status == "False"


async def test_everyone_who_asks_gets_the_generation_that_was_admitted(manager: Manager, store: MemoryStore) -> None:
    await refused_edit(manager, store, await two_units(manager, store))
    policy = manager.policy("db")
    (document,) = manager.document("n0").policies
    assert (document.metadata.generation, str(document.spec.minimum.cpu)) == (1, "1")
    assert manager.document("n0").units == {DB: 2}
    (held,) = Placements(store, manager.view, lambda: manager.wall).cluster().policies
    assert (str(held.minimum.cpu), dict(held.unused)) == ("1", {0: 2})
    assert withheld(manager.node("n0"), held_policies(manager.view)).cpu == 2000
    pledge = pledge_of(policy, manager.view.documents.revisions(policy), manager.wall)
    assert pledge is not None
    assert (pledge.shape.cpu, dict(pledge.units)) == (1000, {"n0": 2})
    for asked in (in_force, admitted):
        answers = asked(policy, manager.view.documents.revisions(policy))
        assert answers is not None
        assert (answers.metadata.generation, answers.spec.units) == (1, 2)


async def test_a_workload_finds_its_unit_after_an_edit_was_refused(manager: Manager, store: MemoryStore) -> None:
    await refused_edit(manager, store, await two_units(manager, store))
    places = Placements(store, manager.view, lambda: manager.wall)
    with acting(Act(SYSTEM)):
        places.enter("default", dry=False)
        placement = await places.place(workload("db-0", labels={"app": "db"}), Terms())
    assert (placement.node, placement.stands_on) == ("n0", DB)


async def test_a_node_lends_what_is_not_held_after_an_edit_was_refused(manager: Manager, store: MemoryStore) -> None:
    agent = await two_units(manager, store)
    used = {"memory": {"usage": agent.capacity["cpu"]}}
    await agent.report(manager, demand=used)
    await manager.round()
    before = manager.node("n0").status.overcommit["batch-memory"]
    await refused_edit(manager, store, agent)
    await agent.report(manager, demand=used)
    await manager.round()
    assert manager.node("n0").status.overcommit["batch-memory"] == before
    assert before.amount


async def test_any_number_of_refused_edits_leaves_what_was_admitted(store: MemoryStore, clock: Clock) -> None:
    agent = Agent("n0")
    async with running(manager := Manager(store, clock)):
        await agent.report(manager)
        await store.put(reservation("db", cpu="1", units=2))
        await manager.round()
        await edit(store, "db", minimum=minimum(cpu="1500m"), rollout=Rollout(canary_percent=60))
        for _ in range(2):
            await manager.round()
            await agent.report(manager)
        assert (manager.policy("db").status.admitted_generation, manager.policy("db").status.rollout.stable) == (2, 1)
        for n in range(EDITS):
            await edit(store, "db", units=100 + n)
            await manager.round()
        assert {1, 2} <= set(numbers(await stored(store, PolicyRevision)))
        assert [p.metadata.generation for p in manager.document("n0").policies] in ([1], [2])
    async with running(successor := Manager(store, clock)):
        await agent.report(successor)
        await store.put(reservation("greedy", cpu="4", units=1))
        for _ in range(3):
            await successor.round()
            await agent.report(successor)
        assert successor.policy("db").status.admitted_generation == 2
        assert placed(successor.policy("db")) == {"n0": 2}
        assert condition(successor.policy("greedy"), "Admitted").status == "False"


async def test_what_is_admitted_is_in_the_history_first(manager: Manager, store: MemoryStore) -> None:
    """A leader that dies at the worst moment leaves nothing that its successor could not know."""
    await Agent("n0").report(manager)
    await store.put(reservation("db", cpu="1", units=2))
    await manager.caught_up()
    await manager._judged().round(manager.wall)
    (policy,) = await stored(store, MinimalReservationPolicy)
    assert policy.status.admitted_generation == 1
    assert numbers(await stored(store, PolicyRevision)) == [1]


class Sleeping:
    """A store as a leader has it that is stopped right before it writes a status."""

    def __init__(self, store: MemoryStore) -> None:
        self._store, self.asleep, self.wake = store, asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def put(self, *given: Any, **more: Any) -> Any:
        self.asleep.set()
        await self.wake.wait()
        return await self._store.put(*given, **more)


async def test_what_a_leader_that_was_stopped_writes_late_lasts_until_its_successor_looks(
    store: MemoryStore, clock: Clock
) -> None:
    agent = Agent("n0", cpu="2")
    async with running(first := Manager(store, clock), successor := Manager(store, clock)):
        await store.put(reservation("db", cpu="3", units=1))
        await agent.report(first)
        await first.round()
        condition_now = condition(first.policy("db"), "Admitted")
        assert condition_now.status == "False"
        agent.capacity["cpu"] = Quantity.parse("4211m")
        await agent.report(first)
        judge, stopped = first._judged(), Sleeping(store)
        judge._store = stopped  # type: ignore[assignment]
        async with asyncio.TaskGroup() as group:
            group.create_task(judge.round(first.wall))
            await stopped.asleep.wait()
            agent.capacity["cpu"] = Quantity.parse("2")
            await agent.report(successor)
            await successor.round()
            assert condition(successor.policy("db"), "Admitted") == condition_now
            stopped.wake.set()
        await successor.caught_up()
        assert condition(successor.policy("db"), "Admitted").status == "True"
        await successor.round()
        assert condition(successor.policy("db"), "Admitted").message == condition_now.message
        assert successor.document("n0").units == {}


async def test_a_refused_edit_changes_lending_and_end_for_every_leader_alike(store: MemoryStore, clock: Clock) -> None:
    agent = Agent("n0")
    lent = Lending(mode="Reclaimable")
    async with running(manager := Manager(store, clock)):
        await agent.report(manager)
        await store.put(reservation("db", cpu="1", memory="1Gi", units=2))
        await manager.round()
        await edit(store, "db", units=99, lending=lent, ttl=Duration(3600))
        agent.best_effort = "15Gi"
        await agent.report(manager)
        clock.wait(10)
        await manager.round()
        in_office = manager.policy("db")
        (document,) = manager.document("n0").policies
    assert in_office.status.units.lent == 1
    assert (document.metadata.generation, document.spec.lending, document.spec.ttl) == (1, lent, Duration(3600))
    async with running(successor := Manager(store, clock)):
        await agent.report(successor)
        await successor.round()
        assert successor.policy("db").status.units == in_office.status.units


async def test_a_canary_stops_on_failures_also_while_a_later_edit_is_refused(
    manager: Manager, store: MemoryStore
) -> None:
    agent = await two_units(manager, store)
    await edit(store, "db", minimum=minimum(cpu="1100m"), rollout=Rollout())
    for _ in range(2):
        await manager.round()
        await agent.report(manager)
    assert manager.document("n0").policies[0].metadata.generation == 2
    await edit(store, "db", units=200, rollout=UNSET)
    agent.failing = {DB: "cpu.weight was refused"}
    for _ in range(3):
        await manager.round()
        await agent.report(manager)
    assert "cpu.weight was refused" in manager.policy("db").status.rollout.stopped
    assert manager.document("n0").policies[0].metadata.generation == 1


async def test_a_floor_without_units_stays_when_the_units_of_its_edit_are_refused(
    manager: Manager, store: MemoryStore
) -> None:
    agent = Agent("n0")
    await agent.report(manager)
    await store.put(reservation("db", cpu="1"))
    await manager.round()
    await edit(store, "db", units=50, minimum=minimum(cpu="3"))
    for _ in range(2):
        await manager.round()
        await agent.report(manager)
    (document,) = manager.document("n0").policies
    assert (document.metadata.generation, str(document.spec.minimum.cpu)) == (1, "1")
    assert replace(manager.policy("db").status, conditions=()).admitted_generation == 1


async def test_what_a_leader_of_yesterday_wrote_is_put_right(manager: Manager, store: MemoryStore) -> None:
    """A status is written under the revision of the policy: a deposed leader may write what it knew, once."""
    agent = await two_units(manager, store)
    right = manager.policy("db").status
    stale = replace(right, witness=(), units=replace(right.units, placed=0), admitted_generation=1)
    await store.put(replace(manager.policy("db"), status=stale), part="status")
    await agent.report(manager)
    await manager.round()
    assert manager.policy("db").status.witness == right.witness
    assert manager.document("n0").units == {DB: 2}
