"""The solver alone: prices, ranges, rounding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.weights import COARSE, FINE, Grid, Member, divide
from tests.control.sharing import kernel_v1, kernel_v2

GRIDS = [pytest.param(FINE, id="v1"), pytest.param(COARSE, id="v2")]
KERNEL = {FINE: kernel_v1, COARSE: kernel_v2}


@pytest.mark.parametrize("on", GRIDS)
@given(shares=st.floats(0, 300_000))
def test_the_kernel_holds_what_the_grid_offers(on: Grid, shares: float) -> None:
    for value in (on.up(shares), on.near(shares)):
        assert KERNEL[on](value) == value
        assert on.low <= value <= on.high
    assert on.up(shares) >= min(shares, on.high)


def test_the_arithmetic_by_hand() -> None:
    """4000m, 1000m promised: 3000m for 1024 + 1024 + 4096 bases is 0.488m a share; a quarter is the power below."""
    members = [Member(1024, 1000, free=True), Member(1024, free=True), Member(4096)]
    found = divide(members, 4000, FINE)
    assert found.price == 0.25
    assert found.shares == (1024 + 4000, 1024, 4096)
    assert found.holds
    assert found.shares[0] / found.total * 4000 == pytest.approx(1981, abs=1)


def test_bases_give_way_before_a_floor_does() -> None:
    """Shares for 1900m beside a base of 65536 would leave the range of v2; the base is ours to shrink."""
    members = [Member(65536, 1900, free=True), Member(65536, free=True), Member(1024)]
    found = divide(members, 2000, COARSE)
    assert found.holds
    assert found.shares[1] < 65536
    assert found.shares[2] == 1024


@pytest.mark.parametrize("on", GRIDS)
def test_more_than_there_is_is_cut_in_proportion_and_said(on: Grid) -> None:
    members = [Member(1024, 3000, free=True), Member(1024, 1500, free=True)]
    found = divide(members, 3000, on)
    assert not found.holds
    first, second = (s / found.total * 3000 for s in found.shares)
    assert first == pytest.approx(2 * second, rel=0.05)


def test_a_range_that_cannot_express_the_floor_is_said() -> None:
    assert not divide([Member(1024, 1900, free=True), Member(200_000)], 2000, COARSE).holds
    assert divide([Member(1024, 1000, free=True), Member(200_000)], 2000, FINE).holds


def test_a_held_price_stays_while_it_is_safe() -> None:
    members = [Member(1024, 1000, free=True), Member(4096)]
    best = divide(members, 4000, FINE).price
    assert divide(members, 4000, FINE, held=best / 2).price == best / 2
    assert divide(members, 4000, FINE, held=best * 2).price == best
    assert divide(members, 4000, FINE, held=best / 4).price == best
