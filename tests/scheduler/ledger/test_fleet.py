"""The fleet's ledger where it is easily got wrong."""

from __future__ import annotations

import pytest

from j10ce.model.resource import Resources
from j10ce.scheduler.ledger.fleet import Fleet
from j10ce.scheduler.ledger.pledge import Charge, FleetNode, Pledge, Standing
from j10ce.testing.build import resources


def pledge(name: str, cpu: str, units: int, *, created: float = 0.0) -> Pledge:
    return Pledge(f"MinimalReservationPolicy/ns/{name}", "ns", resources(cpu), units, created)


def node(
    name: str, cpu: str, *, runs: dict[Pledge, int] | None = None, waits: dict[Pledge, int] | None = None
) -> FleetNode:
    running, waiting = runs or {}, waits or {}
    claims = resources()
    for p, n in running.items():
        claims = claims.plus(_times(p.shape, n))
    charged = {
        p.source: Charge(running.get(p, 0), _times(p.shape, running.get(p, 0)), waiting.get(p, 0))
        for p in {**running, **waiting}
    }
    return FleetNode(name, resources(cpu), claimed={"ns": claims}, charged=charged)


def _times(amount: Resources, n: int) -> Resources:
    return Resources._make(a * n for a in amount)


@pytest.fixture
def fleet() -> Fleet:
    return Fleet(limit_percent=100)


def test_where_more_run_than_there_are_units_those_who_have_one_keep_it(fleet: Fleet) -> None:
    db = pledge("db", "1", 2)
    fleet.update([node("a", "4"), node("b", "4", runs={db: 2})])
    assert fleet.admit(db) is None
    fleet.update([node("a", "4", runs={db: 2})])
    assert fleet.standing(db.source) == Standing({"b": 2}, {}, 0)
    other = Fleet(limit_percent=100)
    other.update([node("a", "4", runs={db: 2}), node("b", "4", runs={db: 2})])
    other.carry(db, {"b": 2})
    other.update()
    assert other.standing(db.source) == Standing({"b": 2}, {}, 0), "also for another manager"


def test_where_a_unit_left_for_its_workload_the_oldest_that_lacks_room_comes(fleet: Fleet) -> None:
    moves, short = pledge("moves", "5", 1), pledge("short", "6", 1, created=1.0)
    young = pledge("young", "1", 5, created=2.0)
    fleet.update([node("a", "5"), node("b", "6"), node("c", "6")])
    for p, witness in ((moves, {"b": 1}), (short, {"c": 1}), (young, {"a": 5})):
        fleet.carry(p, witness)
    fleet.update([node("c", "0")])
    assert [fleet.standing(p.source).missing for p in (moves, short, young)] == [0, 1, 0]
    fleet.update([node("a", "5", waits={moves: 1})])
    assert fleet.standing(moves.source).unused == {"a": 1}
    assert fleet.standing(short.source).unused == {"b": 1}
    assert fleet.standing(young.source).missing == 5


def test_nothing_is_admitted_where_an_older_promise_waits_for_room(fleet: Fleet) -> None:
    old, late = pledge("old", "3", 2), pledge("late", "1", 1, created=1.0)
    fleet.update([node("a", "4"), node("b", "4")])
    assert fleet.admit(old) is None
    fleet.update([node("b", "1")])
    refusal = fleet.admit(late)
    assert refusal is not None
    assert refusal.reason == "Owed"
    assert str(refusal) == (f"{old.source} lacks a place for 1 of its 2 units on the same nodes, and goes first")
    fleet.update([node("b", "4")])
    assert fleet.admit(late) is None


def test_a_promise_that_lacks_room_may_ask_for_another_shape(fleet: Fleet) -> None:
    fleet.update([node("a", "4"), node("b", "4")])
    assert fleet.admit(pledge("db", "3", 2)) is None
    fleet.update([node("b", "1")])
    assert fleet.admit(pledge("db", "1", 5)) is None
    assert fleet.standing("MinimalReservationPolicy/ns/db").missing == 0


def test_units_in_use_grow_where_they_are_or_not_at_all(fleet: Fleet) -> None:
    db = pledge("db", "2", 1)
    fleet.update([node("a", "3", runs={db: 1}), node("b", "8")])
    assert fleet.admit(db) is None
    refusal = fleet.admit(pledge("db", "4", 1))
    assert refusal is not None, "its workload runs on a, and a has three"
    assert fleet.admit(pledge("db", "3", 1)) is None
    assert fleet.free("a") == resources(), "the third CPU waits for its workload"


def test_a_unit_in_use_on_a_node_that_shrank_is_held_elsewhere(fleet: Fleet) -> None:
    db = pledge("db", "3", 1)
    fleet.update([node("a", "4", runs={db: 1}), node("b", "4")])
    assert fleet.admit(db) is None
    fleet.update([node("a", "2", runs={db: 1})])
    assert fleet.standing(db.source) == Standing({}, {"b": 1}, 0)
    fleet.update([node("a", "4", runs={db: 1})])
    assert fleet.standing(db.source) == Standing({"a": 1}, {}, 0)


def test_workloads_where_their_policy_has_no_units_any_more_count_as_what_they_claim(fleet: Fleet) -> None:
    db, web = pledge("db", "1", 2), pledge("web", "1", 1, created=1.0)
    fleet.update([node("a", "4", runs={db: 2, web: 1}), node("b", "8")._replace(labels={"disk": "ssd"})])
    assert [fleet.admit(p) for p in (db, web)] == [None, None]
    moved = pledge("web", "5", 1, created=1.0)._replace(test=lambda labels: labels.get("disk") == "ssd")
    assert fleet.admit(moved) is None
    assert fleet.standing(web.source) == Standing({}, {"b": 1}, 0)
    assert fleet.free("a") == resources("1")
    fleet.update([node("a", "1", runs={db: 2, web: 1})])
    assert fleet.standing(db.source) == Standing({"a": 1}, {"b": 1}, 0)


def test_absurd_numbers_are_survived(fleet: Fleet) -> None:
    huge = 2**63 - 1
    fleet.update([FleetNode("a", Resources(huge, huge)), FleetNode("b", Resources(huge, huge))])  # type: ignore[arg-type]
    assert fleet.admit(Pledge("p", "ns", Resources(huge, huge), 1_000_000)) is not None  # type: ignore[arg-type]
    assert fleet.admit(Pledge("q", "ns", resources("1"), 1_000_000)) is None
    fleet.update([FleetNode("a", resources(), claimed={"ns": Resources(huge, huge)})])  # type: ignore[arg-type]
    assert fleet.standing("q").missing == 0
