"""Answers that are kept are those that would be given anew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.cycle.engine import Choice, Engine
from j10ce.scheduler.cycle.nominated import Nominated
from j10ce.scheduler.cycle.refusals import NoFit
from tests.scheduler.cycle.opinions import NODES, SHAPES, ours, pod

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, 7), st.booleans()),
        st.tuples(st.just("node"), NODES, st.just(False)),
        st.tuples(st.just("lost"), st.integers(0, 11), st.just(False)),
        st.tuples(st.just("gone"), st.integers(0, 40), st.just(False)),
    ),
    max_size=40,
)


def said(answer: Choice | NoFit, book: Book) -> tuple[str, object]:
    if isinstance(answer, NoFit):
        return str(answer), answer.helpful.tolist()
    return book.names[answer.row], answer.score


@given(st.lists(NODES, max_size=8), EVENTS)
def test_a_decision_is_the_one_that_is_made_from_nothing(nodes: list[NodeFacts], events: list[tuple]) -> None:
    book = Book()
    nominated = Nominated(book)
    engine = Engine(ours(), book, nominated)
    for node in nodes:
        book.put_node(node)
    for n, (what, which, apart) in enumerate(events):
        match what:
            case "pod":
                one = pod(f"p{n}", SHAPES[which], **({"apart": "yes"} if apart else {}))
                answer = engine.choose(one)
                assert said(answer, book) == said(Engine(ours(), book, nominated).choose(one), book)
                if isinstance(answer, Choice):
                    book.assume(one, book.names[answer.row])
            case "node":
                book.put_node(which)
            case "lost":
                book.remove_node(f"n{which:02}")
            case "gone":
                book.remove_pod(f"p{which}")


@given(st.lists(NODES, min_size=1, max_size=8), st.lists(st.tuples(st.integers(0, 7), st.integers(1, 30)), max_size=6))
def test_equal_pods_go_where_they_would_go_one_by_one(nodes: list[NodeFacts], runs: list[tuple[int, int]]) -> None:
    book = Book()
    nominated = Nominated(book)
    engine = Engine(ours(), book, nominated)
    for node in nodes:
        book.put_node(node)
    for run, (which, count) in enumerate(runs):
        pods = [pod(f"p{run}-{n}", SHAPES[which]) for n in range(count)]
        choices = engine.equal(pods[0], count)
        for one, choice in zip(pods, choices, strict=False):
            alone = Engine(ours(), book, nominated).choose(one)
            assert isinstance(alone, Choice)
            assert (book.names[alone.row], alone.score) == (book.names[choice.row], choice.score)
            book.assume(one, book.names[choice.row])


@given(st.lists(NODES, max_size=8, unique_by=lambda n: n.name), st.randoms(), st.lists(st.integers(0, 7), max_size=20))
def test_the_order_in_which_nodes_came_decides_nothing(
    nodes: list[NodeFacts], random: object, which: list[int]
) -> None:
    shuffled = list(nodes)
    random.shuffle(shuffled)
    assert placed(nodes, which) == placed(shuffled, which)


def placed(nodes: list[NodeFacts], which: list[int]) -> list[str]:
    book = Book()
    engine = Engine(ours(), book, Nominated(book))
    for node in nodes:
        book.put_node(node)
    answers = []
    for n, shape in enumerate(which):
        one: PodFacts = pod(f"p{n}", SHAPES[shape])
        answer = engine.choose(one)
        if isinstance(answer, Choice):
            book.assume(one, book.names[answer.row])
            answers.append(book.names[answer.row])
        else:
            answers.append(str(answer))
    return answers
