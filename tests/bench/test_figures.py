from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.bench.figures import STEP, above, by_second, isolation, of_rounds, percentile, ratio, worst_by_second

latencies = st.floats(1e-6, 100.0)
seconds = st.lists(st.lists(latencies, min_size=1, max_size=30), min_size=1, max_size=4)
rounds = st.lists(seconds, min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("values", "share", "wanted"),
    [
        pytest.param([1, 2, 3, 4], 0.5, 2, id="half of them are not above the second of four"),
        pytest.param([*range(1, 101)], 0.99, 99, id="one of a hundred is above p99"),
        pytest.param([*range(1, 1001)], 0.999, 999, id="one of a thousand is above p99.9"),
        pytest.param([7], 0.999, 7, id="one value is every percentile"),
        pytest.param([1, 2], 1.0, 2, id="nothing is above all of them"),
    ],
)
def test_percentile(values: list[int], share: float, wanted: int) -> None:
    assert percentile(values, share) == wanted


@given(st.lists(latencies, min_size=1), st.floats(0.001, 1.0))
def test_a_percentile_is_not_exceeded_by_its_share_and_no_smaller_one_is(values: list[float], share: float) -> None:
    ordered = sorted(values)
    p = percentile(ordered, share)
    assert p in values
    assert sum(v <= p for v in values) >= share * len(values) - 1e-6
    assert sum(v < p for v in values) < share * len(values) + 1e-6


@pytest.mark.parametrize(
    ("served", "length", "wanted"),
    [
        pytest.param(
            [(0.1, 5.0), (0.9, 6.0), (1.5, 7.0)], 2.0, [[5.0, 6.0], [7.0]], id="a request belongs where it is due"
        ),
        pytest.param([(0.1, 5.0), (2.3, 6.0)], 2.4, [[5.0], [6.0]], id="a last half joins the second before"),
        pytest.param([(1.1, 5.0)], 2.0, [[5.0]], id="a second without requests is left out"),
        pytest.param([(0.2, math.inf)], 1.0, [[math.inf]], id="who is not served waits for ever"),
    ],
)
def test_seconds(served: list[tuple[float, float]], length: float, wanted: list[list[float]]) -> None:
    assert by_second(served, length) == wanted


def test_one_disturbed_round_does_not_decide() -> None:
    assert of_rounds([[[1.0]], [[1.1]], [[500.0]]], 0.99) == 1.1


@given(rounds)
def test_every_arm_is_one_times_itself(arm: list[list[list[float]]]) -> None:
    middle, low, high = ratio(arm, arm)
    assert middle == 1.0
    assert low <= middle <= high


@given(rounds, st.floats(0.1, 10.0))
def test_an_arm_that_is_slower_by_a_factor_has_that_ratio(arm: list[list[list[float]]], factor: float) -> None:
    slower = [[[took * factor for took in second] for second in r] for r in arm]
    middle, low, high = ratio(slower, arm)
    assert middle == pytest.approx(factor)
    assert low <= middle <= high


def test_the_interval_of_steady_rounds_is_narrow_and_of_unsteady_ones_wide() -> None:
    alone = [[[1.0] * 100] * 4] * 3
    _, low, high = ratio([[[2.0] * 100] * 4] * 3, alone)
    assert high / low < STEP**3
    _, low, high = ratio([[[1.0] * 100] * 4, [[9.0] * 100] * 4], [[[1.0] * 100] * 4] * 2)
    assert high / low > 3


@given(rounds, rounds)
def test_isolation_is_a_share_and_its_worst_is_not_above_its_mean(
    arm: list[list[list[float]]], alone: list[list[list[float]]]
) -> None:
    mean, worst = isolation(arm, alone)
    assert 0.0 <= worst <= mean + 1e-9 <= 1.0 + 2e-9


@pytest.mark.parametrize(
    ("p99", "kept"),
    [
        pytest.param(1.0, 1.0, id="as good as alone"),
        pytest.param(4.0, 0.25, id="four times as long"),
        pytest.param(0.5, 1.0, id="faster than alone counts as alone"),
    ],
)
def test_isolation(p99: float, kept: float) -> None:
    assert isolation([[[p99]]], [[[1.0]], [[1.0]]]) == (kept, kept)


@given(rounds)
def test_the_seconds_keep_their_order(arm: list[list[list[float]]]) -> None:
    worst = worst_by_second(arm, 1.0)
    assert worst == [max(second) for r in arm for second in r]
    assert statistics.median(worst) <= max(worst)


@pytest.mark.parametrize(
    ("p99", "over"),
    [pytest.param(2.4, 0, id="as far as the SLO goes"), pytest.param(2.5, 2, id="beyond it")],
)
def test_seconds_above_the_slo_are_counted_against_the_worst_second_alone(p99: float, over: int) -> None:
    assert above([[[p99], [1.0]], [[p99]]], [[[1.0], [2.0]]], 1.2) == (over, 3)
