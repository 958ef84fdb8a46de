"""Who goes first, what is owed, what is lent and what nobody holds: the same whoever leads."""

from __future__ import annotations

from msgspec.structs import replace

from j10ce.manager.api.place import Placements
from j10ce.manager.api.place_policy import Terms
from j10ce.manager.identity import SYSTEM, Act, acting
from j10ce.model.kinds import PLACEMENT_LABEL, WORKLOAD_LABEL, Lending, MinimalReservationPolicy
from j10ce.model.quantity import Duration, Quantity
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import minimum, reservation, selector
from tests.manager.keepers.world import Agent, Clock, Manager, condition, edit, pass_time, placed, running, stored
from tests.scheduler.place.fleet import workload

HOST = "kubernetes.io/hostname"


async def owing(manager: Manager, store: MemoryStore) -> list[Agent]:
    """`pinned` has lost memory on n0, where alone it may be."""
    agents = [Agent(f"n{n}") for n in range(3)]
    for agent in agents:
        await agent.report(manager)
    await store.put(reservation("pinned", memory="10Gi", units=1, nodes=selector({HOST: "n0"}), created=0))
    await manager.round()
    agents[0].capacity = {**agents[0].capacity, "memory": Quantity.parse("8Gi")}
    await agents[0].report(manager)
    await manager.round()
    assert condition(manager.policy("pinned"), "Degraded").status == "True"
    return agents


async def verdict(manager: Manager, store: MemoryStore, made: MinimalReservationPolicy) -> str:
    await store.put(made)
    await pass_time(manager, 20)
    return str(condition(manager.policy(made.metadata.name), "Admitted").reason)


async def test_a_debt_on_one_node_refuses_nobody_who_fits_elsewhere(manager: Manager, store: MemoryStore) -> None:
    await owing(manager, store)
    assert await verdict(manager, store, reservation("web", memory="4Gi", units=2)) == "Granted"
    assert set(placed(manager.policy("web"))) <= {"n1", "n2"}


async def test_a_debt_of_memory_is_none_of_cpu(manager: Manager, store: MemoryStore) -> None:
    await owing(manager, store)
    there = selector({HOST: "n0"})
    assert await verdict(manager, store, reservation("web", cpu="1", units=1, nodes=there)) == "Granted"


async def test_where_an_older_promise_waits_nobody_new_comes(manager: Manager, store: MemoryStore) -> None:
    await owing(manager, store)
    there = selector({HOST: "n0"})
    assert await verdict(manager, store, reservation("web", memory="1Gi", units=1, nodes=there)) == "Owed"
    message = condition(manager.policy("web"), "Admitted").message
    assert message.startswith("MinimalReservationPolicy/default/pinned lacks a place for 1 of its 1 units")
    assert await verdict(manager, store, reservation("wide", memory="15Gi", units=3)) == "Owed"


async def test_nobody_is_moved_to_where_an_older_promise_waits(manager: Manager, store: MemoryStore) -> None:
    """Room for a newcomer is not made at the cost of whoever goes first."""
    agents = await owing(manager, store)
    await store.put(reservation("mover", memory="4Gi", units=2))
    await pass_time(manager, 10)
    assert set(placed(manager.policy("mover"))) <= {"n1", "n2"}
    await verdict(manager, store, reservation("big", memory="14Gi", units=2))
    agents[0].capacity = {**agents[0].capacity, "memory": Quantity.parse("17Gi")}
    await pass_time(manager, 10, agents[0])
    assert placed(manager.policy("pinned")) == {"n0": 1}


# -- other nodes, while workloads run


async def working(manager: Manager, store: MemoryStore, *agents: Agent) -> None:
    """Both units of `db` are in use on n0, the first of the agents."""
    await agents[0].report(manager)
    await store.put(reservation("db", cpu="1", units=2))
    await manager.round()
    agents[0].runs = {"db": 2}
    await pass_time(manager, 20, *agents)
    assert (placed(manager.policy("db")), manager.policy("db").status.units.used) == ({"n0": 2}, 2)


async def test_an_edit_to_nodes_that_are_not_there_is_refused_also_while_all_units_are_in_use(
    manager: Manager, store: MemoryStore
) -> None:
    agent = Agent("n0")
    await working(manager, store, agent)
    await edit(store, "db", node_selector=selector({HOST: "n9"}))
    await pass_time(manager, 60, agent)
    after = manager.policy("db")
    assert condition(after, "Admitted").message == (
        "2 units of cpu 1 wanted; no node matches nodeSelector; generation 1 stays in force"
    )
    assert (after.status.admitted_generation, placed(after), after.status.units.used) == (1, {"n0": 2}, 2)


async def test_an_edit_to_other_nodes_has_all_its_units_there_while_workloads_run_where_they_were(
    manager: Manager, store: MemoryStore
) -> None:
    """n0 would be too small for the new shape, which does not matter: no unit of it will be there."""
    agents = [Agent("n0"), Agent("n1", cpu="8")]
    await working(manager, store, agents[0])
    await agents[1].report(manager)
    await edit(store, "db", node_selector=selector({HOST: "n1"}), minimum=minimum(cpu="3"))
    await manager.round()
    for _ in range(2):  # before n0 has heard of it, and after
        after = manager.policy("db")
        assert condition(after, "Admitted").status == "True"
        assert (after.status.admitted_generation, placed(after)) == (2, {"n1": 2})
        assert condition(after, "Degraded").status == "False"
        await pass_time(manager, 60, *agents)


async def test_units_in_use_leave_a_node_whose_labels_no_longer_match(manager: Manager, store: MemoryStore) -> None:
    agents = [Agent("n0"), Agent("n1")]
    for agent in agents:
        agent.labels = {"disk": "ssd"}
        await agent.report(manager)
    await store.put(reservation("db", cpu="1", units=2, nodes=selector({"disk": "ssd"})))
    await manager.round()
    (first,) = placed(manager.policy("db"))
    agents[first == "n1"].runs = {"db": 2}
    await pass_time(manager, 20, *agents)
    assert manager.policy("db").status.units.used == 2
    node = manager.node(first)
    await store.put(replace(node, spec=replace(node.spec, labels={"disk": "tape"})))
    await manager.round()
    assert placed(manager.policy("db")) == {"n0" if first == "n1" else "n1": 2}


async def test_what_is_overdue_stays_so_when_the_leader_changes(store: MemoryStore, clock: Clock) -> None:
    agent, lends = Agent("n0"), Lending(mode="Reclaimable", within=Duration(30))
    async with running(manager := Manager(store, clock)):
        await agent.report(manager)
        await store.put(reservation("db", memory="5Gi", units=2, lending=lends))
        await manager.round()
        agent.best_effort = "16Gi"
        await pass_time(manager, 20, agent)
        assert manager.policy("db").status.units.lent == 2
        agent.runs = {"db": 2}
        await pass_time(manager, 60, agent)
        before = manager.policy("db")
        assert (condition(before, "Reclaimed").reason, before.status.phase) == ("Overdue", "Degraded")
    async with running(successor := Manager(store, clock)):
        await pass_time(successor, 20, agent)
        after = successor.policy("db")
        assert (condition(after, "Reclaimed").reason, after.status.phase) == ("Overdue", "Degraded")
        agent.best_effort = "0"
        await pass_time(successor, 20, agent)
        assert (condition(successor.policy("db"), "Reclaimed").reason) == "Returned"


async def test_what_is_called_back_after_the_leader_changed_has_its_whole_time(
    store: MemoryStore, clock: Clock
) -> None:
    agent, lends = Agent("n0"), Lending(mode="Reclaimable", within=Duration(30))
    async with running(manager := Manager(store, clock)):
        await agent.report(manager)
        await store.put(reservation("db", memory="5Gi", units=2, lending=lends))
        await manager.round()
        agent.best_effort = "16Gi"
        await pass_time(manager, 20, agent)
        agent.runs = {"db": 1}
        await pass_time(manager, 60, agent)
        assert condition(manager.policy("db"), "Reclaimed").reason == "Overdue"
    async with running(successor := Manager(store, clock)):
        agent.best_effort = "0"
        await pass_time(successor, 20, agent)
        assert condition(successor.policy("db"), "Reclaimed").reason == "Returned"
        late = Agent("n1")
        late.best_effort, late.runs = "16Gi", {"db": 1}
        await pass_time(successor, 10, agent, late)
        assert condition(successor.policy("db"), "Reclaimed").reason != "Overdue"


async def test_network_and_disk_of_a_unit_are_said_to_be_held_by_nobody_whoever_leads(
    store: MemoryStore, clock: Clock
) -> None:
    agents = [Agent("n0"), Agent("n1")]
    async with running(manager := Manager(store, clock)):
        for agent in agents:
            await agent.report(manager)
        await store.put(reservation("db", cpu="1", network="1Gbit", units=2))
        await store.put(reservation("only", network="1Gbit", units=2))
        await manager.round()
        first = manager.policy("db")
        assert condition(first, "Admitted").status == "True"
        condition_now = condition(first, "Held")
        assert (condition_now.status, condition_now.message) == (
            "False", "network 1Gbit of each unit is not held: units hold cpu and memory alone",
        )  # fmt: skip
        assert condition(manager.policy("only"), "Admitted").status == "False"
    agents[1].capacity = {**agents[1].capacity, "network": Quantity.parse("10Gbit")}
    async with running(successor := Manager(store, clock)):
        for agent in agents:
            await agent.report(successor)
        await pass_time(successor, 30, *agents)
        assert placed(successor.policy("db")) == placed(first)
        assert condition(successor.policy("db"), "Held") == condition_now


# -- placements that others make again


async def test_a_placement_that_was_made_again_is_nobody_elses_to_delete(manager: Manager, store: MemoryStore) -> None:
    agent = Agent("n0")
    await agent.report(manager)
    places = Placements(store, manager.view, lambda: manager.wall)
    alone = {WORKLOAD_LABEL: "web"}
    made = reservation("placement-web", labels=alone, cpu="1", units=1, ttl="10m", nodes=selector({HOST: "n0"}))
    mine = await store.put(replace(made, metadata=replace(made.metadata, labels={PLACEMENT_LABEL: "web"})))
    assert isinstance(mine, MinimalReservationPolicy)
    await store.delete(*_key())
    theirs = await store.put(replace(made, metadata=replace(made.metadata, labels={PLACEMENT_LABEL: "web"})))
    await manager.round()
    await places._take_back(mine, "it was not admitted", store)
    (left,) = await stored(store, MinimalReservationPolicy)
    assert left.metadata.uid == theirs.metadata.uid
    with acting(Act(SYSTEM)):
        places.enter("default", dry=False)
        placement = await places.place(workload(cpu="1"), Terms())
    assert placement.node == "n0"


def _key() -> tuple[str, str, str]:
    return "MinimalReservationPolicy", "default", "placement-web"
