"""Against a solver: what is refused does not fit, and what is short cannot be whole."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from j10ce.scheduler.ledger.exact import search
from j10ce.scheduler.ledger.witness import Item, place, repack
from tests.reservations.oracle import Ask, feasible, fits_all
from tests.soak.driver import Driver

Case = tuple[np.ndarray, list[Item]]


def puzzle(draw: random.Random) -> Case:
    """Almost always nearly full: that is where it is hard."""
    nodes, kinds = draw.randint(2, 5), draw.randint(2, 5)
    free = np.array([[draw.randint(2, 12) for _ in range(3)] for _ in range(nodes)], np.int64)
    items = []
    for n in range(kinds):
        shape = np.array([draw.choice((0, 1, 2, 3, 5)) for _ in range(3)], np.int64)
        shape[draw.randrange(3)] = draw.randint(1, 5)
        rows = np.array([draw.random() < 0.8 for _ in range(nodes)])
        items.append(Item(f"p{n}", shape, draw.randint(1, 4), rows))
    return free, items


def ask(item: Item) -> Ask:
    return Ask(item.shape.tolist(), item.units, np.flatnonzero(item.rows).tolist())


def holds(free: np.ndarray, items: list[Item], placements: list[dict[int, int]]) -> bool:
    left = free.copy()
    for item, placement in zip(items, placements, strict=True):
        if sum(placement.values()) != item.units or not all(item.rows[row] for row in placement):
            return False
        for row, units in placement.items():
            left[row] -= item.shape * units
    return bool((left >= 0).all())


@pytest.mark.parametrize("seed", range(4))
def test_the_exact_search_agrees_with_the_solver(seed: int) -> None:
    draw = random.Random(seed)
    seen: Counter[str] = Counter()
    for _ in range(60):
        free, items = puzzle(draw)
        truth, answer = feasible(free.tolist(), [ask(i) for i in items]), search(free, items)
        assert answer.proven == (not truth)
        assert (answer.placements is not None) == truth
        if answer.placements is not None:
            assert holds(free, items, answer.placements)
            seen["found"] += 1
        first_fit = repack(free, items, free.sum(axis=0))
        assert first_fit is None or holds(free, items, first_fit)
        seen["first-fit fails"] += truth and first_fit is None
    assert 5 < seen["found"] < 55, "puzzles are neither trivial nor hopeless"


@pytest.mark.parametrize("seed", range(2))
def test_equal_nodes_are_searched_once_and_not_too_little(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(60):
        size = [draw.randint(4, 9), draw.randint(4, 9)]
        free = np.array([size] * draw.randint(2, 5), np.int64)
        rows = np.ones(len(free), np.bool_)
        items = [
            Item(f"p{n}", np.array([draw.randint(1, 5), draw.randint(0, 5)]), draw.randint(1, 5), rows)
            for n in range(draw.randint(1, 3))
        ]
        answer = search(free, items)
        assert (answer.placements is not None) == feasible(free.tolist(), [ask(i) for i in items])


def test_the_search_gives_up_within_its_budget() -> None:
    draw = random.Random(7)
    cases = [puzzle(draw) for _ in range(300)]
    answers = [search(free, items, budget=3) for free, items in cases]
    assert all(a.looks <= 4 for a in answers)
    assert any(a.placements is None and not a.proven for a in answers)


def test_first_fit_leaves_the_large_holes() -> None:
    free = np.array([[8], [3]], np.int64)
    assert place(free, Item("small", np.array([2]), 1, np.array([True, True]))) == {1: 1}


@pytest.mark.parametrize("seed", range(3))
def test_no_history_leads_to_a_refusal_or_a_shortage_that_need_not_be(seed: int) -> None:
    driver, asked = Driver(seed), 0
    for _ in range(400):
        known = len(driver.world.refusals)
        driver.step()
        fleet = driver.world.fleet
        if any(s.missing for s in driver.world.units().values()):
            asked += 1
            assert not fits_all(fleet)
        elif driver.world.refusals[known:]:
            pledge, refusal = driver.world.refusals[-1]
            if refusal.reason == "NoRoom" and pledge.source not in fleet and not driver.world.charged(pledge.source):
                asked += 1
                assert not fits_all(fleet, pledge), refusal
    assert asked > 20
