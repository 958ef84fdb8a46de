"""The node document: the same for the same inputs, and only what concerns the node."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.model.kinds import (
    IGNORE_LABEL,
    Condition,
    Meta,
    MinimalReservationPolicy,
    MinimalReservationPolicyStatus,
    NodeQoS,
    NodeQoSSpec,
    Owner,
    PolicyRevision,
    Rollout,
    Witness,
)
from j10ce.model.parts.progress import RolloutStatus
from j10ce.model.schema import encode, parse, plain
from j10ce.policy.document.document import NodeDocument, cohort, digest, reference, render
from j10ce.policy.document.rollout import NodesSeen, advance, change
from j10ce.policy.profiles import builtin
from j10ce.testing.build import hold, reservation, selector

NODES = [f"n{n}" for n in range(200)]


def node(name: str = "n1", **spec: Any) -> NodeQoS:
    return NodeQoS(metadata=Meta(name=name), spec=NodeQoSSpec(**spec))


def names(document: NodeDocument) -> list[str]:
    return [p.metadata.name for p in document.policies]


def full(name: str = "n1", **spec: Any) -> NodeDocument:
    policies = [reservation("b", cpu="1"), reservation("a", memory="1Gi")]
    return render(node(name, **spec), profiles=builtin(), policies=policies, holds=[hold("node", "cpu.max")])


def test_a_document_survives_being_sent() -> None:
    document = full()
    again = parse(encode(document), NodeDocument)
    assert again == document
    assert digest(again) == document.hash != ""


def test_nodes_with_the_same_inputs_share_the_hash() -> None:
    assert full("n1").hash == full("n2").hash
    assert full("n1").node != full("n2").node


def test_what_decides_nothing_does_not_move_the_hash() -> None:
    policy = reservation("r", cpu="1")
    stirred = replace(
        policy,
        metadata=replace(policy.metadata, resource_version="17", annotations={"a": "b"}),
        status=MinimalReservationPolicyStatus(phase="Active", observed_generation=3),
    )
    assert render(node(), policies=[policy]) == render(node(), policies=[stirred])


def test_what_decides_moves_the_hash() -> None:
    other = {
        full(disarmed=True).hash,
        full(unschedulable=True).hash,
        render(node()).hash,
        render(node(), policies=[reservation("r", cpu="1")]).hash,
        render(node(), policies=[reservation("r", cpu="2")]).hash,
        render(node(), policies=[reservation("r", cpu="1", ttl="1h")]).hash,
    }
    assert full().hash not in other
    assert len(other) == 6


def test_the_order_of_objects_and_labels_does_not_matter() -> None:
    a, b = reservation("a", cpu="1"), reservation("b", cpu="1")
    assert render(node(), policies=[a, b]) == render(node(), policies=[b, a])
    one, two = (reservation("r", labels=labels, cpu="1") for labels in ({"x": "1", "y": "2"}, {"y": "2", "x": "1"}))
    assert render(node(), policies=[one]).hash == render(node(), policies=[two]).hash


def test_the_node_selector_sees_the_name_and_both_kinds_of_labels() -> None:
    by_name = reservation("by-name", cpu="1", nodes=selector({"kubernetes.io/hostname": "n1"}))
    by_zone = reservation("by-zone", cpu="1", nodes=selector({"zone": "a"}))
    policies = [by_name, by_zone, reservation("everywhere", cpu="1")]
    assert names(render(node("n1"), policies=policies)) == ["by-name", "everywhere"]
    assert names(render(node("n2", labels={"zone": "a"}), policies=policies)) == ["by-zone", "everywhere"]
    reported = NodeQoS(metadata=Meta(name="n3", labels={"zone": "a"}), spec=NodeQoSSpec(labels={"zone": "b"}))
    assert names(render(reported, policies=policies)) == ["everywhere"]


def test_an_ignored_node_is_disarmed() -> None:
    assert render(node(labels={IGNORE_LABEL: "true"})).spec.disarmed is True
    assert render(node(labels={IGNORE_LABEL: "false"})).spec.disarmed is False


ADMITTED = Condition(type="Admitted", status="True")


def test_units_are_those_that_the_witness_places_here() -> None:
    policy = reservation("r", cpu="1", units=5)
    witness = (Witness(node="n1", units=2), Witness(node="n2", units=3))
    placed = replace(policy, status=MinimalReservationPolicyStatus(conditions=(ADMITTED,), witness=witness))
    documents = {n: render(node(n), policies=[placed]) for n in ("n1", "n2", "n3")}
    source = "MinimalReservationPolicy/default/r"
    assert {n: d.units for n, d in documents.items()} == {"n1": {source: 2}, "n2": {source: 3}, "n3": {}}
    assert {d.policies[0].spec.units for d in documents.values()} == {0}


def test_before_the_fleet_has_judged_a_node_stands_alone() -> None:
    policy = reservation("r", cpu="1", units=5)
    assert render(node(), policies=[policy]).policies[0].spec.units == 5


def test_a_policy_that_is_not_admitted_holds_no_units() -> None:
    refused = Condition(type="Admitted", status="False", reason="NoRoom")
    policy = replace(reservation("r", cpu="1", units=5), status=MinimalReservationPolicyStatus(conditions=(refused,)))
    document = render(node(), policies=[policy])
    assert (document.policies[0].spec.units, document.units) == (0, {})


def test_an_edit_that_the_fleet_refused_leaves_its_predecessor_in_force() -> None:
    def db(generation: int, cpu: str) -> MinimalReservationPolicy:
        made = reservation("r", cpu=cpu, units=5)
        return replace(made, metadata=replace(made.metadata, uid="u1", generation=generation))

    status = MinimalReservationPolicyStatus(
        conditions=(ADMITTED,), admitted_generation=2, witness=(Witness(node="n1", units=5),)
    )
    edited = replace(db(3, "9"), status=status)
    revisions = [revision(n, db(n, cpu)) for n, cpu in ((1, "1"), (2, "2"), (3, "9"))]
    document = render(node(), policies=[edited], revisions=revisions)
    assert document.policies[0].spec.minimum == reservation(cpu="2").spec.minimum
    assert document.policies[0].metadata.generation == 2
    assert document.units == {"MinimalReservationPolicy/default/r": 5}


def test_a_rollout_reaches_about_its_share_of_the_nodes_and_only_grows() -> None:
    reached: set[str] = set()
    for percent in (0, 10, 50, 100):
        policy = reservation("r", cpu="1", rollout=Rollout(canary_percent=percent))
        state = RolloutStatus(revision=1, change=change(policy.spec), reached=percent)
        policy = replace(policy, status=replace(policy.status, rollout=state))
        got = {n for n in NODES if names(render(node(n), policies=[policy]))}
        assert reached <= got
        assert abs(len(got) - len(NODES) * percent / 100) <= 20
        reached = got


def test_a_node_that_the_rollout_has_not_reached_keeps_the_earlier_revision() -> None:
    policy = canary(generation=3, cpu="2", percent=0)
    revisions = [revision(3, canary(3, "2", 0)), revision(2, canary(2, "9", 0)), revision(1, canary(1, "1", 100))]
    kept = render(node(), policies=[policy], revisions=revisions).policies[0]
    assert (kept.spec.minimum, kept.metadata.generation) == (reservation(cpu="1").spec.minimum, 1)
    canaries = [revisions[1], revision(1, canary(1, "1", 0))]
    assert render(node(), policies=[policy], revisions=canaries).policies == (), "it was never meant for this node"
    arrived = replace(policy, spec=replace(policy.spec, rollout=UNSET))
    assert render(node(), policies=[arrived], revisions=revisions).policies[0].metadata.generation == 3


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param((), id="no revision"),
        pytest.param((2,), id="a canary after one that nobody recorded"),
        pytest.param((2, 2, 3), id="a canary twice, and the present one"),
        pytest.param((1, 2), id="a canary after one that this release cannot read"),
    ],
)
def test_a_canary_takes_no_floor_from_nodes_whose_earlier_revision_nobody_kept(kept: tuple[int, ...]) -> None:
    """Generation 1 was everywhere, and the leader ended before it recorded it."""
    policy = canary(3, "2", 0)
    unreadable = replace(revision(1, canary(1, "1", 100)), data={"minimum": "of another release"})
    revisions = [unreadable if n == 1 else revision(n, canary(n, "9", 0)) for n in kept]
    assert [p.metadata.generation for p in render(node(), policies=[policy], revisions=revisions).policies] == [3]
    assert advance(policy, NodesSeen(), revisions, 0.0, 0.0).reached == 100


def test_a_canary_that_was_never_anything_else_reaches_no_other_node() -> None:
    policy, revisions = canary(3, "2", 0), [revision(n, canary(n, "9", 50)) for n in (1, 2)]
    assert render(node(), policies=[policy], revisions=revisions).policies == ()
    assert advance(policy, NodesSeen(), revisions, 0.0, 0.0).stable == 0


def canary(generation: int, cpu: str, percent: int) -> MinimalReservationPolicy:
    policy = reservation("r", cpu=cpu, rollout=Rollout(canary_percent=percent))
    return replace(policy, metadata=replace(policy.metadata, uid="u1", generation=generation))


def revision(number: int, of: MinimalReservationPolicy) -> PolicyRevision:
    owner = Owner(api_version=of.api_version, kind=of.kind, name="r", uid="u1")
    meta = Meta(name=f"r-{number}", namespace="default", owner_references=(owner,))
    return PolicyRevision(metadata=meta, revision=number, data=plain(of.spec))


@given(st.text(), st.text())
def test_a_cohort_is_a_percentage(node_name: str, policy: str) -> None:
    assert 0 <= cohort(node_name, policy) < 100
    assert cohort(node_name, policy) == cohort(node_name, policy)


def test_cohorts_are_the_same_on_every_machine_and_differ_by_policy() -> None:
    assert [cohort("n1", "QoSProfile/ls"), cohort("n2", "QoSProfile/ls")] == [77, 39]
    assert len({cohort("n1", f"QoSProfile/p{n}") for n in range(50)}) > 20


def test_objects_are_named_by_kind_namespace_and_name() -> None:
    assert reference(reservation("db", namespace="pay", cpu="1")) == "MinimalReservationPolicy/pay/db"
    assert reference(builtin()[0]) == "QoSProfile/system"


def test_a_hold_of_one_node_is_sent_to_that_node_alone() -> None:
    everywhere, here = hold("workload/default/web", "cpu.max"), hold("workload/default/db", "cpu.max")
    here = replace(here, spec=replace(here.spec, node="n1"))
    document = {n: {h.spec.target for h in render(node(n), holds=[everywhere, here]).holds} for n in ("n1", "n2")}
    assert document == {"n1": {"workload/default/web", "workload/default/db"}, "n2": {"workload/default/web"}}


@pytest.mark.parametrize("target", ["workload/default/web", "part/default/web/app", "node", "group/system.slice"])
def test_a_hold_reaches_no_further_than_its_namespace(target: str) -> None:
    held = [hold(target, "cpu.max", name=where, namespace=where) for where in ("shop", "default", "j10ce-system")]
    own = {"default"} if "default" in target else set()
    document = render(node(), holds=held)
    assert {h.metadata.namespace for h in document.holds} == {"j10ce-system", *own}


def test_what_an_agents_account_tells_others_of_cuts_no_floor() -> None:
    stolen = hold("workload/default/web", "cpu.max", value="1000")
    by_hand = replace(stolen, spec=replace(stolen.spec, breaks_reservation=True, who="alice"))
    who = "root (system:serviceaccount:j10ce-system:j10ce-agent)"
    by_agent = replace(by_hand, spec=replace(by_hand.spec, who=who))
    cuts = [render(node(), holds=[made]).holds[0].spec.breaks_reservation for made in (by_hand, by_agent)]
    assert cuts == [True, False]
