"""Documents kept change by change are what the pure function says, and only those concerned are woken."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.manager.documents import fragments
from j10ce.manager.documents.documents import Documents
from j10ce.model.kinds import (
    Condition,
    Hold,
    HoldSpec,
    Meta,
    MinimalReservationPolicy,
    MinimalReservationPolicyStatus,
    NodeQoS,
    NodeQoSSpec,
    NodeStrategy,
    Object,
    PolicyRevision,
    PolicyStatus,
    QoSProfile,
    Rollout,
    Witness,
)
from j10ce.model.parts.progress import RolloutStatus
from j10ce.model.schema import parse
from j10ce.model.stored import Event, Key, key_of
from j10ce.policy.document.change import NodeChange, changed
from j10ce.policy.document.document import FORMAT, FORMATS, HOSTNAME_LABEL, NodeDocument, digest, knows, render
from j10ce.policy.document.rollout import change
from j10ce.policy.lifetime import revision_of
from j10ce.policy.strategy import merged
from j10ce.testing.build import profile, reservation, selector, strategy

NODES = [f"n{n}" for n in range(8)]
UNKNOWN = "stranger"
SELECTORS = st.sampled_from(
    [UNSET, selector({"zone": "a"}), selector({HOSTNAME_LABEL: "n1"}), selector(None, ("zone", "NotIn", ["a"]))]
)
ROLLOUTS = st.one_of(st.just(UNSET), st.builds(Rollout, canary_percent=st.integers(0, 100), paused=st.booleans()))
STATES = st.builds(
    RolloutStatus,
    revision=st.integers(0, 3),
    reached=st.integers(0, 100),
    stable=st.integers(0, 3),
    stopped=st.sampled_from(["", "broken"]),
    back=st.sampled_from([(), ("n1",), ("n1", "n2")]),
)


def in_format(document: NodeDocument, format_: int) -> NodeDocument:
    """The same for an agent that reads an earlier format: without what that one does not know."""
    older = replace(document, format=format_, strategies=document.strategies if knows(format_, "NodeStrategy") else ())
    return replace(older, hash=digest(older))


@st.composite
def policies(draw: st.DrawFn) -> MinimalReservationPolicy:
    name, generation = draw(st.sampled_from("abc")), draw(st.integers(1, 3))
    made = reservation(
        name,
        cpu=str(draw(st.integers(1, 3))),
        units=draw(st.integers(0, 2)),
        nodes=draw(SELECTORS),
        rollout=draw(ROLLOUTS),
    )
    state = draw(STATES)
    state = replace(state, change=change(made.spec)) if draw(st.booleans()) else state
    status = MinimalReservationPolicyStatus(
        rollout=state,
        conditions=(Condition(type="Admitted", status="True"),) if draw(st.booleans()) else (),
        witness=tuple(Witness(node=n, units=draw(st.integers(1, 3))) for n in draw(st.sets(st.sampled_from(NODES)))),
        admitted_generation=draw(st.integers(0, 3)),
    )
    meta = replace(made.metadata, uid=f"u-{name}", generation=generation)
    return replace(made, metadata=meta, status=status)


@st.composite
def strategies(draw: st.DrawFn) -> NodeStrategy:
    percent = {"suppress": {"thresholdPercent": draw(st.integers(0, 3))}}
    made = strategy(draw(st.sampled_from("st")), percent, priority=draw(st.integers(0, 1)), generation=2)
    made = replace(made, spec=replace(made.spec, node_selector=draw(SELECTORS), rollout=draw(ROLLOUTS)))
    state = replace(draw(STATES), change=change(made.spec)) if draw(st.booleans()) else draw(STATES)
    meta = replace(made.metadata, generation=draw(st.integers(1, 3)))
    return replace(made, metadata=meta, status=PolicyStatus(rollout=state))


@st.composite
def holds(draw: st.DrawFn) -> Hold:
    until = datetime(2026, 2, 1, tzinfo=UTC)
    node = draw(st.sampled_from(["", "n1", "n2", UNKNOWN]))
    spec = HoldSpec(target="workload/default/web", knobs=("cpu.max",), expires=until, why="test", node=node)
    return Hold(metadata=Meta(name=draw(st.sampled_from("xy")), namespace="default"), spec=spec)


@st.composite
def nodes(draw: st.DrawFn) -> NodeQoS:
    labels = draw(st.sampled_from([{}, {"zone": "a"}, {"zone": "b"}]))
    spec = NodeQoSSpec(labels=labels, disarmed=draw(st.booleans()))
    return NodeQoS(metadata=Meta(name=draw(st.sampled_from(NODES))), spec=spec)


OBJECTS: st.SearchStrategy[Object] = st.one_of(
    policies(),
    policies().map(revision_of),
    strategies(),
    strategies().map(revision_of),
    holds(),
    nodes(),
    st.sampled_from("pq").map(profile),
)
CHANGES = st.lists(st.tuples(OBJECTS, st.booleans()), max_size=25)


class World:
    """A store's objects, and what watchers hear of their changes."""

    def __init__(self) -> None:
        self.held: dict[Key, Object] = {}
        self.documents = Documents()

    def change(self, obj: Object, delete: bool) -> set[str] | None:
        old = self.held.pop(key_of(obj), None)
        if delete and old is None:
            return set()
        if not delete:
            self.held[key_of(obj)] = obj
        kind: Any = "DELETED" if delete else "MODIFIED" if old else "ADDED"
        return self.documents.take(Event(kind, old if delete and old else obj, "", old))

    def rendered(self, name: str) -> NodeDocument:
        def of(kind: type) -> list[Any]:
            return [obj for obj in self.held.values() if isinstance(obj, kind)]

        node = next((n for n in of(NodeQoS) if n.metadata.name == name), NodeQoS(metadata=Meta(name=name)))
        return render(
            node,
            profiles=of(QoSProfile),
            policies=of(MinimalReservationPolicy),
            strategies=of(NodeStrategy),
            holds=of(Hold),
            revisions=of(PolicyRevision),
        )


@given(CHANGES)
def test_after_every_change_each_document_is_what_the_pure_function_says(changes: list[tuple[Object, bool]]) -> None:
    world = World()
    world.documents.follow("n7")
    before = {name: world.documents.of(name).hash for name in (*NODES, UNKNOWN)}
    for obj, delete in changes:
        touched = world.change(obj, delete)
        for name in (*NODES, UNKNOWN):
            document = world.documents.of(name)
            whole = parse(document.data, NodeDocument)
            assert whole == world.rendered(name)
            for format_ in FORMATS:
                older = parse(world.documents.of(name, format_).data, NodeDocument)
                assert older == in_format(whole, format_)
            assert world.documents.strategy(name) == merged(whole.strategies)
            known = name == "n7" or Key("NodeQoS", "", name) in world.held
            if document.hash != before[name] and known:
                assert touched is None or name in touched, "a node would not have been woken"
            before[name] = document.hash


@given(CHANGES, st.integers(1, 3), st.sampled_from(FORMATS))
def test_a_document_and_its_changes_lead_to_the_same_as_the_whole(
    changes: list[tuple[Object, bool]], together: int, format_: int
) -> None:
    """Whether an agent hears of every change alone or of several at once, and whatever format it reads."""
    world = World()
    world.documents.follow("n1")
    held, mark = in_format(world.rendered("n1"), format_), world.documents.mark("n1")
    for n, (obj, delete) in enumerate(changes):
        world.change(obj, delete)
        document = world.documents.of("n1", format_)
        if n % together or document.hash == held.hash:
            continue
        change = world.documents.change("n1", mark, format_)
        assert change is not None
        step = parse(b'%s,"since":"%s"%s' % (document.head, held.hash.encode(), change), NodeChange)
        assert changed(held, step) == in_format(world.rendered("n1"), format_)
        assert changed(replace(held, hash="another"), step) is None
        held, mark = in_format(world.rendered("n1"), format_), world.documents.mark("n1")


def test_an_agent_that_reads_the_format_before_is_not_woken_by_strategies() -> None:
    world = World()
    world.documents.follow("n1")
    before = world.documents.of("n1", FORMAT - 1)
    world.change(strategy("s", {"suppress": {"mode": "quota"}}), False)
    after = world.documents.of("n1", FORMAT - 1)
    assert after.hash == before.hash
    assert b"strategies" not in after.data
    assert b'"mode":"quota"' in world.documents.of("n1").data


def test_a_change_tells_what_changed_and_nothing_else() -> None:
    world = World()
    world.documents.follow("n1")
    for name in ("a", "b", "c"):
        world.change(reservation(name), False)
    mark = world.documents.mark("n1")
    world.change(reservation("b", cpu="7"), False)
    world.change(reservation("c"), True)
    end = world.documents.change("n1", mark) or b""
    parsed = parse(b'{"node":"n1","hash":"","since":"","format":2' + end, NodeChange)
    assert [policy.metadata.name for policy in parsed.policies] == ["b"]
    assert parsed.gone == ("MinimalReservationPolicy/default/c",)


def test_who_lags_too_far_behind_hears_everything() -> None:
    world = World()
    mark = world.documents.mark("n1")
    for n in range(fragments.MOST_CHANGES + 1):
        world.change(reservation("db", cpu=str(n + 1)), False)
    assert world.documents.change("n1", mark) is None


def test_nodes_of_equal_inputs_share_one_body() -> None:
    world = World()
    for name in NODES:
        world.change(NodeQoS(metadata=Meta(name=name)), False)
    world.change(profile("p"), False)
    bodies = [world.documents.of(name).content.body for name in NODES]
    assert all(body is bodies[0] for body in bodies)
    assert len({world.documents.of(name).hash for name in NODES}) == 1


def test_a_policy_of_one_node_touches_that_node_alone() -> None:
    world = World()
    for name in NODES:
        world.change(NodeQoS(metadata=Meta(name=name)), False)
    placed = reservation("placed", cpu="1", nodes=selector({HOSTNAME_LABEL: "n3"}))
    assert world.change(placed, False) == {"n3"}
    assert world.change(placed, True) == {"n3"}


def test_a_unit_that_moves_touches_the_two_nodes_between_which_it_moves() -> None:
    def db(*witness: Witness) -> MinimalReservationPolicy:
        status = MinimalReservationPolicyStatus(
            conditions=(Condition(type="Admitted", status="True"),), witness=witness, admitted_generation=1
        )
        made = reservation("db", cpu="1", units=1)
        return replace(made, metadata=replace(made.metadata, uid="u", generation=1), status=status)

    world = World()
    for name in NODES:
        world.change(NodeQoS(metadata=Meta(name=name)), False)
    world.change(db(Witness(node="n1", units=1)), False)
    assert world.change(db(Witness(node="n2", units=1)), False) == {"n1", "n2"}
    assert world.documents.of("n3").content is world.documents.of("n2").content


def test_a_node_that_nobody_follows_leaves_nothing_behind() -> None:
    documents = Documents()
    documents.follow("n1")
    documents.follow("n1")
    documents.unfollow("n1")
    documents.unfollow("n1")
    assert documents.of("n1").hash == documents.of("n2").hash
    assert not documents._nodes
