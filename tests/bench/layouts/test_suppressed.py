from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.bench.layouts.suppressed import LEAST_QUOTA_S, quota_s


@pytest.mark.parametrize(
    ("capacity", "used", "before", "wanted"),
    [
        pytest.param(10, 2.5, 0.4, 0.4, id="65 % less what others use: 4 CPUs"),
        pytest.param(10, 0.5, 0.4, 0.5, id="grows by a tenth of the machine at a time"),
        pytest.param(10, 6.0, 0.4, 0.05, id="shrinks at once"),
        pytest.param(10, 9.0, 0.4, LEAST_QUOTA_S, id="never below 2 ms"),
        pytest.param(10, 2.45, 0.4, 0.4, id="a step below a hundredth of the machine is not taken"),
    ],
)
def test_the_law(capacity: float, used: float, before: float, wanted: float) -> None:
    assert quota_s(capacity, used, before) == pytest.approx(wanted)


@given(st.floats(1, 256), st.floats(0, 256), st.floats(LEAST_QUOTA_S, 25))
def test_it_settles(capacity: float, used: float, before: float) -> None:
    for _ in range(400):
        before = quota_s(capacity, used, before)
    assert quota_s(capacity, used, before) == before
