"""Room, and what it is worth: Kubernetes' own arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import LoadFacts, NodeFacts, PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.plugins.resources.balanced import BalancedAllocation
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit
from j10ce.scheduler.plugins.resources.load import LoadAware
from j10ce.scheduler.plugins.resources.strategies import (
    Allocated,
    ResourceWeight,
    ShapePoint,
    Strategy,
    ToCapacityRatio,
)

GPU = "example.com/gpu"
ROW = np.array([0])


def book(used_cpu: int = 0, used_memory: int = 0, **allocatable: int) -> Book:
    made = Book()
    amounts = {"cpu": 4000, "memory": 10_000, "pods": 2} | {k.replace("gpu", GPU): n for k, n in allocatable.items()}
    made.put_node(NodeFacts("n", {}, amounts))
    if used_cpu or used_memory:
        made.put_pod(pod(used_cpu, used_memory, node="n", uid="there"))
    return made


def pod(cpu: int = 0, memory: int = 0, gpu: int = 0, *, node: str = "", uid: str = "p") -> PodFacts:
    requests = tuple((n, a) for n, a in (("cpu", cpu), ("memory", memory), (GPU, gpu)) if a)
    return PodFacts(uid, "d", uid, Shape(requests, (cpu, memory)), node=node)


@pytest.mark.parametrize(
    ("asked", "there", "reasons", "resolvable"),
    [
        pytest.param(pod(4000, 10_000), book(), (), True, id="all of it"),
        pytest.param(pod(4001), book(), ("Insufficient cpu",), False, id="more than there is helps nobody's going"),
        pytest.param(pod(2000), book(3000), ("Insufficient cpu",), True, id="somebody may go"),
        pytest.param(pod(2000, 20_000), book(3000), ("Insufficient cpu", "Insufficient memory"), False, id="both"),
        pytest.param(pod(gpu=1), book(), (f"Insufficient {GPU}",), False, id="a resource that the node has not"),
        pytest.param(pod(gpu=1), book(gpu=1), (), True, id="an extended resource"),
        pytest.param(pod(), book(9000, 99_000), (), True, id="who asks for nothing fits on a node that is overfull"),
        pytest.param(pod(), book(1, 1, pods=1), ("Too many pods",), True, id="one pod too many"),
    ],
)
def test_a_pod_fits_where_there_is_room(
    asked: PodFacts, there: Book, reasons: tuple[str, ...], resolvable: bool
) -> None:
    fit = NodeResourcesFit()
    assert bool(fit.filter(asked, there, ROW)[0]) is not bool(reasons)
    if reasons:
        assert fit.why(asked, there, 0) == (reasons, resolvable)


def test_ignored_resources_are_looked_at_by_others() -> None:
    assert NodeResourcesFit(ignored=frozenset((GPU,))).filter(pod(gpu=1), book(), ROW).all()


@pytest.mark.parametrize(
    ("strategy", "asked", "there", "score"),
    [
        pytest.param(Allocated(), pod(1000, 5000), book(), (75 + 50) // 2, id="least: half of what is left of each"),
        pytest.param(Allocated(), pod(1000, 1000), book(1000, 1001), (50 + 79) // 2, id="least: in whole numbers"),
        pytest.param(Allocated(), pod(5000), book(), 50, id="least: more than there is, is nothing"),
        pytest.param(Allocated("most"), pod(1000, 5000), book(), (25 + 50) // 2, id="most"),
        pytest.param(Allocated("most"), pod(5000), book(), 50, id="most: no more than all"),
        pytest.param(
            Allocated("least", (ResourceWeight("cpu", 3), ResourceWeight("memory"))), pod(1000, 5000), book(),
            (3 * 75 + 50) // 4, id="weights",
        ),
        pytest.param(
            Allocated("most", (ResourceWeight(GPU, 5), ResourceWeight("cpu"))), pod(1000, gpu=1), book(gpu=4),
            (5 * 25 + 25) // 6, id="an extended resource",
        ),
        pytest.param(
            Allocated("most", (ResourceWeight(GPU, 5), ResourceWeight("cpu"))), pod(1000), book(gpu=4), 25,
            id="an extended resource that the pod does not want has no say",
        ),
        pytest.param(
            ToCapacityRatio((ShapePoint(0, 0), ShapePoint(50, 100), ShapePoint(100, 0))), pod(1000, 5000), book(),
            (50 + 100) // 2, id="a shape",
        ),
    ],
)  # fmt: skip
def test_what_a_strategy_makes_of_a_node(strategy: Strategy, asked: PodFacts, there: Book, score: int) -> None:
    assert NodeResourcesFit(strategy).score(asked, there, ROW).tolist() == [score]


def test_a_resource_that_a_node_has_not_has_no_say_there() -> None:
    there = Book()
    there.put_node(NodeFacts("n", {}, {"cpu": 4000, "pods": 9}))
    assert Allocated().score(pod(1000), there, ROW).tolist() == [75]


@pytest.mark.parametrize(
    ("asked", "there", "score"),
    [
        pytest.param(pod(2000, 5000), book(), 100, id="even"),
        pytest.param(pod(4000), book(), 50, id="all of one and nothing of the other"),
        pytest.param(pod(1000, 5000), book(), 87, id="whole numbers"),
        pytest.param(pod(9000, 5000), book(), 75, id="no more than all"),
    ],
)
def test_resources_run_out_together(asked: PodFacts, there: Book, score: int) -> None:
    balanced = BalancedAllocation()
    assert balanced.score(asked, there, ROW).tolist() == [score]
    assert balanced.pre_score(pod(), there, ROW) is not None, "who asks for nothing shifts no balance"


def test_load_is_what_agents_expect_in_twentieths() -> None:
    there = book()
    assert LoadAware().score(pod(), there, ROW).tolist() == [100]
    before = there.version
    there.put_load(LoadFacts("n", 0.62))
    assert LoadAware().score(pod(), there, ROW).tolist() == [pytest.approx(40)]
    changed = there.version
    assert changed > before
    there.put_load(LoadFacts("n", 0.61))
    assert there.version == changed
