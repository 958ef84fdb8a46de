"""Objects in, decisions out: who is admitted, where the units are, and what a refusal says."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from j10ce.manager.documents.silence import SILENT_S
from j10ce.manager.policies.reservations import LOOK_S, RETRY_S, Reservations
from j10ce.model.kinds import Lending, Meta, MinimalReservationPolicy, NodeQoS, Owner, PolicyRevision
from j10ce.model.quantity import Duration
from j10ce.model.schema import plain
from j10ce.testing.build import WALL, selector
from tests.hearing import Roster
from tests.reservations.objects import after, node, policy, where, witness

DB = "MinimalReservationPolicy/default/db"
WEB = "MinimalReservationPolicy/default/web"


@pytest.fixture
def reservations() -> Reservations:
    return Reservations(Roster(), limit_percent=100)


def three() -> list[NodeQoS]:
    return [node("a"), node("b"), node("c")]


def test_units_are_held_on_nodes_and_counted(reservations: Reservations) -> None:
    decision = reservations.decide([policy(units=6)], three(), WALL)[DB]
    assert sum(where(decision).values()) == 6
    assert (decision.admitted.status, decision.generation, decision.degraded) == ("True", 1, False)
    assert (decision.units.wanted, decision.units.placed, decision.units.used) == (6, 6, 0)


def test_a_policy_without_units_asks_nothing_of_the_fleet(reservations: Reservations) -> None:
    decision = reservations.decide([policy(units=0)], [], WALL)[DB]
    assert (decision.admitted.status, decision.witness, decision.generation) == ("True", (), 1)


def test_a_refusal_says_what_is_missing_where_and_who_holds_it(reservations: Reservations) -> None:
    old, late = policy(units=3, cpu="3", age_s=60), policy("web", units=2, cpu="2", memory="1Gi")
    decision = reservations.decide([late, old], three(), WALL)[WEB]
    assert (decision.admitted.status, decision.admitted.reason) == ("False", "NoRoom")
    assert decision.admitted.message == (
        "2 units of cpu 2, memory 1Gi wanted, 0 fit on 3 nodes; a comes closest: cpu 2 wanted, 1 free of 4; "
        f"held by {DB} cpu 9; no arrangement of all units exists"
    )
    assert (decision.witness, decision.generation, decision.units.placed) == ((), 0, 0)


def test_a_refused_policy_is_admitted_once_there_is_room(reservations: Reservations) -> None:
    old, late = policy(units=3, cpu="3", age_s=60), policy("web", units=1, cpu="2")
    assert reservations.decide([old, late], three(), WALL)[WEB].admitted.status == "False"
    assert reservations.decide([late], three(), WALL + 1)[WEB].admitted.status == "True"


def test_units_that_only_fit_after_moving_others_are_admitted(reservations: Reservations) -> None:
    small = policy("small", units=2, cpu="2", age_s=60)
    apart = replace(small, status=replace(small.status, witness=witness(a=1, b=1), admitted_generation=1))
    decisions = reservations.decide([apart, policy("large", units=1, cpu="4")], [node("a"), node("b")], WALL)
    assert decisions[_ref("large")].admitted.status == "True"
    assert sorted(where(decisions[_ref("small")]).values()) == [2]


def test_a_namespace_cannot_take_the_fleet() -> None:
    greedy = policy(units=4)  # of 12 CPUs a quarter is 3
    decision = Reservations(Roster(), limit_percent=25).decide([greedy], three(), WALL)[DB]
    assert decision.admitted.reason == "NamespaceLimit"
    assert decision.admitted.message == (
        "namespace default may reserve 25 % of the fleet: cpu 3 of 12, has 0, wants 4 more"
    )


def test_floors_of_running_workloads_count_towards_the_limit() -> None:
    nodes = [node("a", charged={WEB: (2, "1")}), node("b"), node("c")]
    limited = Reservations(Roster(), limit_percent=25)
    assert limited.decide([policy(units=2)], nodes, WALL)[DB].admitted.reason == "NamespaceLimit"
    assert limited.decide([policy(units=1, generation=2)], nodes, WALL)[DB].admitted.status == "True"


def test_a_namespace_at_its_limit_gets_no_floors_beyond_units() -> None:
    nodes = [node("a", charged={WEB: (3, "1")}), node("b"), node("c")]  # 3 of 12 CPUs, in namespace default
    limited = Reservations(Roster(), limit_percent=25)
    web = policy("web", units=0)
    decision = limited.decide([web], nodes, WALL)[WEB]
    assert [(c.type, c.status) for c in decision.conditions] == [("Admitted", "True"), ("Limited", "True")]
    assert decision.conditions[-1].message == (
        "namespace default reserves cpu 3 of 3 that it may; "
        "workloads keep the floors and units that they have, and no further one gets a floor"
    )
    fewer = [node("a", charged={WEB: (2, "1")}), node("b"), node("c")]
    assert len(limited.decide([web], fewer, WALL + LOOK_S)[WEB].conditions) == 1


def test_an_expired_policy_frees_its_capacity_at_once(reservations: Reservations) -> None:
    short, late = policy(units=3, cpu="4", ttl="10m", age_s=60), policy("web", units=3, cpu="4")
    assert reservations.decide([short, late], three(), WALL)[WEB].admitted.status == "False"
    at_its_end = WALL - 60 + 600
    decisions = reservations.decide([short, late], [_heard(n, at_its_end) for n in three()], at_its_end)
    assert (decisions[DB].admitted.reason, decisions[DB].witness) == ("Expired", ())
    assert decisions[WEB].admitted.status == "True"


def test_a_lost_node_is_replaced_where_there_is_room(reservations: Reservations) -> None:
    mine = policy(units=2, cpu="3")
    before = where(reservations.decide([mine], three(), WALL)[DB])
    gone = min(before)
    later = WALL + SILENT_S + 1
    silent = [n if n.metadata.name == gone else _heard(n, later) for n in three()]
    decision = reservations.decide([mine], silent, later)[DB]
    assert gone not in where(decision)
    assert not decision.degraded
    assert before.keys() - {gone} <= where(decision).keys(), "the unit on the node that is there does not move"


def test_without_room_it_is_degraded_and_recovers_by_itself(reservations: Reservations) -> None:
    mine, later = policy(units=3, cpu="3"), WALL + SILENT_S + 1
    reservations.decide([mine], three(), WALL)
    silent = [node("a"), *(_heard(n, later) for n in three()[1:])]
    decision = reservations.decide([mine], silent, later)[DB]
    degraded = next(c for c in decision.conditions if c.type == "Degraded")
    assert (decision.degraded, decision.admitted.status, decision.units.placed) == (True, "True", 2)
    assert (degraded.status, degraded.reason) == ("True", "NodeLost")
    assert degraded.message.startswith("1 unit without a place: 1 unit of cpu 3 wanted, 0 fit on 2 nodes; b comes")
    assert degraded.message.endswith("; lost: a")
    back = reservations.decide([mine], [_heard(n, later + 1) for n in three()], later + 1)[DB]
    assert (back.degraded, back.units.placed) == (False, 3)


def test_a_new_leader_goes_on_where_the_last_one_stopped(reservations: Reservations) -> None:
    policies = [policy(f"p{n}", units=2, cpu="1", age_s=n) for n in range(4)]
    decided = reservations.decide(policies, three(), WALL)
    known = [after(p, decided[_ref(p.metadata.name)]) for p in policies]
    assert Reservations(Roster(), limit_percent=100).decide(known, three(), WALL + 1) == decided


def test_an_edit_that_does_not_fit_leaves_the_earlier_one_in_force(reservations: Reservations) -> None:
    first = policy(units=6, cpu="1")
    nodes = three()
    known = after(first, reservations.decide([first], nodes, WALL)[DB])
    edited = replace(policy(units=13, cpu="1", generation=2), status=known.status)
    decision = reservations.decide([edited], nodes, WALL + 1)[DB]
    assert (decision.admitted.status, decision.generation, decision.witness) == ("False", 1, known.status.witness)
    assert decision.admitted.message.endswith("; generation 1 stays in force")
    taken_over = Reservations(Roster(), limit_percent=100)
    again = taken_over.decide([after(edited, decision)], nodes, WALL + 2, [_revision(first)])[DB]
    assert (again.generation, again.witness, again.units.placed) == (1, known.status.witness, 6)


def test_a_workload_takes_the_unit_of_its_node(reservations: Reservations) -> None:
    mine = policy(units=3, cpu="2")
    before = where(reservations.decide([mine], three(), WALL)[DB])
    at = min(before)
    nodes = [node(n, charged={DB: (1, "2")} if n == at else {}) for n in "abc"]
    decision = reservations.decide([mine], nodes, WALL + 1)[DB]
    assert (where(decision), decision.units.used) == (before, 1)


def test_a_unit_follows_its_workload_to_another_node(reservations: Reservations) -> None:
    mine = policy(units=1, cpu="2")
    (before,) = where(reservations.decide([mine], three(), WALL)[DB])
    other = next(n for n in "abc" if n != before)
    nodes = [node(n, charged={DB: (1, "2")} if n == other else {}) for n in "abc"]
    assert where(reservations.decide([mine], nodes, WALL + 1)[DB]) == {other: 1}


def test_a_workload_that_waits_gets_its_unit_where_it_is(reservations: Reservations) -> None:
    mine, filler = policy(units=1, cpu="3", age_s=60), policy("web", units=1, cpu="3")
    nodes = [node("a"), node("b")]
    decisions = reservations.decide([mine, filler], nodes, WALL)
    (at,), (other,) = where(decisions[DB]), where(decisions[WEB])
    waits = [node(n, waiting={DB: 1} if n == other else {}) for n in "ab"]
    decisions = reservations.decide([mine, filler], waits, WALL + 1)
    assert (where(decisions[DB]), where(decisions[WEB])) == ({other: 1}, {at: 1})


def test_more_workloads_than_units_stand_beside_them(reservations: Reservations) -> None:
    mine = policy(units=2, cpu="1")
    nodes = [node("a", charged={DB: (3, "1")}), node("b")]
    decision = reservations.decide([mine], nodes, WALL)[DB]
    assert (where(decision), decision.units.used) == ({"a": 2}, 2)
    assert reservations.decide([mine, policy("web", units=1, cpu="2")], nodes, WALL)[WEB].witness[0].node == "b"


def test_a_cordoned_node_gets_no_units_and_gives_its_own_away(reservations: Reservations) -> None:
    mine = policy(units=2, cpu="3")
    before = where(reservations.decide([mine], three(), WALL)[DB])
    at = min(before)
    nodes = [node(n, unschedulable=n == at) for n in "abc"]
    assert at not in where(reservations.decide([mine], nodes, WALL + 1)[DB])
    full = [node(n, unschedulable=n == at, floors="0" if n in before else "4") for n in "abc"]
    alone = Reservations(Roster(), limit_percent=100)
    alone.decide([mine], three(), WALL)
    stays = alone.decide([mine], full, WALL + 1)[DB]
    assert (where(stays), stays.degraded) == (before, False), "with no room elsewhere they stay"


def test_units_go_where_the_selector_allows(reservations: Reservations) -> None:
    ssd = policy(units=2, cpu="2", nodes=selector({"disk": "ssd"}))
    nodes = [node("a"), node("b", labels={"disk": "ssd"}), node("c")]
    assert where(reservations.decide([ssd], nodes, WALL)[DB]) == {"b": 2}
    nowhere = policy("web", units=1, nodes=selector({"disk": "tape"}))
    message = reservations.decide([ssd, nowhere], nodes, WALL)[WEB].admitted.message
    assert message == "1 unit of cpu 1 wanted; no node matches nodeSelector"


def test_a_node_that_does_not_enforce_takes_no_units(reservations: Reservations) -> None:
    nodes = [node("a", unschedulable=True), node("b", disarmed=True)]
    message = reservations.decide([policy()], nodes, WALL)[DB].admitted.message
    assert (
        message == "1 unit of cpu 1 wanted; 2 nodes match, and none takes units: they are cordoned, disarmed or silent"
    )
    nobody = Reservations(Roster()).decide([policy()], [], WALL)[DB].admitted.message
    assert nobody == "1 unit of cpu 1 wanted; no node matches yet: none has reported"


def test_many_refused_at_once_are_each_reported(reservations: Reservations) -> None:
    policies = [policy(f"p{n:02}", units=1, cpu="5", age_s=n) for n in range(30)]
    decided = reservations.decide(policies, three(), WALL)
    assert {d.admitted.reason for d in decided.values()} == {"NoRoom"}


def test_room_that_an_edit_leaves_goes_to_whoever_waited(reservations: Reservations) -> None:
    nodes, old, waits = three(), policy(units=3, cpu="3", age_s=60), policy("web", units=1, cpu="2")
    assert reservations.decide([old, waits], nodes, WALL)[WEB].admitted.status == "False"
    smaller = policy(units=3, cpu="1", age_s=60, generation=2)
    assert reservations.decide([smaller, waits], nodes, WALL + 1)[DB].generation == 2
    assert reservations.decide([smaller, waits], nodes, WALL + 2)[WEB].admitted.status == "True"


LENDING = Lending(mode="Reclaimable", within=Duration(30))


def test_what_best_effort_uses_of_unused_units_is_lent(reservations: Reservations) -> None:
    mine = policy(units=3, cpu="1", memory="4Gi", lending=LENDING)
    nodes = [node("a", best_effort="9Gi")]
    decision = reservations.decide([mine], nodes, WALL)[DB]
    assert decision.units.lent == 2, "4 GiB are nobody's; the other five stand on two units"


def test_a_unit_that_is_lent_comes_back_in_time_or_is_overdue(reservations: Reservations) -> None:
    mine = policy(units=4, cpu="1", memory="4Gi", lending=LENDING)
    reservations.decide([mine], [node("a", best_effort="14Gi")], WALL)
    takes = [node("a", charged={DB: (1, "1")}, best_effort="14Gi", heard=WALL + 60)]

    def reclaimed(wall: float, nodes: list[NodeQoS]) -> tuple[str, str, bool]:
        decision = reservations.decide([mine], nodes, wall)[DB]
        condition = decision.conditions[-1]
        return condition.type, condition.reason, decision.degraded

    assert reclaimed(WALL + LOOK_S, takes) == ("Reclaimed", "Reclaiming", False)
    assert reclaimed(WALL + LOOK_S + 31, takes) == ("Reclaimed", "Overdue", True)
    fits = [node("a", charged={DB: (1, "1")}, best_effort="12Gi", heard=WALL + 60)]
    assert reclaimed(WALL + 60, fits) == ("Reclaimed", "Returned", False)


def test_the_order_of_the_objects_does_not_matter() -> None:
    policies = [policy(f"p{n}", units=2, cpu="1500m", age_s=n % 2) for n in range(4)]
    one = Reservations(Roster(), limit_percent=100).decide(policies, three(), WALL)
    other = Reservations(Roster(), limit_percent=100).decide(policies[::-1], three()[::-1], WALL)
    assert one == other


def test_nothing_moves_while_nothing_happens(reservations: Reservations) -> None:
    policies = [policy(f"p{n}", units=3, cpu="1") for n in range(4)]
    first = reservations.decide(policies, three(), WALL)
    for n in range(1, 4):
        later = WALL + n * RETRY_S
        assert reservations.decide(policies, [_heard(x, later) for x in three()], later) == first


def _ref(name: str) -> str:
    return f"MinimalReservationPolicy/default/{name}"


def where_of(p: MinimalReservationPolicy) -> dict[str, int]:
    return {w.node: w.units for w in p.status.witness}


def _heard(obj: NodeQoS, wall: float) -> NodeQoS:
    report = replace(obj.status.node, heartbeat=datetime.fromtimestamp(wall, UTC))
    return replace(obj, status=replace(obj.status, node=report))


def _revision(p: MinimalReservationPolicy) -> PolicyRevision:
    owner = Owner(api_version=p.api_version, kind=p.kind, name=p.metadata.name, uid=p.metadata.uid)
    return PolicyRevision(
        metadata=Meta(name="db-1", namespace="default", owner_references=(owner,)),
        revision=p.metadata.generation,
        data=plain(p.spec),
    )
