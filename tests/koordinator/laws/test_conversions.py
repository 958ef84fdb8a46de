"""Between cgroup v1 and v2, and sysctls of the machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.errors import Invalid
from tests.koordinator.theirs.laws.conversions import (
    cpu_max,
    memory_max,
    quota,
    quota_of_cpu_max,
    shares,
    shares_of_weight,
    weight,
)
from tests.koordinator.theirs.laws.sysctl import min_free_kbytes, switch, watermark_scale_factor

GIB = 2**30


@pytest.mark.parametrize(
    ("given", "expected"), [(0, 1), (2, 1), (28, 1), (29, 2), (1024, 39), (262_144, 10_000), (10**9, 10_000)]
)
def test_weight_of_shares(given: int, expected: int) -> None:
    assert weight(given) == expected


@pytest.mark.parametrize(("given", "expected"), [(1, 2), (2, 28), (100, 2597), (10_000, 262_144)])
def test_shares_of_weight(given: int, expected: int) -> None:
    assert shares_of_weight(given) == expected


@pytest.mark.parametrize("given", [0, -1, 10_001])
def test_a_weight_out_of_range_is_refused(given: int) -> None:
    with pytest.raises(Invalid, match=r"cpu\.weight"):
        shares_of_weight(given)


@given(st.integers(1, 10_000))
def test_a_weight_that_went_to_shares_and_back_is_at_most_one_lower(given: int) -> None:
    assert weight(shares_of_weight(given)) in (given, given - 1)


@pytest.mark.parametrize(
    ("content", "expected"), [("max 100000", -1), ("50000 100000", 50_000), (" 1000  100000\n", 1000)]
)
def test_the_quota_of_cpu_max(content: str, expected: int) -> None:
    assert quota_of_cpu_max(content) == expected


@pytest.mark.parametrize("content", ["", "max", "100000", "a b", "1 2 3", "-1 100000", "max x", "9" * 30 + " 1"])
def test_what_is_no_quota_and_period_is_refused(content: str) -> None:
    with pytest.raises(Invalid, match=r"cpu\.max"):
        quota_of_cpu_max(content)


@given(st.integers(0, 10**12) | st.just(-1))
def test_a_quota_is_read_as_it_was_written(quota_us: int) -> None:
    assert quota_of_cpu_max(cpu_max(quota_us)) == quota_us


@pytest.mark.parametrize(("limit", "expected"), [(-1, "max"), (2**63 - 1, "max"), (0, "0"), (GIB, "1073741824")])
def test_a_limit_of_memory(limit: int, expected: str) -> None:
    assert memory_max(limit) == expected


@pytest.mark.parametrize(("milli", "expected"), [(0, 2), (1, 2), (500, 512), (1000, 1024), (10**6, 262_144)])
def test_shares_of_an_amount(milli: int, expected: int) -> None:
    assert shares(milli) == expected


@pytest.mark.parametrize(("milli", "expected"), [(-5, -1), (0, -1), (1, 1000), (10, 1000), (11, 1100), (1500, 150_000)])
def test_quota_of_an_amount(milli: int, expected: int) -> None:
    assert quota(milli) == expected


@pytest.mark.parametrize(
    ("memory", "factor", "expected"),
    [
        pytest.param(512 * GIB, 100, 5_368_709, id="one percent"),
        pytest.param(GIB, 100, 10_485, id="just enough"),
        pytest.param(GIB, 97, 777, id="too little"),
        pytest.param(512 * GIB, 196, 777, id="too much"),
        pytest.param(GIB, 0, 777, id="nothing"),
        pytest.param(GIB, -1, 777, id="less than nothing"),
        pytest.param(GIB, None, 777, id="not said"),
    ],
)
def test_memory_that_is_kept_free(memory: int, factor: int | None, expected: int) -> None:
    assert min_free_kbytes(memory, factor, 777) == expected


@pytest.mark.parametrize(("wanted", "expected"), [(10, 10), (400, 400), (9, 7), (401, 7), (None, 7)])
def test_watermarks_out_of_range_stay(wanted: int | None, expected: int) -> None:
    assert watermark_scale_factor(wanted, 7) == expected


@pytest.mark.parametrize(("wanted", "expected"), [(0, 0), (1, 1), (2, 1), (None, 1)])
def test_a_switch_is_on_or_off(wanted: int | None, expected: int) -> None:
    assert switch(wanted, 1) == expected
