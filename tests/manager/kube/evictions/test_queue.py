"""Which eviction is due: within a minute's number, and later each time that a budget says no."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from j10ce.manager.kube.evictions.queue import FIRST_S, LONGEST_S, EvictionQueue, Requested


def request(n: int, node: str = "a") -> Requested:
    return Requested(node, "shop", f"web-{n}", f"uid-{node}-{n}", "memory 96 %")


def two(node: str) -> int:
    return 2


def test_a_minute_has_so_many_of_one_node() -> None:
    queue, asked = EvictionQueue(), [request(n) for n in range(4)] + [request(9, "b")]
    due = queue.due(asked, 0.0, two)
    assert due == [request(0), request(1), request(9, "b")]
    for each in due:
        queue.granted(each, 0.0)
    assert queue.due(asked, 30.0, two) == []
    assert queue.due(asked, 60.0, two) == [request(2), request(3)]


def test_what_a_budget_does_not_allow_is_tried_later_and_later() -> None:
    queue, tried, now = EvictionQueue(), list[float](), 0.0
    while now < 2000:
        for each in queue.due([request(0)], now, two):
            assert queue.refused(each, now) is (not tried)
            tried.append(now)
        now += 1
    pauses = [b - a for a, b in pairwise(tried)]
    assert pauses[:4] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S, 8 * FIRST_S]
    assert max(pauses) == LONGEST_S


def test_one_that_is_blocked_leaves_room_for_others() -> None:
    queue = EvictionQueue()
    (first, _) = queue.due([request(0), request(1), request(2)], 0.0, two)
    queue.refused(first, 0.0)
    assert queue.due([request(0), request(1), request(2)], 1.0, two) == [request(1), request(2)]


def test_what_is_withdrawn_is_forgotten() -> None:
    queue = EvictionQueue()
    queue.due([request(0)], 0.0, two)
    queue.refused(request(0), 0.0)
    assert queue.due([], 1.0, two) == []
    assert queue.due([request(0)], 2.0, two) == [request(0)]


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60), st.integers(1, 5))
def test_whatever_is_granted_no_minute_has_more(tries: list[tuple[int, bool]], most: int) -> None:
    queue, granted = EvictionQueue(), list[float]()
    for second, (wanted, allowed) in enumerate(tries):
        now = float(second * 5)
        for each in queue.due([request(n + second) for n in range(wanted)], now, lambda _: most):
            if allowed:
                queue.granted(each, now)
                granted.append(now)
            else:
                queue.refused(each, now)
    assert all(sum(1 for at in granted if end - 60 < at <= end) <= most for end in granted)
