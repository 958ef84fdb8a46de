"""Percentiles, histories in buckets, and what prod is not expected to use."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.policy.predict import Histogram
from tests.koordinator.theirs.overcommit.histogram import (
    CPU,
    EvenBuckets,
    History,
    added,
    checkpoint,
    merged,
    percentile,
)
from tests.koordinator.theirs.overcommit.predictor import PodPeak, by_pods, by_priority, reclaimable
from tests.koordinator.theirs.overcommit.samples import average, covers
from tests.koordinator.theirs.overcommit.samples import percentile as of_samples

HOUR = 3600.0
NINE = [800, 100, 200, 600, 700, 0, 500, 400, 300]


@pytest.mark.parametrize(("share", "expected"), [(0.9, 700), (0.5, 300), (0.99, 700), (1.0, 800), (0.0, 0), (0.1, 0)])
def test_a_percentile_is_cut_to_the_value_before_it(share: float, expected: int) -> None:
    assert of_samples(NINE, share) == expected


def test_of_one_value_every_percentile_is_that_and_of_none_there_is_none() -> None:
    assert of_samples([7], 0.5) == 7
    assert of_samples([], 0.5) is None
    assert (average([1, 2]), average([])) == (1.5, None)


@given(st.lists(st.floats(0, 1e9), min_size=1), st.floats(0, 1))
def test_a_percentile_is_one_of_the_values(values: list[float], share: float) -> None:
    assert of_samples(values, share) in values


def test_samples_must_cover_more_than_half_of_a_window() -> None:
    assert (covers(0, 150, 300), covers(0, 151, 300)) == (False, True)


EVEN = History(EvenBuckets(1.0, 10.0))


def filled(history: History, *samples: tuple[float, float]) -> History:
    for value, weight in samples:
        history = added(history, value, weight)
    return history


def test_a_percentile_is_the_end_of_its_bucket() -> None:
    history = filled(EVEN, (0.5, 1), (1.5, 2), (2.5, 3), (3.5, 4))
    shares = {0.0: 1.0, 0.1: 1.0, 0.11: 2.0, 0.3: 2.0, 0.5: 3.0, 0.6: 3.0, 0.61: 4.0, 1.0: 4.0}
    assert {share: percentile(history, share) for share in shares} == shares


def test_values_out_of_range_are_in_the_first_and_the_last_bucket() -> None:
    assert percentile(filled(EVEN, (-5.0, 1)), 0.5) == 1.0
    assert percentile(filled(EVEN, (99.0, 1)), 0.5) == 10.0
    assert [EVEN.scale.find(value) for value in (-1, 0, 0.99, 1, 9.99, 10, 99)] == [0, 0, 0, 1, 9, 10, 10]


def test_what_weighs_less_than_epsilon_is_nothing() -> None:
    light = filled(EVEN._replace(epsilon=0.1), (3.5, 0.09))
    assert light.empty
    assert percentile(light, 0.5) == 0.0
    assert percentile(filled(light, (5.5, 1)), 0.0) == 6.0
    assert not filled(light, (3.5, 0.02)).empty


def test_what_is_taken_away_is_gone() -> None:
    history = filled(EVEN, (1.5, 2), (5.5, 1), (5.5, -1))
    assert percentile(history, 1.0) == 2.0
    assert filled(history, (1.5, -9)).empty


FADING = History(EvenBuckets(1.0, 10.0), half_life_s=HOUR)


def test_the_past_counts_less_and_less() -> None:
    history = added(added(FADING, 8.5, 1000, 0.0), 1.5, 1, 20 * HOUR)
    assert percentile(history, 0.99) == 2.0
    assert percentile(added(added(FADING, 8.5, 1000, 0.0), 1.5, 1, HOUR), 0.99) == 9.0


def test_years_do_not_overflow() -> None:
    history = FADING
    for year in range(5):
        history = added(history, year + 0.5, 1, year * 365 * 24 * HOUR)
    assert percentile(history, 0.5) == 5.0
    assert all(math.isfinite(weight) for weight in history.weights.values())


def test_histories_merge_at_one_time() -> None:
    old = added(FADING, 8.5, 8, 0.0)
    new = added(FADING, 1.5, 1, 3 * HOUR)
    both = merged(old, new)
    assert (percentile(both, 0.5), percentile(both, 0.51)) == (2.0, 9.0)
    assert merged(old, FADING) == old
    assert percentile(merged(filled(EVEN, (1.5, 1)), filled(EVEN, (8.5, 1))), 1.0) == 9.0


def test_a_checkpoint_has_whole_numbers_and_forgets_what_is_next_to_nothing() -> None:
    assert checkpoint(filled(EVEN, (1.5, 4), (2.5, 1), (3.5, 0.0001))) == {1: 10_000, 2: 2500}
    assert checkpoint(EVEN) == {}


@given(st.lists(st.tuples(st.floats(0, 1000), st.integers(0, 48)), min_size=1, max_size=30), st.floats(0.01, 1))
def test_our_own_histogram_predicts_the_same(samples: list[tuple[float, int]], share: float) -> None:
    ours, theirs = Histogram(CPU, 12 * HOUR), History(CPU, 12 * HOUR, epsilon=0.0)
    for value, hour in sorted(samples, key=lambda sample: sample[1]):
        ours.add(value, hour * HOUR)
        theirs = added(theirs, value, 1.0, hour * HOUR)
    assert ours.percentile(share) <= percentile(theirs, share)
    assert percentile(theirs, max(0.0, share - 1e-9)) <= ours.percentile(share)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([PodPeak(1000, 500)], 450, id="beyond the peak and a tenth"),
        pytest.param([PodPeak(1000, 500, age_s=60)], 0, id="too young"),
        pytest.param([PodPeak(1000, None)], 0, id="no model"),
        pytest.param([PodPeak(1000, 2000), PodPeak(1000, 500)], 450, id="one uses more than it asked for"),
        pytest.param([PodPeak(1000, 500, terminating=True)], 0, id="it ends"),
        pytest.param([PodPeak(9000, 1000), PodPeak(0, 8000)], 100, id="no more than peaks leave of the node"),
        pytest.param([PodPeak(9000, 9000), PodPeak(9000, 500)], 0, id="never less than nothing"),
    ],
)
def test_pod_by_pod(pods: list[PodPeak], expected: int) -> None:
    assert by_pods(10_000, pods) == expected


@pytest.mark.parametrize(
    ("asked", "system", "peaks", "expected"),
    [(8000, 1000, [2000, 1000], 3600), (1000, 1000, [2000], 0), (50_000, 1000, [2000], 6700), (50_000, 9999, [], 0)],
)
def test_by_class(asked: int, system: int, peaks: list[int], expected: int) -> None:
    assert by_priority(10_000, asked, system, peaks) == expected


def test_the_smaller_guess_counts() -> None:
    assert (reclaimable(5, 3), reclaimable()) == (3, 0)
