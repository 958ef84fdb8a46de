"""Scores, and evictions that would be in vain."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tests.scheduler.extender.book import amount, bind, extender, pod, policy

NODES = {"a": amount(4, 16), "b": amount(4, 16)}


def test_victims_help_where_what_they_leave_is_nobodys() -> None:
    made = extender(NODES, policy("web", amount(2, 4), {"a": 1}))
    bind(made, pod("victim", amount(2, 1)), "a")
    assert made.preempt(pod("batch", amount(2, 1)), {"a": ["uid-victim"]}) == {"a"}


def test_evicting_a_holder_frees_nothing_for_others() -> None:
    made = extender(NODES, policy("web", amount(2, 4), {"a": 1}))
    bind(made, pod("web-0", amount(2, 4), app="web"), "a")
    bind(made, pod("other", amount(2, 4)), "a")
    assert made.preempt(pod("batch", amount(2, 1)), {"a": ["uid-web-0"]}) == set()


def test_a_holder_may_have_the_unit_that_another_holder_leaves() -> None:
    made = extender(NODES, policy("web", amount(4, 4), {"a": 1}))
    bind(made, pod("web-0", amount(4, 4), app="web"), "a")
    assert made.preempt(pod("web-1", amount(4, 4), app="web"), {"a": ["uid-web-0"]}) == {"a"}


def test_where_nothing_is_held_the_scheduler_decides_alone() -> None:
    assert extender(NODES).preempt(pod("batch", amount(9, 9)), {"a": ["x"], "new": ["y"]}) == {"a", "new"}


def test_the_witness_scores_highest() -> None:
    made = extender(NODES, policy("web", amount(2, 4), {"b": 1}))
    ((best, score),) = made.prioritize(pod("web-0", amount(2, 4), app="web"), ["a", "b"])
    assert (best, score > 0) == ("b", True), "what both have in common is left out, and so is a node without more"


def test_scores_are_from_nought_to_ten_and_prefer_the_emptier_node() -> None:
    made = extender(NODES)
    bind(made, pod("neighbour", amount(3, 12)), "a")
    scores = dict(made.prioritize(pod("batch", amount(1, 1)), ["a", "b", "new"]))
    assert 0 < scores["a"] < scores["b"] <= 10
    assert "new" not in scores, "nothing is known of it"


def test_what_all_have_in_common_is_left_out_and_no_score_is_below_nought() -> None:
    made = extender({name: amount(8, 32) for name in "abcde"}, policy("web", amount(6, 24), {"c": 1}))
    bind(made, pod("neighbour", amount(6, 24)), "d")
    scores = dict(made.prioritize(pod("batch", amount(1, 1)), list("abcde")))
    assert scores.keys() == {"a", "b", "e"}, "the others are as bad as each other"
    assert 0 < scores["a"] == scores["b"] == scores["e"] <= 10


@given(st.lists(st.integers(0, 7), min_size=2, max_size=5))
def test_scores_of_many_differ_as_those_of_two(loads: list[int]) -> None:
    names = [f"n{n}" for n in range(len(loads))]
    made = extender(dict.fromkeys(names, amount(8, 8)))
    for name, load in zip(names, loads, strict=True):
        bind(made, pod(f"on-{name}", amount(load, load)), name)
    batch = pod("batch", amount(1, 1))
    scores = dict(made.prioritize(batch, names))
    assert all(0 < score <= 10 for score in scores.values())
    for one, other in combinations(names, 2):
        pair = dict(made.prioritize(batch, [one, other]))
        assert scores.get(one, 0) - scores.get(other, 0) == pair.get(one, 0) - pair.get(other, 0)


def test_where_all_are_equal_there_is_nothing_to_say() -> None:
    assert extender(NODES).prioritize(pod("batch", amount(1, 1)), ["a", "b"]) == []
    assert extender({}).prioritize(pod("batch", amount(1, 1)), ["new"]) == []
    assert extender(NODES).prioritize(pod("batch", amount(1, 1)), []) == []
