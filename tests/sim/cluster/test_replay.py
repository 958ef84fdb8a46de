"""A run is what a cluster would do: every second of every pod is somewhere, and the same seed gives the same run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from j10ce.errors import QosError
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cluster import Rows
from j10ce.scheduler.cycle.framework import Candidate, Preemptor
from j10ce.scheduler.cycle.profile import profile
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit
from j10ce.sim.cluster.actors import SCHEDULER, nodes
from j10ce.sim.cluster.given.arrivals import arrivals
from j10ce.sim.cluster.given.source import checked
from j10ce.sim.cluster.outcome import RunResult
from j10ce.sim.cluster.replay import Replay
from j10ce.sim.cluster.simulate import simulate


class Strongest:
    """Whoever has the higher priority has the first pod of a lower one sent away."""

    name = "strongest"

    def post_filter(self, pod: PodFacts, rows: Rows, cycle: Preemptor, now: float, /) -> Candidate | str:
        for row in np.sort(rows):
            for victim in list(cycle.book.there(row)):
                if victim.priority < pod.priority:
                    with cycle.book.without([victim]):
                        if cycle.fits(pod, row):
                            return Candidate(cycle.book.names[row], (victim,), {})
        return "nobody is weaker"


def run(scenario: dict[str, Any], *plugins: object, seed: int = 1) -> RunResult:
    made, findings = checked({"arrivals": {"order": "listed", "every": "0s"}, **scenario})
    assert made is not None, findings
    scheduler = Scheduler([profile(SCHEDULER, [NodeResourcesFit(), *plugins])])
    return Replay(made, arrivals(made, seed), scheduler, seed).run()


def owner(name: str, of: str = "web", **more: Any) -> dict[str, Any]:
    return {"name": name, "class": of, "cpu": 1, **more}


def cluster(*owners: dict[str, Any], cpus: Sequence[int] = (1,), **more: Any) -> dict[str, Any]:
    nodes = [{"name": f"n{n}", "cpu": cpu, "memory": "1Gi"} for n, cpu in enumerate(cpus)]
    classes = {"web": {"slo": 0.9, "priority": 5}, "low": {"slo": 0.5, "priority": 1}}
    return {"horizon": "100s", "nodes": nodes, "classes": classes, "owners": list(owners), **more}


def test_starting_counts_as_waiting() -> None:
    result = run(cluster(owner("a"), startOverhead={"2s": 1}, moreOverhead="1s"))
    assert result.classes["web"]["availability"] == pytest.approx(0.97)
    assert result.totals["utilisation"] == pytest.approx(0.97)
    assert result.totals["starts"] == 1


def test_who_finds_no_room_waits_until_there_is_some() -> None:
    result = run(cluster(owner("a", duration="40s"), owner("b", at="10s")))
    assert {o.name: o.availability for o in result.owners} == pytest.approx({"a": 1.0, "b": 60 / 90})


def test_a_binding_takes_as_long_as_it_is_said_to() -> None:
    result = run(cluster(owner("a"), bindLatency="10s"))
    assert result.classes["web"]["availability"] == pytest.approx(0.9)


def test_a_job_is_over_when_all_its_pods_succeeded() -> None:
    job = owner("j", kind="Job", duration="10s", replicas=2, completions=5)
    result = run(cluster(job, owner("after", at="1s"), cpus=(2,)))
    assert {o.name: o.availability for o in result.owners} == pytest.approx({"j": 50 / 70, "after": 90 / 99})
    assert {o.name: o.starts for o in result.owners} == {"j": 5, "after": 1}


def test_a_pod_of_a_job_that_was_killed_begins_anew_and_what_it_did_is_lost() -> None:
    job = owner("j", "low", kind="Job", duration="30s")
    result = run(cluster(job, owner("a", at="20s", duration="10s")), Strongest())
    low = result.classes["low"]
    assert (low["preemptions"], low["starts"], low["pods"]) == (1, 2, 2)
    assert low["availability"] == pytest.approx(30 / 60)


def test_the_owner_of_a_victim_has_another_pod_at_once() -> None:
    result = run(cluster(owner("b", "low"), owner("a", at="20s", duration="30s")), Strongest())
    low = result.classes["low"]
    assert (low["preemptions"], low["pods"], low["zeroRuns"]) == (1, 2, 0)
    assert low["availability"] == pytest.approx(70 / 100)
    assert result.classes["web"]["availability"] == pytest.approx(1.0)


def test_a_victim_that_never_ran_is_a_run_of_no_length() -> None:
    result = run(cluster(owner("b", "low"), owner("a", at="1s"), startOverhead={"2s": 1}), Strongest())
    assert result.classes["low"]["zeroRuns"] == 1
    assert result.classes["low"]["availability"] == 0.0


def test_pods_that_go_for_each_other_in_turns_let_time_pass() -> None:
    """Classic, as the plugin of old has it without a minimum: whoever has just been bound may go at once."""
    said = cluster(
        *(owner(name, "low") for name in "abc"), cpus=(2,), startOverhead={"2s": 1}, arrivals={"every": "2s"}
    )
    result = simulate({**said, "policies": {"classic": {"minimumRunningTime": "0s"}}}, "classic")
    assert 100 < result.totals["preemptions"] < 600
    assert result.totals["zeroRuns"] > 100


def test_a_victim_may_take_its_time_and_the_next_pod_too() -> None:
    result = run(cluster(owner("b", "low"), owner("a", at="20s"), terminationGrace="5s"), Strongest())
    assert {o.name: o.availability for o in result.owners} == pytest.approx({"a": 75 / 80, "b": 25 / 105})
    result = run(cluster(owner("b", "low"), owner("a", at="20s", duration="10s"), recreateAfter="30s"), Strongest())
    assert {o.name: o.availability for o in result.owners} == pytest.approx({"a": 1.0, "b": 0.7})


def test_the_next_pod_of_a_stateful_set_waits_for_the_end_of_the_one_before() -> None:
    grace = {"terminationGrace": "5s"}
    result = run(cluster(owner("b", "low", kind="StatefulSet"), owner("a", at="20s"), **grace), Strongest())
    assert {o.name: o.availability for o in result.owners} == pytest.approx({"a": 75 / 80, "b": 25 / 100})


def test_a_pod_by_itself_does_not_come_back() -> None:
    result = run(cluster(owner("b", "low", kind="Pod"), owner("a", at="20s")), Strongest())
    assert (result.classes["low"]["pods"], result.classes["low"]["availability"]) == (1, 1.0)


def test_pods_of_a_node_that_fails_are_gone_and_come_back_with_it() -> None:
    failure = {"node": "n0", "at": "20s", "for": "30s"}
    result = run(cluster(owner("a"), failures=[failure]))
    web = result.classes["web"]
    assert (web["availability"], web["starts"], web["preemptions"]) == (pytest.approx(0.7), 2, 0)
    assert result.totals["utilisation"] == pytest.approx(1.0)


def test_failures_by_chance_are_those_of_the_seed() -> None:
    said = cluster(owner("a", replicas=3), cpus=(1, 1, 1), failures=[{"every": "10s", "for": "5s"}])
    first, again, other = (run(said, seed=seed).classes for seed in (1, 1, 2))
    assert first == again != other
    assert 3 < first["web"]["starts"] < 40


def test_a_node_that_is_drained_takes_no_pod() -> None:
    made, _ = checked(cluster(owner("a", replicas=3), cpus=(1, 1, 1), drain=["n1"]))
    assert made is not None
    assert [node.unschedulable for node in nodes(made)] == [False, True, False]


def test_a_policy_that_never_comes_to_rest_is_named_as_such() -> None:
    class Restless(Scheduler):
        def next_at(self, now: float) -> float:
            return now

    made, _ = checked(cluster(owner("a")))
    assert made is not None
    with pytest.raises(QosError, match="does not come to rest"):
        Replay(made, arrivals(made, 1), Restless([profile(SCHEDULER, [NodeResourcesFit()])]), 1).run()


OWNERS = st.builds(
    owner,
    st.just("x"),
    st.sampled_from(["web", "low"]),
    cpu=st.sampled_from(["500m", 1, 2]),
    replicas=st.integers(1, 4),
    count=st.integers(1, 3),
    kind=st.sampled_from(["Deployment", "StatefulSet", "Job", "Pod"]),
    duration=st.sampled_from(["5s", "20s", "70s"]),
    at=st.sampled_from(["0s", "7s", "30s"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(OWNERS, min_size=1, max_size=5), st.sampled_from(["0s", "3s"]), st.integers(0, 3))
def test_nobody_runs_where_there_is_no_room(owners: list[dict[str, Any]], grace: str, seed: int) -> None:
    named = [{**o, "name": f"o{n}"} for n, o in enumerate(owners)]
    failures = [{"every": "30s", "for": "5s"}]
    said = cluster(*named, cpus=(2, 1), terminationGrace=grace, startOverhead={"1s": 1, "2s": 1}, failures=failures)
    result = run(said, Strongest(), seed=seed)
    assert result == run(said, Strongest(), seed=seed)
    assert 0 <= result.totals["utilisation"] <= 1 + 1e-9
    assert all(0 <= o.availability <= 1 + 1e-9 and o.zero_runs <= o.starts for o in result.owners)
    assert result.totals["starts"] <= result.totals["pods"]
