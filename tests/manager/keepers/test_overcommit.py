"""The keeper: from a node's report to its overcommit, and back to nothing when it is silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from j10ce.cli.fleet.nodes import describe_node
from j10ce.manager.documents.view import View
from j10ce.manager.keepers.overcommit import inputs, judged, keep_overcommit, withheld
from j10ce.manager.keepers.overcommit_file import Strategies, parse
from j10ce.model.kinds import Lending, MinimalReservationPolicy, NodeQoS, ReservationReport
from j10ce.model.quantity import Quantity
from j10ce.model.schema import plain
from j10ce.policy.overcommit import results
from j10ce.policy.strategy import merged
from j10ce.store.memory import MemoryStore
from j10ce.store.store import Store
from j10ce.testing.build import WALL, reservation, strategy
from tests.hearing import by_heartbeat
from tests.scheduler.place.fleet import node, quantities

DB = "MinimalReservationPolicy/default/db"


def used(cpu: str = "2", *, heard: float = WALL, units: int = 0) -> NodeQoS:
    """A node of 10 CPUs, of which 6 may be used in all, whose protected workloads use so many."""
    made = node(cpu="10", memory="100Gi", heard=heard)
    report = replace(
        made.status.node,
        demand={"cpu": quantities({"system": "250m", "usage": cpu, "request": "3", "larger": "4"})},
        predicted={"cpu": quantities({"node": "3", "protected": "1"})},
        usage={"cpu": quantities({"p50": "1", "p95": "3", "max": "4"})},
        reservations=(ReservationReport(source=DB, units=units),) if units else (),
    )
    return replace(made, status=replace(made.status, node=report))


def lending_node(
    made: NodeQoS, wall: float = WALL, policies: dict[str, MinimalReservationPolicy] | None = None
) -> NodeQoS:
    status = judged(made, policies or {}, wall, Strategies(), by_heartbeat(lambda: wall)(made).silent_s)
    return made if status is None else replace(made, status=status)


def test_what_a_strategy_says_goes_over_the_file_field_by_field() -> None:
    file = parse(b"cpu: {thresholdPercent: 50, safetyPercent: 20}\ndegrade: 1h")
    said = merged([strategy("pool", {"overcommit": {"cpu": {"thresholdPercent": 80}}})])
    status = judged(used(), {}, WALL, file, 0.0, said)
    assert status is not None
    assert status.overcommit_strategy == "default + NodeStrategy/pool"
    margin = next(t for t in status.overcommit_terms if t.name == "margin")
    assert str(margin.amount) == "2", "80 % by the strategy, not 50 % by the file"
    peak = next(t for t in status.overcommit_terms if t.name == "peak")
    assert str(peak.amount) == "1200m", "20 % by the file"


def test_a_report_becomes_amounts_with_every_term() -> None:
    status = lending_node(used()).status
    # 10 − margin 4 − headroom 0.5 (5 %, more than the system's 0.25) − used 2, and promised 3 − peak 1 · 1.1
    assert status.overcommit == quantities({"batch-cpu": "3500m", "mid-cpu": "1900m"})
    assert results(status.overcommit_terms) == status.overcommit
    steps = [(t.step, t.name, str(t.amount)) for t in status.overcommit_terms if t.result == "batch-cpu"]
    assert steps == [
        ("plus", "capacity", "10"),
        ("minus", "margin", "4"),
        ("minus", "headroom", "500m"),
        ("minus", "protected", "2"),
        ("at least", "nothing", "0"),
    ]


def test_each_memory_node_lends_its_own_part_and_nothing_once_the_node_is_silent() -> None:
    made = used()
    zones = {
        "0": {"cpu": quantities({"capacity": "5", "usage": "1500m", "request": "2", "larger": "2"})},
        "1": {"cpu": quantities({"capacity": "5"})},
    }
    report = replace(made.status.node, zones=zones)
    known = lending_node(replace(made, status=replace(made.status, node=report)))
    # 5 − margin 2 − half of the headroom 0.25 − half of what is bound nowhere 0.25 − what is bound here
    assert known.status.overcommit_zones == {
        "0": quantities({"batch-cpu": "1"}),
        "1": quantities({"batch-cpu": "2500m"}),
    }
    shown = describe_node(plain(known))
    assert "MEMORY NODE   BATCH-CPU" in shown
    silent = lending_node(known, WALL + 3600)
    assert {str(q) for lent in silent.status.overcommit_zones.values() for q in lent.values()} == {"0"}


def test_a_small_change_is_not_reported_and_a_large_one_is() -> None:
    before = lending_node(used("2"))
    moved = used("2200m")
    moved = replace(moved, status=replace(before.status, node=moved.status.node))
    assert judged(moved, {}, WALL + 10, Strategies(), 0) is None
    assert judged(moved, {}, WALL + 300, Strategies(), 0) is not None
    jumped = replace(before, status=replace(before.status, node=used("4").status.node))
    assert lending_node(jumped, WALL + 10).status.overcommit["batch-cpu"] == Quantity.parse("1500m")


@pytest.mark.parametrize(
    ("silent_s", "batch"),
    [
        pytest.param(899, "3500m", id="the last word counts for a while"),
        pytest.param(901, "0", id="then nothing is lent"),
    ],
)
def test_a_silent_node_degrades(silent_s: float, batch: str) -> None:
    assert lending_node(lending_node(used()), WALL + silent_s).status.overcommit["batch-cpu"] == Quantity.parse(batch)


def test_a_node_that_comes_back_lends_again() -> None:
    gone = lending_node(lending_node(used()), WALL + 1000)
    assert gone.status.overcommit_terms[0].why == "no report for 1000 s, more than 15m"
    back = replace(gone, status=replace(gone.status, node=used(heard=WALL + 1001).status.node))
    assert lending_node(back, WALL + 1001).status.overcommit["batch-cpu"] == Quantity.parse("3500m")


def test_a_node_that_measures_nothing_lends_nothing() -> None:
    assert judged(node(), {}, WALL, Strategies(), 0) is None


@pytest.mark.parametrize(
    ("mode", "batch"),
    [pytest.param("None", "1500m", id="kept"), pytest.param("Reclaimable", "3500m", id="lent")],
)
def test_unused_units_are_lent_only_where_their_policy_says_so(mode: str, batch: str) -> None:
    policy = reservation("db", cpu="1", units=2, lending=Lending(mode=mode))  # type: ignore[arg-type]
    status = lending_node(used(units=2), policies={DB: policy}).status
    assert status.overcommit["batch-cpu"] == Quantity.parse(batch)


def test_units_in_use_are_not_withheld_twice() -> None:
    made = used(units=2)
    busy = replace(made.status.node, reservations=(ReservationReport(source=DB, units=2, used=2),))
    made = replace(made, status=replace(made.status, node=busy))
    assert not any(withheld(made, {DB: reservation("db", cpu="1", units=2)}))


def test_memory_counts_in_bytes() -> None:
    made = node(memory="100Gi")
    report = replace(made.status.node, demand={"memory": quantities({"usage": "10Gi", "system": "20Gi"})})
    counted = inputs(replace(made, status=replace(made.status, node=report)))["memory"]
    assert (counted.capacity, counted.usage, counted.system, counted.headroom) == (
        100 << 30,
        10 << 30,
        20 << 30,
        5 << 30,
    )


def test_a_node_is_judged_by_the_strategy_that_selects_it_and_says_so() -> None:
    pool = parse(b"{nodes: [{name: pool, nodeSelector: {matchLabels: {pool: batch}}, cpu: {thresholdPercent: 80}}]}")
    made = used()
    chosen = replace(made, spec=replace(made.spec, labels={"pool": "batch"}))
    for node_, name, batch in ((made, "default", "3500m"), (chosen, "pool", "5500m")):
        status = judged(node_, {}, WALL, pool, 0)
        assert status is not None
        assert (status.overcommit_strategy, status.overcommit["batch-cpu"]) == (name, Quantity.parse(batch))


def test_describe_names_the_strategy_above_the_terms() -> None:
    shown = describe_node(plain(lending_node(used()))).splitlines()
    at = shown.index("Overcommit:")
    assert shown[at + 1].strip() == "by the strategy default"
    assert shown[at + 3].split() == ["batch-cpu", "3500m", "-"]


def test_another_strategy_is_reported_although_the_amounts_stay() -> None:
    before = lending_node(used())
    same = parse(b"{nodes: [{name: own, nodeSelector: {matchExpressions: [{key: pool, operator: DoesNotExist}]}}]}")
    status = judged(before, {}, WALL, same, 0)
    assert status is not None
    assert (status.overcommit_strategy, status.overcommit) == ("own", before.status.overcommit)
    assert judged(replace(before, status=status), {}, WALL, same, 0) is None


# -- with a store


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    made = MemoryStore(lambda: WALL)
    yield made
    await made.close()


async def lending(store: Store, amount: str = "") -> NodeQoS:
    """The node, once it lends, or lends so much."""
    async with asyncio.timeout(30):
        while True:
            listing = await store.list("NodeQoS")
            (node,) = listing.items
            assert isinstance(node, NodeQoS)
            if (amount_lent := node.status.overcommit.get("batch-cpu")) and str(amount_lent) == (
                amount or str(amount_lent)
            ):
                return node
            await anext(store.watch("NodeQoS", listing.revision))


async def test_the_keeper_writes_beside_the_agent(store: Store) -> None:
    view = View(store)
    await store.put(used())
    await store.put(used(), part="status")
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(view.run())]
        running.append(group.create_task(keep_overcommit(store, view, lambda: WALL, every_s=0.01)))
        lent = await lending(store)
        assert lent.status.node == used().status.node
        assert lent.status.overcommit_time == datetime.fromtimestamp(WALL, UTC)
        for task in running:
            task.cancel()


async def test_a_clock_that_is_set_back_does_not_keep_lending_what_is_used(store: Store) -> None:
    wall, clock = [WALL], [0.0]
    view = View(store, lambda: clock[0])
    await store.put(used("2"))
    await store.put(used("2"), part="status")
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(view.run())]
        running.append(group.create_task(keep_overcommit(store, view, lambda: wall[0], every_s=0.01)))
        await lending(store, "3500m")
        wall[0] -= 3600.0
        stored = await store.get("NodeQoS", "", "n1")
        assert isinstance(stored, NodeQoS)
        report = replace(used("5").status.node, heartbeat=stored.status.node.heartbeat)
        await store.put(replace(stored, status=replace(stored.status, node=report)), part="status")
        clock[0] += 1.0
        view.silence.tick()
        await lending(store, "500m")
        for task in running:
            task.cancel()


async def test_the_keeper_obeys_strategies_where_they_select_a_node(store: Store) -> None:
    view, made = View(store), replace(used(), metadata=replace(used().metadata, labels={"pool": "batch"}))
    await store.put(made)
    await store.put(made, part="status")
    said = {"overcommit": {"cpu": {"thresholdPercent": 80}}, "nodeSelector": {"matchLabels": {"pool": "batch"}}}
    await store.put(strategy("pool", said))
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(view.run())]
        running.append(group.create_task(keep_overcommit(store, view, lambda: WALL, every_s=0.01)))
        lent = await lending(store, "5500m")
        assert lent.status.overcommit_strategy == "default + NodeStrategy/pool"
        await store.delete("NodeStrategy", "", "pool")
        assert (await lending(store, "3500m")).status.overcommit_strategy == "default"
        for task in running:
            task.cancel()
