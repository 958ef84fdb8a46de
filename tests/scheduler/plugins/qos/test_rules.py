"""The order of the queue is one order, and a victim is chosen by rule."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from j10ce.scheduler.plugins.classic.rules import precedes, sort_key
from j10ce.scheduler.plugins.qos.budget import BURST_S, PreemptionBudget
from j10ce.scheduler.plugins.qos.laxity import laxity, left_of_period
from tests.scheduler.plugins.qos.made import measure

MARGIN = 20.0
metrics = st.one_of(st.floats(-1e6, 1e6), st.sampled_from((-math.inf, math.inf, MARGIN, 0.0)))
importances = st.sampled_from((0.0, 0.5, 0.9, 1.0))
standings = st.tuples(metrics, importances)


def by_pair(a: tuple[float, float], b: tuple[float, float]) -> bool:
    """As the rule says it."""
    if a[0] < MARGIN and b[0] < MARGIN and a[1] != b[1]:
        return a[1] > b[1]
    return a[0] < b[0]


@given(standings, standings)
def test_the_sort_key_is_the_order_pair_by_pair(a: tuple[float, float], b: tuple[float, float]) -> None:
    assert precedes(*a, *b, MARGIN) == by_pair(a, b)


@given(standings, standings, standings)
def test_the_order_is_a_strict_weak_one(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> None:
    def equal(x: tuple[float, float], y: tuple[float, float]) -> bool:
        return not by_pair(x, y) and not by_pair(y, x)

    assert not by_pair(a, a)
    assert not (by_pair(a, b) and by_pair(b, a))
    assert not (by_pair(a, b) and by_pair(b, c)) or by_pair(a, c)
    assert not (equal(a, b) and equal(b, c)) or equal(a, c)


@given(st.lists(standings, max_size=8))
def test_sorted_pods_are_in_the_order_pair_by_pair(pods: list[tuple[float, float]]) -> None:
    inorder = sorted(pods, key=lambda pod: sort_key(*pod, MARGIN))
    assert not any(by_pair(later, earlier) for n, earlier in enumerate(inorder) for later in inorder[n:])


def test_laxity_falls_by_a_second_per_second_of_waiting_and_stays_while_it_runs() -> None:
    early = laxity(measure(effective=100.0, waiting=50.0, slo=0.9), "independent", False, 1000.0)
    waited = laxity(measure(effective=100.0, waiting=60.0, slo=0.9), "independent", False, 990.0)
    ran = laxity(measure(effective=110.0, waiting=50.0, slo=0.9), "independent", False, 990.0)
    assert early - waited == 10.0
    assert math.isclose(ran, early)


def test_a_pod_that_can_wait_no_longer_just_meets_its_slo_at_the_end_of_the_period() -> None:
    can_wait = laxity(measure(effective=100.0, waiting=50.0, slo=0.5, overhead=2.0), "independent", False, 400.0)
    effective, total = 100.0 + (400.0 - can_wait - 2.0), 150.0 + 400.0
    assert math.isclose(effective / total, 0.5)


def test_a_concurrent_pod_whose_fellows_are_missing_can_wait_for_ever() -> None:
    assert laxity(measure(contributing=False), "concurrent", True, 10.0) == math.inf
    assert laxity(measure(contributing=True), "concurrent", True, 10.0) < math.inf


def test_periods_are_short_at_first_and_then_all_as_long_as_the_last() -> None:
    periods = (600.0, 1500.0, 3600.0)
    ages = (0.0, 599.0, 600.0, 3000.0, 3600.0, 7000.0)
    assert [left_of_period(age, periods) for age in ages] == [600.0, 1.0, 900.0, 600.0, 3600.0, 200.0]


def test_the_budget_of_preemptions_is_a_share_of_what_runs() -> None:
    budget = PreemptionBudget(0.01)
    most = budget.level(pods=200, overhead=2.0, now=0.0)
    budget.spend(int(most))
    assert most == BURST_S  # 1 % of 200 pods is two seconds per second: a start of 2 s each second
    assert budget.level(200, 2.0, 0.0) < 1.0
    assert budget.level(200, 2.0, 5.0) == 5.0
    assert PreemptionBudget(0.01).level(pods=1, overhead=2.0, now=0.0) >= 1.0
