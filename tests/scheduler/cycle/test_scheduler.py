"""Events in, decisions out."""

from __future__ import annotations

from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.cluster import Rows
from j10ce.scheduler.cycle.decisions import Bind, Decision, Defer, Evict
from j10ce.scheduler.cycle.framework import Candidate, Preemptor
from j10ce.scheduler.cycle.profile import profile
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.resources.balanced import BalancedAllocation
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit

NAME = "j10ce"


def scheduler(nodes: int, cpu: int = 1000) -> Scheduler:
    made = Scheduler([profile(NAME, [NodeResourcesFit(), BalancedAllocation()])])
    for n in range(nodes):
        made.put_node(NodeFacts(f"n{n}", {}, {"cpu": cpu, "memory": 1 << 30, "pods": 10}), 0.0)
    return made


def pod(name: str, cpu: int = 400, **other: object) -> PodFacts:
    shape = Shape((("cpu", cpu), ("memory", 1 << 28)), (cpu, 1 << 28))
    return PodFacts(name, "default", name, shape, scheduler=NAME)._replace(**other)


def bindings(decisions: list[Decision]) -> dict[str, str]:
    return {d.pod.name: d.node for d in decisions if isinstance(d, Bind)}


def test_pods_spread_over_nodes_and_equal_nodes_go_by_name() -> None:
    s = scheduler(3)
    for n in range(5):
        s.put_pod(pod(f"p{n}"), 1.0)
    assert bindings(s.step(1.0)) == {"p0": "n0", "p1": "n1", "p2": "n2", "p3": "n0", "p4": "n1"}
    assert s.step(2.0) == []


def test_a_pod_that_finds_no_node_says_why_and_gets_the_room_that_is_freed() -> None:
    s = scheduler(2)
    for n in range(5):
        s.put_pod(pod(f"p{n}"), 1.0)
    decisions = s.step(1.0)
    assert len(bindings(decisions)) == 4
    (late,) = [d for d in decisions if isinstance(d, Defer)]
    assert late.pod.name == "p4"
    assert late.why == "0/2 nodes are available: 2 Insufficient cpu."
    for name, node in bindings(decisions).items():
        s.bound(name, 1.5)
        s.put_pod(pod(name, node=node), 1.5)
    assert s.step(1.6) == []
    s.remove_pod("p0", 1.7)
    assert s.step(1.8) == [], "it is backed off"
    assert s.next_at(1.8) == 2.0
    assert bindings(s.step(2.0)) == {"p4": "n0"}


def test_a_binding_that_failed_is_tried_again() -> None:
    s = scheduler(1)
    s.put_pod(pod("p"), 1.0)
    assert bindings(s.step(1.0)) == {"p": "n0"}
    s.bind_failed("p", "conflict", 1.1)
    (deferred,) = s.step(1.1)
    assert isinstance(deferred, Defer)
    assert deferred.until == 2.1
    assert not s.book.pods
    assert bindings(s.step(2.1)) == {"p": "n0"}


class Everyone:
    """Sends all of a node away, for whoever finds no room."""

    name = "everyone"

    def post_filter(self, pod: PodFacts, rows: Rows, cycle: Preemptor, now: float, /) -> Candidate | str:
        row = int(rows[0])
        return Candidate(cycle.book.names[row], tuple(cycle.book.there(row)), {})


def test_a_pod_is_tried_without_delay_once_all_that_had_to_go_for_it_are_gone() -> None:
    s = Scheduler([profile(NAME, [NodeResourcesFit(), Everyone()])])
    s.put_node(NodeFacts("n0", {}, {"cpu": 1000, "memory": 1 << 30, "pods": 10}), 0.0)
    for name in ("p0", "p1"):
        s.put_pod(pod(name, node="n0"), 0.0)
    s.put_pod(pod("p2"), 1.0)
    assert [d.victim.name for d in s.step(1.0) if isinstance(d, Evict)] == ["p0", "p1"]
    s.remove_pod("p0", 1.1)
    assert not bindings(s.step(1.1))
    s.remove_pod("p1", 1.2)
    assert bindings(s.step(1.2)) == {"p2": "n0"}
