"""Staged rollout: how far a revision comes, what stops it, who goes back, and what is stable."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.model.kinds import Meta, NodeQoS, Rollout
from j10ce.policy.document.document import cohort
from j10ce.policy.document.rollout import MOST_BACK, NodesSeen, advance, change, done, progressing, stage
from tests.rollout.fleet import REF, Fleet, canary

OLD, NEW = 10, 20
NODES = [f"n{n}" for n in range(200)]


def started(percent: int = 20, **more: object) -> Fleet:
    """The old weight is stable everywhere; the new one is on its way."""
    fleet = Fleet(NODES)
    fleet.edit(OLD)
    fleet.settle()
    fleet.edit(NEW, Rollout(canary_percent=percent, **more))  # type: ignore[arg-type]
    return fleet


def on(fleet: Fleet, weight: int) -> set[str]:
    return {name for name, has in fleet.weights().items() if has == weight}


def broken(name: str) -> object:
    return lambda node, weight: "cpu.weight was refused" if node == name and weight == NEW else ""


@pytest.mark.parametrize("percent", [0, 2, 20, 50, 100])
def test_the_canary_has_the_revision_and_everyone_else_the_stable_one(percent: int) -> None:
    fleet = started(percent)
    assert on(fleet, NEW) == canary(fleet, percent)
    assert on(fleet, OLD) == set(NODES) - canary(fleet, percent)
    assert abs(len(canary(fleet, percent)) - 2 * percent) <= 20


def test_a_policy_without_a_rollout_is_everywhere_at_once() -> None:
    fleet = Fleet(NODES)
    fleet.edit(OLD)
    fleet.edit(NEW)
    assert on(fleet, NEW) == set(NODES)
    assert (fleet.status.rollout.stable, fleet.reason()) == (2, "")


def test_the_first_revision_of_a_policy_leaves_the_others_without() -> None:
    fleet = Fleet(NODES)
    fleet.edit(NEW, Rollout(canary_percent=20))
    assert on(fleet, NEW) == canary(fleet, 20)
    assert on(fleet, OLD) == set()


def test_a_canary_that_holds_waits_for_the_operator() -> None:
    fleet = started(20)
    assert fleet.reason() == "Reaching"
    fleet.settle()
    assert fleet.reason() == "Canary"
    assert fleet.status.nodes.applied == fleet.status.nodes.wanted == len(canary(fleet, 20))
    assert not done(fleet.status.rollout)


def test_steps_of_one_rollout_only_add_nodes() -> None:
    fleet = started(20)
    before = on(fleet, NEW)
    for percent in (50, 100):
        fleet.settle()
        fleet.edit(NEW, Rollout(canary_percent=percent))
        assert before < on(fleet, NEW) == canary(fleet, percent)
        before = on(fleet, NEW)


def test_what_all_nodes_obey_for_a_while_is_stable() -> None:
    fleet = started(100)
    fleet.report()
    assert fleet.judge().rollout.stable == 1
    assert fleet.reason() == "Watching"
    fleet.wall += 29
    fleet.report()
    assert fleet.judge().rollout.stable == 1
    fleet.wall += 1
    fleet.report()
    assert fleet.judge().rollout.stable == 2
    assert fleet.reason() == "Complete"


def test_a_failure_stops_it_and_only_who_fails_goes_back() -> None:
    fleet = started(20)
    victim = min(canary(fleet, 20))
    fleet.settle(broken(victim))  # type: ignore[arg-type]
    assert fleet.reason() == "Stopped"
    assert fleet.status.rollout.back == (victim,)
    assert on(fleet, NEW) == canary(fleet, 20) - {victim}
    message = next(c.message for c in fleet.status.conditions if c.type == "Progressing")
    assert victim in message
    assert "cpu.weight was refused" in message


def test_going_silent_after_taking_it_is_a_failure_and_before_is_not() -> None:
    fleet = started(20)
    taken, other = min(canary(fleet, 20)), min(set(NODES) - canary(fleet, 20))
    fleet.report(silent=[other])
    fleet.judge()
    assert fleet.reason() == "Canary"
    fleet.report(silent=[taken])
    fleet.judge()
    assert fleet.reason() == "Stopped"
    assert fleet.status.rollout.back == (taken,)


def test_failures_are_only_counted_where_nobody_wants_to_stop() -> None:
    fleet = started(20, stop_on_failures=False)
    victim = min(canary(fleet, 20))
    fleet.settle(broken(victim))  # type: ignore[arg-type]
    assert (fleet.reason(), fleet.status.nodes.failing) == ("Canary", 1)
    assert on(fleet, NEW) == canary(fleet, 20)


def test_when_many_fail_all_go_back() -> None:
    fleet = started(100)
    fleet.settle(lambda node, weight: "no" if weight == NEW else "")
    assert len(NODES) > MOST_BACK
    assert (fleet.status.rollout.reached, fleet.status.rollout.back) == (0, ())
    assert on(fleet, OLD) == set(NODES)


def test_a_stop_at_a_hundred_percent_leaves_the_earlier_revision_stable() -> None:
    fleet = started(100)
    fleet.settle(broken("n1"))  # type: ignore[arg-type]
    assert fleet.status.rollout.stable == 1
    assert on(fleet, OLD) == {"n1"}


@pytest.mark.parametrize(
    "again",
    [
        pytest.param((NEW, Rollout(canary_percent=20, attempt=1)), id="another attempt"),
        pytest.param((NEW + 1, Rollout(canary_percent=20)), id="a corrected spec"),
        pytest.param((NEW, Rollout(canary_percent=20, stop_on_failures=False)), id="failures are accepted"),
    ],
)
def test_an_edit_resumes_what_stopped(again: tuple[int, Rollout]) -> None:
    fleet = started(20)
    fleet.settle(broken(min(canary(fleet, 20))))  # type: ignore[arg-type]
    fleet.edit(*again)
    assert on(fleet, again[0]) == canary(fleet, 20)
    fleet.settle()
    assert fleet.reason() == "Canary"


def test_a_pause_before_the_edit_holds_all_of_it_back() -> None:
    fleet = started(100, paused=True)
    assert on(fleet, OLD) == set(NODES)
    assert fleet.reason() == "Paused"
    fleet.edit(NEW, Rollout())
    assert on(fleet, NEW) == set(NODES)


def test_a_pause_in_the_middle_keeps_what_was_reached() -> None:
    fleet = started(20)
    fleet.settle()
    fleet.edit(NEW, Rollout(canary_percent=80, paused=True))
    assert on(fleet, NEW) == canary(fleet, 20)


def test_undoing_reaches_every_node_at_once() -> None:
    fleet = started(20)
    fleet.settle(broken(min(canary(fleet, 20))))  # type: ignore[arg-type]
    fleet.edit(OLD)
    assert on(fleet, OLD) == set(NODES)
    assert fleet.status.rollout.stable == 3


def test_a_stable_revision_that_was_lost_is_no_reason_to_drop_the_policy() -> None:
    fleet = started(20)
    fleet.delete(fleet.revisions()[0])
    assert on(fleet, NEW) == set(NODES)


def test_a_change_is_the_same_whatever_its_rollout() -> None:
    fleet = started(20)
    spec = fleet.profile.spec
    assert change(spec) == change(replace(spec, rollout=UNSET)) != change(replace(spec, priority=1))


def test_lowering_the_share_takes_the_change_from_nobody() -> None:
    fleet = started(60)
    fleet.settle()
    had = on(fleet, NEW)
    fleet.edit(NEW, Rollout(canary_percent=30))
    fleet.settle()
    assert on(fleet, NEW) == had == canary(fleet, 60)
    fleet.edit(NEW, Rollout(canary_percent=30, paused=True))
    assert on(fleet, NEW) == had


def unseen(fleet: Fleet, weight: int, rollout: Rollout) -> None:
    """An edit while nobody leads."""
    meta, spec = fleet.profile.metadata, fleet.profile.spec
    spec = replace(spec, cpu=replace(spec.cpu, weight=weight), rollout=rollout)
    fleet.put(replace(fleet.profile, metadata=replace(meta, generation=meta.generation + 1), spec=spec))


def test_an_edit_that_nobody_has_seen_reaches_nobody_and_is_not_lost() -> None:
    fleet = Fleet(NODES)
    fleet.edit(OLD)
    fleet.settle()
    unseen(fleet, NEW, Rollout(canary_percent=100))
    assert on(fleet, OLD) == set(NODES)
    fleet.judge()
    assert on(fleet, NEW) == set(NODES)


def test_a_pause_that_comes_right_after_the_edit_sends_nobody_back() -> None:
    fleet = Fleet(NODES)
    fleet.edit(OLD)
    fleet.settle()
    unseen(fleet, NEW, Rollout(canary_percent=100))
    before = fleet.weights()
    unseen(fleet, NEW, Rollout(canary_percent=100, paused=True))
    fleet.judge()
    assert fleet.weights() == before
    assert fleet.reason() == "Paused"
    fleet.edit(NEW, Rollout(canary_percent=100))
    assert on(fleet, NEW) == set(NODES)


def test_a_step_that_nobody_has_seen_waits_for_a_leader() -> None:
    fleet = started(20)
    fleet.settle()
    unseen(fleet, NEW, Rollout(canary_percent=100))
    assert on(fleet, NEW) == canary(fleet, 20)
    fleet.judge()
    assert on(fleet, NEW) == set(NODES)


def test_where_nobody_reports_nothing_succeeds() -> None:
    fleet = Fleet(NODES[:3])
    fleet.edit(OLD)
    fleet.settle()
    fleet.report(silent=fleet.names)
    fleet.wall += 60
    fleet.edit(NEW, Rollout())
    for _ in range(8):
        fleet.judge()
        fleet.wall += 10
    assert (fleet.reason(), fleet.status.rollout.stable) == ("Reaching", 1)
    for _ in range(2):
        fleet.report(lambda node, weight: "cpu.weight was refused" if weight == NEW else "")
        fleet.judge()
    assert fleet.reason() == "Stopped"
    assert on(fleet, OLD) == set(fleet.names)


def test_one_that_is_silent_is_waited_for_and_one_that_is_gone_is_not() -> None:
    fleet = Fleet(NODES[:3])
    fleet.edit(OLD)
    fleet.settle()
    fleet.report()
    gone = fleet.names.pop()  # it reports no more
    fleet.wall += 60
    fleet.report()
    fleet.edit(NEW, Rollout())
    fleet.settle()
    assert fleet.reason() == "Reaching"
    assert "1 not reporting" in next(c.message for c in fleet.status.conditions if c.type == "Progressing")
    fleet.wall += 600
    fleet.settle()
    assert (fleet.reason(), fleet.weight(gone)) == ("Complete", NEW)


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("percent", [1, 10, 40])
def test_a_share_of_few_nodes_is_one_node_at_least(size: int, percent: int) -> None:
    fleet = Fleet([f"host-{n}" for n in range(size)])
    fleet.edit(OLD)
    fleet.settle()
    fleet.edit(NEW, Rollout(canary_percent=percent))
    fleet.settle()
    taken = on(fleet, NEW)
    nearest = min(fleet.names, key=lambda n: (cohort(n, REF), n))
    assert taken == (canary(fleet, percent) or {nearest})
    assert (fleet.reason(), fleet.status.nodes.applied) == ("Canary", len(taken))
    fleet.names.append("newcomer")
    fleet.put(NodeQoS(metadata=Meta(name="newcomer")))
    fleet.settle()
    assert taken <= on(fleet, NEW) <= taken | canary(fleet, percent)


def test_a_canary_of_nobody_is_said_to_be_none() -> None:
    fleet = started(0)
    fleet.settle()
    assert (fleet.reason(), on(fleet, NEW)) == ("NoCanary", set())


# -- properties

ROLLOUTS = st.one_of(
    st.just(UNSET),
    st.builds(
        Rollout,
        canary_percent=st.integers(0, 100),
        paused=st.booleans(),
        stop_on_failures=st.booleans(),
        attempt=st.integers(0, 2),
    ),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), st.integers(1, 3), ROLLOUTS),
        st.tuples(st.just("report"), st.sets(st.integers(0, 19)), st.just(UNSET)),
        st.tuples(st.just("wait"), st.just(0), st.just(UNSET)),
    ),
    max_size=12,
)


def perform(fleet: Fleet, step: tuple[str, object, object]) -> None:
    kind, what, rollout = step
    if kind == "edit":
        fleet.edit(what, rollout)  # type: ignore[arg-type]
    elif kind == "report":
        fleet.report(lambda node, _: "broken" if int(node[1:]) in what else "")  # type: ignore[operator]
        fleet.judge()
    else:
        fleet.wall += 31
        fleet.report()
        fleet.judge()


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_whatever_happens_a_rollout_keeps_its_promises(steps: list[tuple[str, object, object]]) -> None:
    fleet = Fleet(NODES[:20])
    fleet.edit(9)
    for step in steps:
        held, before = fleet.status.rollout, set(on(fleet, fleet.profile.spec.cpu.weight or 0))
        perform(fleet, step)
        now, state = fleet.profile.spec.rollout, fleet.status.rollout
        present = on(fleet, fleet.profile.spec.cpu.weight or 0)
        assert len(set(fleet.weights().values())) <= 2, "a third revision is obeyed somewhere"
        assert len(fleet.weights()) == len(fleet.names), "a node lost the policy"
        if now is not UNSET and not done(state) and stage(fleet.profile).stable:
            earlier_says_the_same = len(set(fleet.weights().values())) == 1
            asked = max(now.canary_percent, held.reached if held.change == state.change else 0)
            assert earlier_says_the_same or present <= canary(fleet, asked) | {state.first}
        if held.change == state.change and not state.stopped:
            assert before <= present, "a node lost a change that it had"
        if held.stopped and state.stopped == held.stopped and step[0] != "edit":
            assert present <= before, "a rollout that had stopped went on"


@settings(max_examples=20, deadline=None)
@given(seen=st.builds(NodesSeen, wanted=st.integers(0, 9), applied=st.integers(0, 9)), wall=st.floats(0, 1e9))
def test_where_a_rollout_stands_is_a_function_of_objects(seen: NodesSeen, wall: float) -> None:
    fleet = started(20)
    one = advance(fleet.profile, seen, fleet.revisions(), wall, 0.0)
    assert one == advance(fleet.profile, seen, list(reversed(fleet.revisions())), wall, 0.0)
    assert progressing(fleet.profile, one, seen) == progressing(fleet.profile, one, seen)
