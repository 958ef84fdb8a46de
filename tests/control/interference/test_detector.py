"""Evidence: by ranks, with a least effect, never from a few samples, and never against whoever hurts itself."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.interference.correlation import aligned, rank_correlation, ranks
from j10ce.control.interference.detector import FEWEST, Case, antagonists
from j10ce.model.knob import TargetId, workload

VICTIM, HOG, CALM = (workload("default", name) for name in ("victim", "hog", "calm"))
NUMBERS = st.lists(st.integers(-1000, 1000).map(float), min_size=3, max_size=40)


def series(values: Sequence[float], every_s: float = 2.0) -> list[tuple[float, float]]:
    return [(every_s * (n + 1), value) for n, value in enumerate(values)]


def case(levels: Sequence[float], uses: dict[TargetId, Sequence[float]], capacity: float = math.inf) -> Case:
    return Case(VICTIM, series(levels), {t: series(v) for t, v in uses.items()}, 0.3, 0.1, 0.2, capacity)


STEP = [0.02] * 20 + [0.6] * 10
BUSY = [0.1] * 20 + [3.0] * 10


@given(NUMBERS)
def test_ranks_are_those_of_the_sorted_values(values: list[float]) -> None:
    ranked = ranks(values)
    assert math.fsum(ranked) == pytest.approx(len(values) * (len(values) - 1) / 2)
    assert all((ranked[i] < ranked[j]) == (a < b) for i, a in enumerate(values) for j, b in enumerate(values))


@given(NUMBERS)
def test_correlation_looks_at_order_alone(values: list[float]) -> None:
    stretched = [v**3 + 5 for v in values]
    expected = 1.0 if len(set(values)) > 1 else 0.0
    assert rank_correlation(values, stretched) == pytest.approx(expected)
    assert rank_correlation(values, [-v for v in stretched]) == pytest.approx(-expected)


@given(NUMBERS, NUMBERS)
def test_correlation_is_between_minus_one_and_one(a: list[float], b: list[float]) -> None:
    size = min(len(a), len(b))
    assert -1.0 <= rank_correlation(a[:size], b[:size]) <= 1.0


def test_use_is_averaged_over_the_intervals_of_the_victim() -> None:
    assert aligned([(2, 0.1), (4, 0.2), (6, 0.3)], [(n, float(n)) for n in range(1, 8)]) == [3.5, 5.5]


def test_an_interval_without_a_sample_cannot_be_compared() -> None:
    assert aligned([(2, 0.1), (4, 0.2), (6, 0.3)], [(1, 1.0), (3, 1.0)]) is None


def test_whose_use_moves_with_the_suffering_is_named_with_the_numbers() -> None:
    (evidence,) = antagonists(case(STEP, {VICTIM: [1.0] * 30, HOG: BUSY, CALM: [0.5] * 30}))
    assert evidence.suspect == HOG
    assert evidence.samples == 29
    assert evidence.correlation > 0.9
    assert evidence.effect == pytest.approx(2.9, rel=0.2)
    assert evidence.overlap == 1.0


def test_suffering_may_come_one_interval_later() -> None:
    pulse = [3.0 if n % 6 < 2 else 0.1 for n in range(30)]
    late = [0.02, *(0.6 if use > 1 else 0.02 for use in pulse[:-1])]
    (evidence,) = antagonists(case(late, {VICTIM: [1.0] * 30, HOG: pulse}))
    assert evidence.suspect == HOG


@pytest.mark.parametrize(
    ("levels", "uses"),
    [
        pytest.param(STEP[:FEWEST], {HOG: BUSY[:FEWEST]}, id="too few samples"),
        pytest.param(STEP, {HOG: [0.1] * 20 + [0.2] * 10}, id="too small an effect"),
        pytest.param(STEP, {HOG: [3.0] * 20 + [0.1] * 10}, id="it uses less then"),
        pytest.param([0.4] * 30, {HOG: BUSY}, id="the suffering does not move with it"),
        pytest.param(STEP, {VICTIM: [1.0] * 20 + [6.0] * 10, HOG: [0.1] * 20 + [2.5] * 10}, id="mostly its own load"),
        pytest.param(STEP, {HOG: [0.1] * 29 + [40.0]}, id="one single burst"),
        pytest.param(STEP, {}, id="nobody else"),
        pytest.param([], {HOG: BUSY}, id="nothing measured"),
    ],
)
def test_nobody_is_named_where(levels: list[float], uses: dict[TargetId, list[float]]) -> None:
    assert antagonists(case(levels, {VICTIM: [1.0] * len(levels), **uses})) == []


@pytest.mark.parametrize(
    ("uses", "named"),
    [
        pytest.param({HOG: [5.0] * 30, CALM: [1.0] * 30}, [HOG], id="one holds most"),
        pytest.param({HOG: [4.0] * 30, CALM: [3.0] * 30}, [], id="two hold much"),
        pytest.param({HOG: [3.0] * 30, CALM: [0.5] * 30}, [], id="less than half of all"),
    ],
)
def test_who_suffers_all_the_time_has_whoever_holds_most_as_antagonist(
    uses: dict[TargetId, list[float]], named: list[TargetId]
) -> None:
    evidence = antagonists(case([0.6] * 30, {VICTIM: [1.0] * 30, **uses}, capacity=8.0))
    assert [e.suspect for e in evidence] == named


def test_who_fills_the_machine_itself_has_no_antagonist() -> None:
    assert antagonists(case([0.6] * 30, {VICTIM: [7.0] * 30, HOG: [0.5] * 30}, capacity=8.0)) == []
