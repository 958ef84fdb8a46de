"""The book's sums are those of the pods that it holds, whatever happened before."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.columns import MOST_ASKED
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.cycle.decisions import Bind
from j10ce.scheduler.cycle.profile import profile
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.plugins.resources.fit import NodeResourcesFit

NODES, PODS = ("a", "b", "c"), tuple("pqrstu")
OPERATIONS = st.tuples(
    st.sampled_from(("put", "assume", "forget", "remove", "node", "no node")),
    st.sampled_from(PODS),
    st.sampled_from(NODES),
    st.dictionaries(st.sampled_from(("cpu", "memory", "example.com/gpu")), st.integers(1, 9)),
)


@given(st.lists(OPERATIONS, max_size=60))
def test_sums_are_those_of_the_pods_that_are_there(operations: list[tuple[str, str, str, dict[str, int]]]) -> None:
    book, there, assumed = Book(), dict[str, PodFacts](), set[str]()
    for what, uid, node, amounts in operations:
        pod = PodFacts(uid, "default", uid, Shape(tuple(sorted(amounts.items()))), node=node)
        if what == "put":
            book.put_pod(pod)
            there[uid] = pod
            assumed.discard(uid)
        elif what == "assume" and uid not in there:
            book.assume(pod._replace(node=""), node)
            there[uid] = pod
            assumed.add(uid)
        elif what == "forget":
            book.forget(uid)
            if uid in assumed:
                assumed.discard(uid)
                del there[uid]
        elif what == "remove":
            book.remove_pod(uid)
            assumed.discard(uid)
            there.pop(uid, None)
        elif what == "node":
            book.put_node(NodeFacts(node, {}, {"cpu": 4000}))
        elif what == "no node":
            book.remove_node(node)
    for name in book.names:
        sums, row = Counter[str](), book.row[name]
        for pod in there.values():
            if pod.node == name:
                sums.update(dict(pod.shape.requests) | {"pods": 1})
        used = {n: int(book.used[row, c]) for c, n in enumerate(book.columns.names) if book.used[row, c]}
        assert used == sums
        assert {pod.uid for pod in book.there(row)} == {pod.uid for pod in there.values() if pod.node == name}
    assert book.assumed == assumed


def test_an_assumed_pod_keeps_its_place_until_its_binding_is_seen() -> None:
    book, pod = Book(), PodFacts("p", "default", "p", Shape((("cpu", 100),)))
    book.put_node(NodeFacts("a", {}, {"cpu": 4000}))
    book.assume(pod, "a")
    book.put_pod(pod)  # the API server has not heard of the binding
    assert book.pods["p"].node == "a"
    book.put_pod(pod._replace(node="a"))
    book.forget("p")
    assert book.pods["p"].node == "a", "what was seen is not forgotten"


def test_pods_that_are_thought_away_come_back_even_after_an_error() -> None:
    book = Book()
    book.put_node(NodeFacts("a", {}, {"cpu": 4000}))
    book.put_pod(PodFacts("p", "default", "p", Shape((("cpu", 100),)), node="a"))
    try:
        with book.without([book.pods["p"]]):
            assert int(book.used[0, 0]) == 0
            raise LookupError
    except LookupError:
        assert int(book.used[0, 0]) == 100


def test_a_node_that_only_pods_name_takes_no_room_and_has_them_once_it_is_there() -> None:
    book = Book()
    for n in range(500):
        book.put_pod(PodFacts(f"p{n}", "default", f"p{n}", Shape((("cpu", 100),)), node=f"nowhere-{n}"))
        if n > 1:
            book.remove_pod(f"p{n}")
    book.put_pod(PodFacts("p1", "default", "p1", node="nowhere-1", phase="Failed"))
    assert (len(book), len(book.names), book.pods) == (0, 0, {})
    for n in range(2):
        book.put_node(NodeFacts(f"nowhere-{n}", {}, {"cpu": 4000}))
    assert set(book.pods) == {"p0"}
    assert book.used[:2, 0].tolist() == [100, 0]


def test_names_that_no_node_offers_share_a_column_until_one_does() -> None:
    book = Book()
    book.put_node(NodeFacts("a", {}, {"cpu": 4000}))
    names = [f"example.com/{n}" for n in range(5 * MOST_ASKED)]
    book.put_pod(PodFacts("p", "default", "p", Shape(tuple((name, 2) for name in names)), node="a"))
    book.put_pod(PodFacts("q", "default", "q", Shape(((names[-1], 3),)), node="a"))
    assert len(book.columns) == book.used.shape[1] == MOST_ASKED + 1
    book.put_node(NodeFacts("b", {}, {"cpu": 4000, names[-1]: 9}))
    own = book.column(names[-1])
    assert book.allocatable[1, own] == 9
    assert book.used[0, own] == 5
    for uid in "pq":
        book.remove_pod(uid)
    assert not book.used.any()


def test_a_pod_gets_a_resource_that_a_node_offers_only_later() -> None:
    fit = NodeResourcesFit()
    scheduler = Scheduler([profile("s", [fit])])
    scheduler.put_node(NodeFacts("a", {}, {"cpu": 4000, "pods": 9}), 0.0)
    for n in range(2 * MOST_ASKED):
        wanted = Shape(((f"example.com/{n}", 1),))
        scheduler.put_pod(PodFacts(f"p{n}", "default", f"p{n}", wanted, scheduler="s"), 0.0)
    assert not [d for d in scheduler.step(0.0) if isinstance(d, Bind)]
    last = 2 * MOST_ASKED - 1
    scheduler.put_node(NodeFacts("b", {}, {"cpu": 4000, "pods": 9, f"example.com/{last}": 1}), 5.0)
    assert [(d.pod.name, d.node) for d in scheduler.step(5.0) if isinstance(d, Bind)] == [(f"p{last}", "b")]
