from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.bench.crowd.service import schedule


@given(st.floats(10, 2000), st.floats(0.5, 3.0), st.integers(0, 2**31))
def test_requests_are_due_in_order_within_the_time_and_the_same_for_the_same_seed(
    rate: float, seconds: float, seed: int
) -> None:
    due = schedule(rate, rate, seconds, seed)
    assert [*due] == sorted(due)
    assert all(0 < at < seconds for at in due)
    assert due == schedule(rate, rate, seconds, seed)


@pytest.mark.parametrize("seed", range(5))
def test_arrivals_are_those_of_a_poisson_process(seed: int) -> None:
    """Of 20,000 gaps the mean and the share beyond the mean are within five standard deviations."""
    due = schedule(2000.0, 2000.0, 10.0, seed)
    gaps = [b - a for a, b in pairwise(due)]
    assert sum(gaps) / len(gaps) == pytest.approx(1 / 2000, rel=0.04)
    assert sum(gap > 1 / 2000 for gap in gaps) / len(gaps) == pytest.approx(0.3679, abs=0.02)


def test_a_day_begins_and_ends_quietly_and_is_busiest_at_noon() -> None:
    due = schedule(9000.0, 2000.0, 10.0, 1)
    morning, noon, night = (sum(n <= at < n + 1 for at in due) for n in (0, 4.5, 9))
    assert morning == pytest.approx(2000 + 7000 * 0.033, rel=0.1)
    assert noon == pytest.approx(9000, rel=0.05)
    assert night == pytest.approx(morning, rel=0.15)
