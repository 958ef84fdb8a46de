from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control import law

finite = st.floats(-1e9, 1e9)
positive = st.floats(1e-9, 1e12)


@pytest.mark.parametrize(
    ("value", "low", "high", "want"),
    [
        pytest.param(5, 1, 9, 5, id="inside"),
        pytest.param(0, 1, 9, 1, id="below"),
        pytest.param(10, 1, 9, 9, id="above"),
        pytest.param(5, 7, 3, 7, id="a floor beats a ceiling"),
    ],
)
def test_clamp(value: float, low: float, high: float, want: float) -> None:
    assert law.clamp(value, low, high) == want


@pytest.mark.parametrize(
    ("held", "value", "want"),
    [
        pytest.param(10, 11, 10, id="noise above stays"),
        pytest.param(10, 9, 10, id="noise below stays"),
        pytest.param(10, 12, 12, id="a real change goes through whole"),
        pytest.param(math.inf, 3, 3, id="from unlimited"),
    ],
)
def test_dead_band(held: float, value: float, want: float) -> None:
    assert law.dead_band(held, value, 2) == want


@given(held=finite, value=finite, rise=st.floats(0, 1e6), fall=st.floats(0, 1e6))
def test_a_ramp_moves_towards_its_goal_and_never_past_its_step(
    held: float, value: float, rise: float, fall: float
) -> None:
    after = law.ramp(held, value, rise=rise, fall=fall)
    assert min(held, value) <= after <= max(held, value)
    assert held - fall <= after <= held + rise


def test_a_ramp_falls_at_once_unless_asked() -> None:
    assert law.ramp(10, 1, rise=1) == 1
    assert law.ramp(1, 10, rise=1) == 2


@pytest.mark.parametrize(
    ("elapsed_s", "want"),
    [
        pytest.param(0, 0, id="no time"),
        pytest.param(3, 1 - 1 / math.e, id="one constant"),
        pytest.param(60, 1, id="long"),
    ],
)
def test_smoothing_forgets_with_time(elapsed_s: float, want: float) -> None:
    assert law.smooth(0.0, 1.0, elapsed_s, 3.0) == pytest.approx(want, abs=1e-6)


@given(st.lists(st.floats(0.01, 5), min_size=2, max_size=6))
def test_smoothing_does_not_depend_on_how_often_it_is_asked(steps: list[float]) -> None:
    often = 0.0
    for step in steps:
        often = law.smooth(often, 1.0, step, 3.0)
    assert often == pytest.approx(law.smooth(0.0, 1.0, math.fsum(steps), 3.0))


@given(positive, st.integers(1, 16))
def test_a_step_is_at_or_above_and_less_than_one_step_away(value: float, steps: int) -> None:
    step = law.step_up(value, steps)
    assert value * (1 - 1e-6) <= step < value * 2 ** (1 / steps) * (1 + 1e-6)
    assert law.step_up(step, steps) == step


def test_the_quantile_is_the_nearest_rank() -> None:
    assert law.quantile(range(1, 101), 0.95) == 95
    assert law.quantile([7.0], 0.0) == 7.0


@pytest.mark.parametrize(
    ("size", "down", "up"),
    [(0, 0, 0), (1, 0, 4096), (4096, 4096, 4096), (4097, 4096, 8192), (math.inf, math.inf, math.inf)],
)
def test_pages(size: float, down: float, up: float) -> None:
    assert (law.pages_down(size, 4096), law.pages_up(size, 4096)) == (down, up)
