"""Which node is chosen, and what is said about each."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from j10ce.model.kinds import (
    PROFILE_LABEL,
    Condition,
    Lending,
    MinimalReservationPolicy,
    NodeQoS,
    ReservationReport,
    Tier,
)
from j10ce.scheduler.place.demand import Request
from j10ce.scheduler.place.fit import FILTERS
from j10ce.scheduler.place.place import place
from j10ce.scheduler.place.score import SCORERS, Balanced, Weighed
from j10ce.testing.build import WALL, reservation, selector
from tests.scheduler.place.fleet import asked, fleet, node, witnessed

DB = "MinimalReservationPolicy/default/db"
HELD = ReservationReport(source=DB, units=2, used=1)


def db(**units: int) -> MinimalReservationPolicy:
    return witnessed(reservation("db", labels={"app": "db"}, cpu="2", memory="4Gi", units=sum(units.values())), **units)


@pytest.mark.parametrize(
    ("at", "wanted", "by", "reason"),
    [
        pytest.param(node(), asked(on="n2", cpu="1"), "named", "spec.node asks for n2", id="another one is named"),
        pytest.param(
            node(heard=WALL - 41), asked(cpu="1"), "ready", "its agent is silent for 41 s or more", id="silent"
        ),
        pytest.param(
            node(cordoned=True),
            asked(cpu="1"),
            "open",
            "it is cordoned; `j10ce-qos uncordon n1` opens it",
            id="cordoned",
        ),
        pytest.param(
            node(labels={"zone": "a"}),
            asked(cpu="1", nodes={"zone": "b"}),
            "selected",
            "its labels do not match spec.nodeSelector",
            id="another zone",
        ),
        pytest.param(
            node(lacking=("memory.min", "memory.low")),
            asked(memory="1Gi"),
            "able",
            "its kernel cannot keep the floor: a memory floor needs memory.min or memory.low",
            id="an old kernel",
        ),
        pytest.param(
            node(armed=False),
            asked(cpu="1"),
            "able",
            "its agent is not armed, so no floor would be kept there",
            id="disarmed",
        ),
        pytest.param(
            node(reserved={"cpu": "5"}),
            asked(cpu="3"),
            "room",
            "cpu 3 wanted, 2600m free of 7600m",
            id="promised to others",
        ),
        pytest.param(
            node(),
            asked(network="100Mbit"),
            "room",
            "network 100Mbit wanted, and it has no measure of network",
            id="a resource without measure",
        ),
        pytest.param(
            node(overcommit={"batch-cpu": "1", "batch-memory": "1Gi"}),
            asked(labels={PROFILE_LABEL: "be"}, requests={"cpu": "2"}),
            "spare",
            "cpu 2 wanted by best effort, 1 reclaimable",
            id="best effort beyond what is reclaimable",
        ),
    ],
)
def test_a_node_is_turned_down_with_the_numbers(at: NodeQoS, wanted: Request, by: str, reason: str) -> None:
    decision = place(wanted, fleet(at))
    verdict = decision.verdict(0)
    assert (decision.chosen, verdict.fits, verdict.refused_by, verdict.reason) == ("", False, (by,), reason)
    assert decision.refused == {by: 1}
    assert str(decision) == f"none of 1 nodes fits (turned down by {by} 1); n1: {reason}"


def test_every_objection_is_reported() -> None:
    verdict = place(asked(cpu="9"), fleet(node(cordoned=True, heard=WALL - 60))).verdict(0)
    assert verdict.refused_by == ("ready", "open", "room")
    assert verdict.reason.count(";") == 3


def test_an_empty_fleet_says_so() -> None:
    assert str(place(asked(cpu="1"), fleet())) == "no node has ever reported"


def test_a_floor_that_no_kernel_keeps_can_be_accepted_knowingly() -> None:
    old = fleet(node(lacking=("memory.min", "memory.low")))
    assert place(asked(memory="1Gi"), old).chosen == ""
    assert place(asked(memory="1Gi")._replace(unenforced=True), old).chosen == "n1"


def test_the_node_with_the_least_promised_wins() -> None:
    cluster = fleet(node("n1", reserved={"cpu": "4"}), node("n2", reserved={"cpu": "1"}), node("n3"))
    assert place(asked(cpu="1"), cluster).chosen == "n3"


def test_ties_go_to_the_first_name() -> None:
    decision = place(asked(cpu="1"), fleet(node("b"), node("c"), node("a")))
    assert [decision.cluster.names[n] for n in decision.ranking] == ["a", "b", "c"]


def test_a_request_of_a_reserving_profile_is_a_floor() -> None:
    wanted = asked(requests={"cpu": "9"})
    assert place(wanted, fleet(node())).chosen == "n1"
    assert place(wanted._replace(tier=Tier.RESERVED), fleet(node())).refused == {"room": 1}


def test_a_percentage_is_of_each_node() -> None:
    cluster = fleet(node("large", cpu="64", reserved={"cpu": "30"}), node("small", cpu="8", reserved={"cpu": "3"}))
    decision = place(asked(cpu="50%"), cluster)
    assert [cluster.names[n] for n in decision.ranking] == ["small"]
    assert "cpu 32 wanted" in decision.verdict(0).reason


# -- the witness of reservations


def test_a_holder_lands_on_its_unit() -> None:
    cluster = fleet(node("n1"), node("n2", reserved={"cpu": "7"}), policies=(db(n2=1),))
    decision = place(asked("db-0", labels={"app": "db"}), cluster)
    assert decision.chosen == "n2"
    best = decision.verdict(decision.ranking[0])
    assert best.scores[0].why == f"takes one of 1 unused units of {DB}"


def test_others_find_no_room_where_units_are_held() -> None:
    cluster = fleet(node("n1", cpu="4"), policies=(db(n1=1),))
    decision = place(asked(cpu="2"), cluster)
    assert decision.chosen == ""
    assert decision.verdict(0).reason == f"cpu 2 wanted, 1800m free of 3800m, held unused by {DB} 2"


def test_units_that_the_agent_reports_are_counted_once() -> None:
    reporting = node("n1", reserved={"cpu": "4", "memory": "8Gi"}, reservations=(HELD,))
    cluster = fleet(reporting, policies=(db(n1=2),))
    assert cluster.promised[0].tolist()[:2] == [4000, 8 << 30]
    assert dict(cluster.policies[0].unused) == {0: 1}


@pytest.mark.parametrize("reason", ["Expired", "NoRoom"])
def test_a_policy_that_is_not_in_force_holds_nothing(reason: str) -> None:
    refused = Condition(type="Admitted", status="False", reason=reason)
    policy = db(n1=1)
    policy = replace(policy, status=replace(policy.status, conditions=(refused,), admitted_generation=0))
    assert not fleet(node("n1"), policies=(policy,)).promised.any()


def test_an_expired_policy_holds_nothing_before_anyone_says_so() -> None:
    policy = witnessed(reservation("db", cpu="2", units=1, ttl="10m"), n1=1)
    assert fleet(node(), policies=(policy,), wall=WALL + 599).promised.any()
    assert not fleet(node(), policies=(policy,), wall=WALL + 600).promised.any()


def test_a_policy_binds_only_where_its_nodes_are() -> None:
    policy = reservation("db", labels={"app": "db"}, cpu="7", nodes=selector({"zone": "a"}))
    cluster = fleet(
        node("n1", labels={"zone": "a"}, reserved={"cpu": "1"}), node("n2", reserved={"cpu": "7"}), policies=(policy,)
    )
    assert place(asked(labels={"app": "db"}), cluster).chosen == "n2"


def test_lent_units_make_a_node_less_attractive() -> None:
    lending = reservation("db", namespace="other", cpu="2", units=1, lending=Lending(mode="Reclaimable"))
    lent = witnessed(lending, n1=1)
    cluster = fleet(node("n1"), node("n2", reserved={"cpu": "2"}), policies=(lent,))
    decision = place(asked(cpu="1"), cluster)
    scores = {v.node: {s.name: s for s in v.scores} for v in decision.verdicts(10)}
    assert scores["n1"]["unlent"].points < scores["n2"]["unlent"].points
    assert scores["n1"]["unlent"].why == "may be lent: cpu 2"
    assert decision.chosen == "n2"


# -- plugins


def test_filters_and_scorers_are_what_the_caller_says() -> None:
    cluster = fleet(node("n1", cordoned=True), node("n2", reserved={"cpu": "4"}))
    without_cordon = [f for f in FILTERS if f.name != "open"]
    assert place(asked(cpu="1"), cluster, without_cordon).chosen == "n1"
    decision = place(asked(cpu="1"), cluster, FILTERS, [Weighed(Balanced(), 1.0)])
    assert [s.name for s in decision.verdict(1).scores] == ["balanced"]


def test_the_names_of_plugins_are_unique() -> None:
    names = [f.name for f in FILTERS] + [w.scorer.name for w in SCORERS]
    assert len(set(names)) == len(names)
