"""Events in, decisions out."""

from __future__ import annotations

import pytest

from j10ce.scheduler.book.around import NamespaceFacts
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.cluster import Rows
from j10ce.scheduler.cycle.decisions import Bind, Decision, Defer, Evict
from j10ce.scheduler.cycle.framework import Await, Candidate, Preemptor
from j10ce.scheduler.cycle.profile import PluginFault, profile
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


def test_what_nobody_can_judge_waits_whatever_the_profile() -> None:
    s = scheduler(2)
    s.put_pod(pod("p", unjudged=("resource claim gpu", "spec.affinity cannot be read")), 1.0)
    (late,) = s.step(1.0)
    assert isinstance(late, Defer)
    assert "cannot judge resource claim gpu, spec.affinity cannot be read: it needs another scheduler" in late.why


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


def test_a_pod_says_that_an_eviction_for_it_was_refused_until_one_is_done() -> None:
    s = Scheduler([profile(NAME, [NodeResourcesFit(), Everyone()])])
    s.put_node(NodeFacts("n0", {}, {"cpu": 400, "memory": 1 << 30, "pods": 10}), 0.0)
    s.put_pod(pod("p0", node="n0"), 0.0)
    s.put_pod(pod("p2"), 1.0)
    whys = set()
    for now in (1.0, 5.0, 15.0):
        assert [d.victim.name for d in s.step(now) if isinstance(d, Evict)] == ["p0"]
        s.evict_failed("p0", "the budget allows nobody", now + 0.1)
        whys |= {d.why for d in s.step(now + 0.1) if isinstance(d, Defer)}
    assert whys == {"0/1 nodes are available: 1 Insufficient cpu. An eviction was refused: the budget allows nobody"}
    assert [d.why for d in s.step(40.0) if isinstance(d, Defer)] == list(whys), "it is said once"
    s.remove_pod("p0", 41.0)
    assert bindings(s.step(41.0)) == {"p2": "n0"}


class Faulty:
    """Fails wherever it is asked about a pod called `bad`, or a fact of that name."""

    name = "faulty"
    moves = True
    facts = (NamespaceFacts,)

    def __init__(self, fails_at: str) -> None:
        self._at = fails_at
        self.asked: set[str] = set()
        self._waits: list[str] = []

    def _ask(self, point: str, name: str) -> None:
        self.asked.add(point)
        if point == self._at and name == "bad":
            raise RuntimeError(f"{point} of {name}")

    def pod_seen(self, pod: PodFacts, now: float, /) -> None:
        self._ask("pod_seen", pod.name)

    def pod_gone(self, pod: PodFacts, now: float, /) -> None:
        self._ask("pod_gone", pod.name)

    def fact_seen(self, fact: NamespaceFacts, now: float, /) -> None:
        self._ask("fact_seen", fact.name)

    def fact_gone(self, fact: NamespaceFacts, now: float, /) -> None:
        self._ask("fact_gone", fact.name)

    def queue_key(self, pod: PodFacts, now: float, /) -> str:
        self._ask("queue_key", pod.name)
        return pod.name

    def pre_enqueue(self, pod: PodFacts, now: float, /) -> str:
        self._ask("pre_enqueue", pod.name)
        return ""

    def reserve(self, pod: PodFacts, node: str, now: float, /) -> None:
        self._ask("reserve", pod.name)

    def unreserve(self, pod: PodFacts, node: str, now: float, /) -> None:
        self._ask("unreserve", pod.name)

    def permit(self, pod: PodFacts, node: str, now: float, /) -> Await:
        self._waits.append(pod.uid)
        return Await(now + 9.0, "a moment")

    def permitted(self) -> list[str]:
        """Fails once."""
        self._ask("permitted", "bad" if "permitted" not in self.asked else "")
        waits, self._waits = self._waits, []
        return waits

    def pre_bind(self, pod: PodFacts, node: str, now: float, /) -> None:
        self._ask("pre_bind", pod.name)

    def post_bind(self, pod: PodFacts, node: str, now: float, /) -> None:
        self._ask("post_bind", pod.name)


@pytest.mark.parametrize(
    "point",
    [
        *("pod_seen", "pod_gone", "fact_seen", "fact_gone", "queue_key", "pre_enqueue", "reserve", "unreserve"),
        *("permitted", "pre_bind", "post_bind"),
    ],
)
def test_a_plugin_that_fails_about_one_pod_costs_the_others_nothing_and_somebody_hears_of_it(point: str) -> None:
    faults: list[PluginFault] = []
    plugin = Faulty(point)
    s = Scheduler([profile(NAME, [NodeResourcesFit(), plugin])], faulted=faults.append)
    s.put_node(NodeFacts("n0", {}, {"cpu": 10_000, "memory": 1 << 40, "pods": 99}), 0.0)
    bad = NamespaceFacts("bad", {})
    s.put_fact(bad, 0.0)
    s.remove_fact(bad, 0.0)
    for name in ("bad", "good", "late"):
        s.put_pod(pod(name), 1.0)
    decisions = s.step(1.0) + s.step(2.0) + s.step(11.0) + s.step(22.0)
    assert "good" in bindings(decisions)
    s.bind_failed("late", "conflict", 23.0)
    for name in ("bad", "good"):
        s.bound(name, 23.0)
        s.remove_pod(name, 24.0)
    s.put_pod(pod("bad"), 25.0)
    s.step(25.0)
    s.remove_pod("bad", 26.0)
    s.step(40.0)
    assert point in plugin.asked
    said = [d.why for d in decisions if isinstance(d, Defer)]
    assert faults or any("RuntimeError" in why for why in said)
