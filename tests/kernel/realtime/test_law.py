"""The arithmetic of the real-time floor: what no workload and no CPU may exceed, whatever it does."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.kernel.realtime.law import (
    FRESH,
    REST_S,
    RETURN_S,
    SAVED_S,
    SHARE,
    SPIN_S,
    TICK_S,
    WINDOW_S,
    CpuWindow,
    Credit,
    awake,
    settle,
    spins,
)

CPUS = 4
RATES = st.floats(0.01, CPUS)
TICKS = st.lists(st.tuples(st.floats(0.001, 0.1), st.floats(0.0, 1.0)), max_size=200)


@given(RATES, TICKS)
def test_no_workload_is_real_time_for_more_than_its_floor_and_what_it_saved(
    rate: float, ticks: list[tuple[float, float]]
) -> None:
    credit, used, passed, longest = FRESH, 0.0, 0.0, 0.0
    for span, busy in ticks:
        use = busy * CPUS * span
        used += use if credit.realtime else 0.0
        passed, longest = passed + span, max(longest, span)
        credit = settle(credit, rate, use, span)
        assert used <= rate * (passed + SAVED_S) + CPUS * longest + 1e-9


@given(RATES, st.lists(st.floats(0.0, 1.0), max_size=200))
def test_who_stays_within_his_floor_is_never_fair(rate: float, demands: list[float]) -> None:
    credit = settle(FRESH, rate, 0.0, RETURN_S)
    assert credit.realtime
    for busy in demands:
        credit = settle(credit, rate, 0.999 * busy * rate * TICK_S, TICK_S)
        assert credit.realtime


@given(TICKS)
def test_without_a_floor_nothing_is_real_time(ticks: list[tuple[float, float]]) -> None:
    credit = FRESH
    for span, busy in ticks:
        credit = settle(credit, 0.0, busy * span, span)
        assert not credit.realtime


def test_what_is_used_in_the_fair_class_is_free() -> None:
    fair = Credit(-0.01, realtime=False)
    assert settle(fair, 1.0, used_s=0.04, passed_s=TICK_S).left_s == pytest.approx(0.01)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=200))
def test_no_cpu_is_real_time_for_more_than_its_share_of_any_window(wishes: list[float]) -> None:
    window, now = CpuWindow(), 0.0
    spans: list[tuple[float, float, float]] = []
    for wish in wishes:
        allowed = window.allowance(now)
        span = allowed or REST_S
        used = wish * span if allowed else 0.0
        window.add(now, now + span, used)
        spans.append((now, now + span, used))
        now += span
    for end in accumulate(b - a for a, b, _ in spans):
        inside = sum(used for a, b, used in spans if a >= end - WINDOW_S - 1e-9 and b <= end + 1e-9)
        assert inside <= SHARE * WINDOW_S + 1e-6


def test_a_cpu_that_is_always_wanted_is_real_time_for_nine_tenths() -> None:
    window, now, used = CpuWindow(), 0.0, 0.0
    while now < 10.0:
        allowed = window.allowance(now)
        window.add(now, now + (allowed or REST_S), allowed)
        now, used = now + (allowed or REST_S), used + allowed
    assert used / now == pytest.approx(SHARE, abs=0.02)


def test_a_thread_spins_once_it_has_not_slept_for_long_enough() -> None:
    streak, now = awake(None, 7, TICK_S, TICK_S), TICK_S
    while now < SPIN_S:
        assert not spins(streak, now)
        now += TICK_S
        streak = awake(streak, 7, now, TICK_S)
    assert spins(streak, now)
    assert not spins(awake(streak, 8, now, TICK_S), now)
