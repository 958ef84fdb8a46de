"""Clocks differ: who reports is there, who died is missed, and nothing vanishes by a clock that is wrong."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.errors import Conflict, Unavailable
from j10ce.manager.api.place import Placements
from j10ce.manager.api.place_policy import Terms
from j10ce.manager.identity import SYSTEM, Act, acting
from j10ce.model.kinds import PLACEMENT_LABEL, Hold, Lending, MinimalReservationPolicy, Object, Rollout
from j10ce.model.quantity import Duration
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL, hold, reservation, selector
from tests.manager.keepers.world import Agent, Clock, Manager, condition, edit, pass_time, placed, running, stored
from tests.scheduler.place.fleet import workload

HOUR_S = 3600.0
SKEWS = [-86400.0, -60.0, 0.0, 60.0, HOUR_S]


@pytest.mark.parametrize("skew_s", SKEWS)
async def test_a_leader_with_any_clock_withdraws_nothing_from_nodes_that_report(
    store: MemoryStore, clock: Clock, skew_s: float
) -> None:
    manager, agents = Manager(store, clock, skew_s), [Agent("n0"), Agent("n1")]
    async with running(manager):
        await store.put(reservation("db", cpu="3", units=2))
        await pass_time(manager, 120, *agents)
        assert placed(manager.policy("db")) == {"n0": 1, "n1": 1}
        assert {condition(manager.node(a.name), "Ready").status for a in agents} == {"True"}
        assert manager.document("n0").units == {"MinimalReservationPolicy/default/db": 1}
        assert await manager.what_if(workload(cpu="1")) in ("n0", "n1")


@pytest.mark.parametrize("skew_s", SKEWS)
async def test_a_node_with_any_clock_is_ready_while_it_reports_and_lost_when_it_died(
    manager: Manager, store: MemoryStore, skew_s: float
) -> None:
    odd, other = Agent("n0", skew_s=skew_s), Agent("n1")
    await store.put(reservation("db", cpu="1", units=4))
    await pass_time(manager, 120, odd)
    assert condition(manager.node("n0"), "Ready").status == "True"
    assert placed(manager.policy("db")) == {"n0": 4}
    await other.report(manager)
    await pass_time(manager, 60, other)
    assert condition(manager.node("n0"), "Ready").status == "Unknown"
    assert placed(manager.policy("db")) == {"n1": 4}
    assert await manager.what_if(workload()) == "n1"


async def test_a_heartbeat_of_the_far_future_makes_nobody_immortal(manager: Manager) -> None:
    agent = Agent("n0")
    await agent.report(manager, heartbeat=datetime(9998, 12, 31, tzinfo=UTC))
    await pass_time(manager, 60)
    assert condition(manager.node("n0"), "Ready").status == "Unknown"


async def test_a_manager_that_was_stopped_for_an_hour_takes_nobody_for_dead(
    manager: Manager, store: MemoryStore
) -> None:
    agent = Agent("n0")
    await store.put(reservation("db", cpu="1", units=1))
    await pass_time(manager, 60, agent)
    manager.clock.now += HOUR_S  # nothing of ours ran meanwhile
    await pass_time(manager, 10)
    assert condition(manager.node("n0"), "Ready").status == "True"
    assert placed(manager.policy("db")) == {"n0": 1}
    await agent.report(manager)
    await manager.round()
    assert condition(manager.node("n0"), "Ready").status == "True"


async def test_leaders_that_last_half_a_minute_notice_a_dead_node(store: MemoryStore, clock: Clock) -> None:
    dead, alive = Agent("n0"), Agent("n1")
    async with running(first := Manager(store, clock)):
        await store.put(reservation("db", cpu="1", units=4))
        await pass_time(first, 60, dead)
        assert placed(first.policy("db")) == {"n0": 4}
    for _ in range(3):
        async with running(manager := Manager(store, clock)):
            await pass_time(manager, 30, alive)
            found = manager.policy("db")
    assert placed(found) == {"n1": 4}


async def test_a_fresh_leader_listens_before_it_withdraws_from_one_that_was_cut_off(
    store: MemoryStore, clock: Clock
) -> None:
    agent = Agent("n0")
    async with running(first := Manager(store, clock)):
        await store.put(reservation("db", cpu="1", units=1))
        await pass_time(first, 60, agent)
    clock.wait(HOUR_S)  # nobody led
    async with running(second := Manager(store, clock)):
        await second.round()
        assert placed(second.policy("db")) == {"n0": 1}
        await pass_time(second, 60, agent)
        assert placed(second.policy("db")) == {"n0": 1}


async def test_a_fresh_manager_offers_no_node_that_was_found_silent(store: MemoryStore, clock: Clock) -> None:
    dead, alive = Agent("n0"), Agent("n1", cpu="2")
    async with running(first := Manager(store, clock)):
        await dead.report(first)
        await pass_time(first, 60, alive)
    async with running(second := Manager(store, clock)):
        await second.caught_up()
        assert await second.what_if(workload()) == "n1"
        await dead.report(second)  # it is back
        assert await second.what_if(workload()) == "n0"


async def test_a_dead_host_stops_lending_whatever_its_clock_said(manager: Manager) -> None:
    agent = Agent("n0", skew_s=HOUR_S)
    demand = {"memory": {"usage": agent.capacity["cpu"]}}
    for _ in range(3):
        manager.clock.wait(10)
        await agent.report(manager, demand=demand)
        await manager.round()
    assert manager.node("n0").status.overcommit["batch-memory"].amount
    await pass_time(manager, 920)
    assert not manager.node("n0").status.overcommit["batch-memory"].amount


# -- what ends by a clock


async def look(manager: Manager, seconds: float) -> None:
    manager.clock.wait(seconds)
    await manager.round()


async def test_a_manager_two_hours_ahead_does_not_delete_a_hold_that_runs(store: MemoryStore, clock: Clock) -> None:
    manager, agent = Manager(store, clock, skew_s=2 * HOUR_S), Agent("n0")
    async with running(manager):
        await agent.report(manager)
        await store.put(hold("node", "cpu.max", expires=WALL + 3 * HOUR_S / 2))
        for _ in range(7):
            clock.wait(600)
            await agent.report(manager)
            await manager.round()
        (found,) = await stored(store, Hold)
        assert clock.now < found.spec.expires.timestamp() - WALL
    async with running(right := Manager(store, clock)):
        await right.round()
        assert [c.type for c in (await stored(store, Hold))[0].status.conditions] == []


async def test_a_hold_that_is_over_is_removed_an_hour_later(manager: Manager, store: MemoryStore) -> None:
    agent = Agent("n0")
    await store.put(hold("node", "cpu.max", expires=WALL + 60))
    await look(manager, 50)
    assert (await stored(store, Hold))[0].status.conditions == ()
    await look(manager, 10)
    assert condition((await stored(store, Hold))[0], "Expired").status == "True"
    await look(manager, HOUR_S - 10)
    assert await stored(store, Hold)
    await agent.report(manager)
    await look(manager, 10)
    assert not await stored(store, Hold)


async def test_a_placement_that_is_over_is_removed_an_hour_later(manager: Manager, store: MemoryStore) -> None:
    made = reservation("placement-web", cpu="1", ttl="10m")
    await store.put(replace(made, metadata=replace(made.metadata, labels={PLACEMENT_LABEL: "web"})))
    await store.put(reservation("db", cpu="1", ttl="10m"))
    await look(manager, 600)
    await look(manager, HOUR_S - 10)
    assert len(await stored(store, MinimalReservationPolicy)) == 2
    await look(manager, 10)
    assert [p.metadata.name for p in await stored(store, MinimalReservationPolicy)] == ["db"]


async def test_placing_on_a_manager_whose_clock_is_behind_says_so(store: MemoryStore, clock: Clock) -> None:
    behind = MemoryStore(lambda: clock.wall(-90))
    leader, follower, agent = Manager(behind, clock), Manager(behind, clock, skew_s=-90), Agent("n0")
    async with running(leader, follower):
        await agent.report(leader)
        await follower.caught_up()
        places = Placements(behind, follower.view, lambda: follower.wall)
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(_refused(places))
            while not asked.done():
                await leader.round()
        assert "clocks of the managers differ" in asked.result()
        assert not [p for p in await stored(behind, MinimalReservationPolicy) if p.spec.ttl is not UNSET]
    await behind.close()


async def _refused(places: Placements) -> str:
    with acting(Act(SYSTEM)):
        places.enter("default", dry=False)
        with pytest.raises(Conflict) as refused:
            await places.place(workload(cpu="1"), Terms(ttl=Duration(60)))
    return str(refused.value)


async def test_a_fresh_leader_gives_no_units_to_a_node_that_was_found_silent(store: MemoryStore, clock: Clock) -> None:
    """It listens before it withdraws, and does not promise on what it has only heard of."""
    dead = Agent("n0")
    async with running(first := Manager(store, clock)):
        await dead.report(first)
        await pass_time(first, 60)
    await store.put(reservation("db", cpu="1", units=1))
    async with running(second := Manager(store, clock)):
        await second.round()
        assert condition(second.policy("db"), "Admitted").status == "False"
        await pass_time(second, 20, dead)
        assert placed(second.policy("db")) == {"n0": 1}


class Away(MemoryStore):
    """Does not answer, while it is told not to."""

    away = False

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        if self.away:
            raise Unavailable("etcd does not answer")
        return await super().get(kind, namespace, name)


async def listen(manager: Manager, seconds: int) -> None:
    for _ in range(seconds):
        manager.clock.now += 1
        await manager.view.listen()


async def test_nodes_that_cannot_report_because_the_store_is_away_lose_nothing(clock: Clock) -> None:
    store, agents = Away(clock.wall), [Agent("n0"), Agent("n1")]
    manager = Manager(store, clock)
    async with running(manager):
        await store.put(reservation("db", cpu="3", units=2))
        await pass_time(manager, 60, *agents)
        store.away = True
        await listen(manager, 600)
        store.away = False
        manager.resign()  # it had to, without a store
        await manager.round()
        assert placed(manager.policy("db")) == {"n0": 1, "n1": 1}
        await listen(manager, 30)  # agents come back one by one
        await manager.round()
        assert placed(manager.policy("db")) == {"n0": 1, "n1": 1}
        await agents[0].report(manager)
        await listen(manager, 15)
        await manager.round()
        assert condition(manager.node("n1"), "Ready").status == "Unknown"
    await store.close()


async def test_the_only_node_of_a_fleet_is_missed_when_it_dies(manager: Manager, store: MemoryStore) -> None:
    await store.put(reservation("db", cpu="3", units=1))
    await pass_time(manager, 60, Agent("n0"))
    await listen(manager, 60)
    await manager.round()
    assert condition(manager.node("n0"), "Ready").status == "Unknown"
    assert placed(manager.policy("db")) == {}


async def test_a_clock_that_is_set_back_stops_neither_lending_nor_calling_back(
    manager: Manager, store: MemoryStore
) -> None:
    agent, lends = Agent("n0"), Lending(mode="Reclaimable", within=Duration(30))
    await agent.report(manager)
    await store.put(reservation("db", memory="5Gi", units=2, lending=lends))
    await manager.round()
    manager.skew_s = -HOUR_S
    agent.best_effort = "16Gi"
    await pass_time(manager, 20, agent)
    assert manager.policy("db").status.units.lent == 2
    agent.runs = {"db": 2}
    await pass_time(manager, 20, agent)
    assert condition(manager.policy("db"), "Reclaimed").reason == "Reclaiming"
    await pass_time(manager, 40, agent)
    assert condition(manager.policy("db"), "Reclaimed").reason == "Overdue"


async def test_a_clock_that_is_set_back_keeps_nobody_from_the_room_that_moving_makes(
    manager: Manager, store: MemoryStore
) -> None:
    agents = [Agent("n0", cpu="5"), Agent("n1", cpu="5")]
    for agent in agents:
        agent.labels = {"pool": agent.name}
        await agent.report(manager)
        pinned = reservation(f"a-{agent.name}", cpu="2", units=1)
        only = replace(pinned.spec, node_selector=selector({"pool": agent.name}))
        await store.put(replace(pinned, spec=only))
    await store.put(reservation("large", cpu="4", units=1))
    await manager.round()
    assert condition(manager.policy("large"), "Admitted").status == "False"
    manager.skew_s = -HOUR_S
    await edit(store, "a-n1", node_selector=UNSET)
    await pass_time(manager, 30, *agents)
    assert placed(manager.policy("large")) == {"n1": 1}


@pytest.mark.parametrize(
    ("first_s", "then_s"),
    [
        pytest.param(2 * HOUR_S, 0.0, id="the first is ahead"),
        pytest.param(0.0, 60.0, id="the next is ahead"),
        pytest.param(0.0, -HOUR_S, id="the next is behind"),
    ],
)
async def test_a_revision_is_watched_for_as_long_whatever_the_clocks_of_leaders(
    store: MemoryStore, clock: Clock, first_s: float, then_s: float
) -> None:
    agent = Agent("n0")
    async with running(first := Manager(store, clock, first_s)):
        await store.put(reservation("db", cpu="1"))
        await edit(store, "db", rollout=Rollout(canary_percent=100))
        await pass_time(first, 20, agent)
        assert condition(first.policy("db"), "Progressing").reason == "Watching"
    async with running(second := Manager(store, clock, then_s)):
        await pass_time(second, 20, agent)
        assert condition(second.policy("db"), "Progressing").reason == "Watching"
        await pass_time(second, 30, agent)
        assert condition(second.policy("db"), "Progressing").reason == "Complete"
