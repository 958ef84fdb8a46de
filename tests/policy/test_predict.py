"""Decaying histograms: buckets, percentiles, forgetting, restarts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.model.schema import encode, parse
from j10ce.policy.predict import CPU_BUCKETS, MEMORY_BUCKETS, Buckets, Checkpoint, Histogram

DAY = 86400.0
SMALL = Buckets(40, 1.5, 500)


def test_buckets_begin_where_the_series_says() -> None:
    assert [SMALL.start(n) for n in range(6)] == [0.0, 40.0, 100.0, 190.0, 325.0, 527.5]
    assert SMALL.last == 5


@pytest.mark.parametrize(("value", "bucket"), [(-1.0, 0), (39.99, 0), (40.0, 1), (100.0, 2), (190.0, 3), (900.0, 5)])
def test_a_value_finds_its_bucket(value: float, bucket: int) -> None:
    assert SMALL.find(value) == bucket


@given(st.sampled_from([CPU_BUCKETS, MEMORY_BUCKETS, SMALL]), st.floats(0, 2**40))
def test_a_value_lies_within_its_bucket(buckets: Buckets, value: float) -> None:
    n = buckets.find(value)
    assert buckets.start(n) <= value
    assert n == buckets.last or value < buckets.start(n + 1)


def test_nothing_is_expected_of_an_empty_history() -> None:
    made = Histogram(CPU_BUCKETS, DAY)
    assert (made.percentile(0.95), made.checkpoint()) == (0.0, None)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=50), st.sampled_from([0.5, 0.9, 0.95, 0.98, 1.0]))
def test_a_percentile_is_never_below_the_true_one_and_at_most_a_bucket_above(values: list[float], q: float) -> None:
    made = Histogram(CPU_BUCKETS, DAY)
    for value in values:
        made.add(value, wall=0.0)
    true = sorted(values)[max(1, math.ceil(q * len(values) - 1e-9)) - 1]
    assert true <= made.percentile(q) <= true * CPU_BUCKETS.ratio + CPU_BUCKETS.first * (1 + 1e-9)


def test_after_many_half_lives_the_past_is_forgotten() -> None:
    made = Histogram(CPU_BUCKETS, half_life_s=3600)
    for n in range(100):
        made.add(50.0, wall=float(n))
    made.add(1.0, wall=3600.0 * 12)
    assert made.percentile(0.95) < 2
    for n in range(1000):
        made.add(50.0, wall=float(n))
    assert made.percentile(0.95) < 60


def test_half_of_the_weight_is_gone_after_one_half_life() -> None:
    made = Histogram(SMALL, half_life_s=100.0)
    for _ in range(2):
        made.add(50.0, wall=0.0)
    made.add(10.0, wall=100.0)
    assert made.percentile(0.5) == 40.0  # one fresh sample weighs as much as both old ones
    assert made.percentile(0.51) == 100.0


def test_years_and_clocks_that_jump_back_are_survived() -> None:
    made = Histogram(CPU_BUCKETS, half_life_s=3600)
    for wall in (0.0, 10 * 365 * DAY, 5.0, 10 * 365 * DAY + 1):
        made.add(3.0, wall=wall)
    assert 3.0 <= made.percentile(1.0) < 3.3


@given(st.lists(st.tuples(st.floats(0.01, 500), st.floats(0, 20 * DAY)), min_size=1, max_size=40), st.floats(0, 500))
def test_a_restart_hardly_changes_a_prediction(samples: list[tuple[float, float]], later: float) -> None:
    before = Histogram(CPU_BUCKETS, DAY)
    for value, wall in sorted(samples, key=lambda s: s[1]):
        before.add(value, wall)
    kept = before.checkpoint()
    assert kept is not None
    after = Histogram(CPU_BUCKETS, DAY, parse(encode(kept), Checkpoint))
    for made in (before, after):
        made.add(later, 20 * DAY)
    assert after.since == before.since
    # What has faded away may move a border by as much as it weighed.
    assert before.percentile(0.94) <= after.percentile(0.95) <= before.percentile(0.96)


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_a_clock_that_was_once_ahead_does_not_rule_the_prediction(restarted: bool) -> None:
    made = Histogram(CPU_BUCKETS, DAY)
    for minute in range(10):
        made.add(1.0, wall=30 * DAY + 60.0 * minute)
    if restarted:
        kept = made.checkpoint()
        assert kept is not None
        made = Histogram(CPU_BUCKETS, DAY, parse(encode(kept), Checkpoint))
    for minute in range(60):
        made.add(40.0, wall=60.0 * minute)
    assert 40.0 <= made.percentile(0.95) < 43.0
    assert made.since == pytest.approx(-540.0)  # ten minutes before the clock was right


def test_a_clock_that_was_set_back_leaves_the_past_as_old_as_it_was() -> None:
    made = Histogram(SMALL, half_life_s=100.0)
    for _ in range(2):
        made.add(50.0, wall=5000.0)
    made.add(10.0, wall=5100.0)
    made.add(10.0, wall=0.0)  # set back: no time has passed
    assert made.percentile(2 / 3) == 40.0
    assert made.percentile(0.67) == 100.0


def test_memory_of_a_history_is_bounded() -> None:
    made = Histogram(MEMORY_BUCKETS, DAY)
    for n in range(100_000):
        made.add(float((n * 7919) % (1 << 40)), wall=float(n))
    kept = made.checkpoint()
    assert kept is not None
    assert len(kept.weights) <= MEMORY_BUCKETS.last + 1 <= 400
