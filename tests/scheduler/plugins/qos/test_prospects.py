"""Where lazy mode looks for pods that can wait."""

from __future__ import annotations

from j10ce.scheduler.book.book import Book
from j10ce.scheduler.book.facts import NodeFacts, PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.plugins.qos.prospects import KNOWN_S, Prospect, Prospects

ROWS = list(range(10))
LEFT = 600.0


def seen(laxities: list[float], book: Book) -> Prospects:
    prospects = Prospects()
    assert prospects.known(ROWS, book, LEFT, 0.0) == []
    for row, laxity in enumerate(laxities):
        prospects.note(Prospect(row, laxity, book.version, 0.0))
    return prospects


def book() -> Book:
    made = Book()
    for n in ROWS:
        made.put_node(NodeFacts(f"n{n}", {}, {"cpu": 1000, "pods": 10}))
    return made


def known(prospects: Prospects, of: Book, left: float = LEFT, now: float = 1.0) -> list[int]:
    return [each.row for each in prospects.known(ROWS, of, left, now)]


def test_nodes_come_by_how_long_one_can_wait_there_and_equal_ones_in_their_order() -> None:
    of = book()
    assert known(seen([5.0, 9.0, 5.0], of), of) == [1, 0, 2]


def test_a_node_is_not_known_any_more_once_a_pod_came() -> None:
    of = book()
    prospects = seen([5.0, 9.0, 5.0], of)
    of.put_pod(PodFacts("u", "default", "p", Shape((("cpu", 1),), (1, 0)), node="n1"))
    assert known(prospects, of) == [0, 2]


def test_nothing_is_known_for_long_nor_beyond_the_end_of_a_period() -> None:
    of = book()
    assert known(seen([5.0], of), of, now=KNOWN_S + 1) == []
    assert known(seen([5.0], of), of, left=3600.0) == []


def test_every_unknown_node_has_its_turn() -> None:
    of = book()
    prospects = seen([5.0, 9.0], of)
    turns = [prospects.unknown(ROWS, prospects.known(ROWS, of, LEFT, 1.0), 3) for _ in range(3)]
    assert all(len(turn) == 3 for turn in turns)
    assert {row for turn in turns for row in turn} == set(range(2, 10))
