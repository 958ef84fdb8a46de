"""Who goes for whom: as few as can be, as unimportant as can be, and nobody whose budget forbids it if another can."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from j10ce.scheduler.book.around import BudgetFacts
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.shape import LabelTest, Shape
from j10ce.scheduler.cycle.decisions import Bind, Defer, Evict, Nominate
from j10ce.scheduler.cycle.engine import Engine
from j10ce.scheduler.cycle.framework import Candidate
from j10ce.scheduler.cycle.profile import profile
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.neighbours.inter_pod import InterPodAffinity
from j10ce.scheduler.plugins.queueing.gates import SchedulingGates
from j10ce.scheduler.plugins.queueing.preemption import DefaultPreemption
from j10ce.scheduler.plugins.queueing.priority import PrioritySort
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit

OURS = "ours"


def pod(uid: str, cpu: int, priority: int = 0, node: str = "", **more: object) -> PodFacts:
    facts = PodFacts(uid, "shop", uid, Shape((("cpu", cpu),)), scheduler=OURS, priority=priority, node=node)
    return facts._replace(**more)


def scheduler(*pods: PodFacts, nodes: int = 1, cpu: int = 1000) -> Scheduler:
    made = Scheduler(
        [
            profile(
                OURS, [PrioritySort(), SchedulingGates(), NodeResourcesFit(), InterPodAffinity(), DefaultPreemption()]
            )
        ]
    )
    for n in range(nodes):
        made.put_node(NodeFacts(f"n{n}", {}, {"cpu": cpu, "pods": 110}), 0.0)
    for each in pods:
        made.put_pod(each, 0.0)
    return made


def candidate(made: Scheduler, wanting: PodFacts) -> Candidate | str:
    engine: Engine = made.engines[OURS]
    rows = np.arange(len(made.book))
    return DefaultPreemption().post_filter(made._with_known_shape(wanting), rows, engine, 0.0)


@pytest.mark.parametrize(
    ("pods", "victims"),
    [
        pytest.param([pod("low", 600, 1, "n0"), pod("high", 400, 3, "n0")], {"low"}, id="the least important"),
        pytest.param([pod("a", 300, 1, "n0"), pod("b", 700, 1, "n0")], {"b"}, id="not more than it needs"),
        pytest.param(
            [pod("old", 500, 1, "n0", started=1.0), pod("young", 500, 1, "n0", started=9.0)],
            {"young"},
            id="the youngest",
        ),
        pytest.param([pod("high", 1000, 5, "n0")], None, id="nobody of equal priority"),
        pytest.param([pod("b", 1000, 1, "n0"), pod("a", 1000, 2, "n1")], {"b"}, id="the node of lower priorities"),
        pytest.param(
            [pod("a", 500, 1, "n0"), pod("b", 500, 1, "n0"), pod("c", 1000, 1, "n1")], {"b"}, id="the smaller sum"
        ),
    ],
)
def test_victims(pods: list[PodFacts], victims: set[str] | None) -> None:
    made = scheduler(*pods, nodes=1 + max(int(p.node[1:]) for p in pods))
    answer = candidate(made, pod("new", 500, 5))
    assert ({v.uid for v in answer.victims} if isinstance(answer, Candidate) else None) == victims
    assert {p.uid for p in pods} == set(made.book.pods), "all are back"


def test_budgets_are_broken_where_there_is_no_other_way_only() -> None:
    web = {"app": "web"}
    pods = [pod("a", 500, 1, "n0", labels=web), pod("b", 500, 2, "n0")]
    made = scheduler(*pods)
    assert names(candidate(made, pod("new", 500, 5))) == {"a"}
    made.put_fact(BudgetFacts("shop", "web", LabelTest((("app", "web"),)), 0), 0.0)
    assert names(candidate(made, pod("new", 500, 5))) == {"b"}
    assert names(candidate(made, pod("new", 1000, 5))) == {"a", "b"}
    made.put_fact(BudgetFacts("shop", "web", LabelTest((("app", "web"),)), 1), 0.0)
    assert names(candidate(made, pod("new", 500, 5))) == {"a"}


def names(answer: Candidate | str) -> set[str]:
    return {v.uid for v in answer.victims} if isinstance(answer, Candidate) else set()


def test_who_never_preempts_says_so() -> None:
    made = scheduler(pod("low", 1000, 1, "n0"))
    assert candidate(made, pod("new", 500, 5, preempts=False)) == (
        "preemption: not eligible due to preemptionPolicy=Never."
    )
    assert candidate(made, pod("new", 500, 1)) == (
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_preemption_from_its_decision_to_the_binding() -> None:
    made = scheduler(pod("low", 1000, 1, "n0"), pod("new", 500, 5))
    out = made.step(1.0)
    assert [d for d in out if isinstance(d, Evict | Nominate)] == [
        Evict(
            made.book.pods["low"], pod("new", 500, 5), "n0", "priority 1 is below 5 of shop/new, which needs its room"
        ),
        Nominate(pod("new", 500, 5), "n0"),
    ]
    made.remove_pod("low", 2.0)
    assert [(d.pod.uid, d.node) for d in made.step(12.0) if isinstance(d, Bind)] == [("new", "n0")]


def test_the_higher_priority_is_first_and_gates_hold_back() -> None:
    made = scheduler(pod("a", 600, 1), pod("b", 600, 2), pod("c", 600, 3, gates=("x", "y")))
    out = made.step(1.0)
    assert [d.pod.uid for d in out if isinstance(d, Bind)] == ["b"]
    gated = next(d for d in out if isinstance(d, Defer) and d.pod.uid == "c")
    assert gated.why == "waiting for scheduling gates: [x y]"


NODES = st.integers(1, 4)
PODS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([200, 300, 500]), st.integers(0, 2)), max_size=14)


@settings(max_examples=150, deadline=None)
@given(NODES, PODS, st.integers(1, 4), st.sampled_from([300, 500, 900]))
def test_nobody_goes_who_could_have_stayed_and_equal_nodes_are_judged_alike(
    nodes: int, sizes: list[tuple[int, int, int]], priority: int, cpu: int
) -> None:
    pods = [pod(f"p{n}", c, p, f"n{at % nodes}") for n, (at, c, p) in enumerate(sizes)]
    made = scheduler(*pods, nodes=nodes, cpu=1500)
    answer = candidate(made, pod("new", cpu, priority))
    room = {f"n{n}": 1500 - sum(p.shape.requests[0][1] for p in pods if p.node == f"n{n}") for n in range(nodes)}
    lower = {n: [p for p in pods if p.node == n and p.priority < priority] for n in room}
    hopes = [n for n in room if lower[n] and room[n] < cpu <= room[n] + sum(amount(lower[n]))]
    if not isinstance(answer, Candidate):
        assert not hopes
        return
    assert answer.node in hopes
    assert room[answer.node] + sum(amount(answer.victims)) >= cpu
    for fewer in combinations(answer.victims, len(answer.victims) - 1):
        assert room[answer.node] + sum(amount(fewer)) < cpu, "one of them could have stayed"
    highest = max(p.priority for p in answer.victims)
    best = min(least_highest(room[n], lower[n], cpu) for n in hopes)
    assert highest == best


def amount(pods: object) -> list[int]:
    assert isinstance(pods, list | tuple)
    return [p.shape.requests[0][1] for p in pods]


def least_highest(room: int, lower: list[PodFacts], cpu: int) -> int:
    """The lowest priority up to which all have to go."""
    return min(p.priority for p in lower if room + sum(amount([q for q in lower if q.priority <= p.priority])) >= cpu)
