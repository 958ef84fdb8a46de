"""The solver alone: prices, ranges, rounding."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.cpu.weights import COARSE, FINE, Grid, Member, divide
from tests.control.cpu.sharing import kernel_v1, kernel_v2

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
    """4000m, of which 3000m are promised beside 1024 + 4096 shares: with 1 % of headroom 5120 / 970 is 5.28 shares for
    a millicore, and the next step is 5.42."""
    members = [Member(1024, 3000, free=True), Member(1024, free=True), Member(4096)]
    shares = divide(members, 4000, FINE)
    assert shares.rate == pytest.approx(2 ** (39 / 16))
    assert shares.shares == (math.ceil(3030 * 2 ** (39 / 16)), 1024, 4096)
    assert shares.holds


def test_a_weight_that_holds_its_floor_is_left_as_it_is() -> None:
    members = [Member(1024, 1000, free=True), Member(512, 300, raised=True), Member(1024)]
    assert divide(members, 4000, FINE).shares == (1024, 512, 1024)


def test_who_may_not_be_raised_holds_the_others_down() -> None:
    """Two floors of 800m on 2000m, one of them in a group of 1024 shares that is not ours: at most 2560 in all."""
    members = [Member(0, 800, free=True), Member(1024, 800)]
    shares = divide(members, 2000, FINE)
    assert shares.holds
    assert shares.total <= 2560
    assert shares.shares[0] * 2000 / shares.total >= 800


def test_a_floor_that_no_weight_can_keep_holds_nobody_down() -> None:
    """2 shares beside 1024 have 4m of 2000m, whatever we do; the other floor is kept all the same."""
    members = [Member(0, 900, free=True), Member(2, 500), Member(1024)]
    shares = divide(members, 2000, FINE)
    assert not shares.holds
    assert shares.shares[0] * 2000 / shares.total >= 900


def test_floors_that_exclude_each_other_are_cut_alike() -> None:
    members = [Member(0, 1500, free=True), Member(1024, 900)]
    shares = divide(members, 2000, FINE)
    assert not shares.holds
    ours, theirs = (s * 2000 / shares.total for s in shares.shares)
    assert ours / 1500 == pytest.approx(theirs / 900, rel=0.07)


def test_a_request_yields_to_a_floor_and_to_nothing_else() -> None:
    """500 shares that request 500m beside a floor: kept while both fit."""
    both = divide([Member(0, 1400, free=True), Member(500, counted=500)], 2000, FINE)
    assert both.shares[1] * 2000 / both.total >= 500
    over = divide([Member(0, 1800, free=True), Member(500, counted=500)], 2000, FINE)
    assert over.shares[0] * 2000 / over.total >= 1800


def test_bases_give_way_before_a_floor_does() -> None:
    """Shares for 1900m beside a base of 65536 would leave the range of v2; the base is ours to shrink."""
    members = [Member(65536, 1900, free=True), Member(65536, free=True), Member(1024)]
    shares = divide(members, 2000, COARSE)
    assert shares.holds
    assert shares.shares[1] < 65536
    assert shares.shares[2] == 1024


@pytest.mark.parametrize("on", GRIDS)
def test_more_than_there_is_is_cut_in_proportion_and_said(on: Grid) -> None:
    members = [Member(1024, 3000, free=True), Member(1024, 1500, free=True)]
    shares = divide(members, 3000, on)
    assert not shares.holds
    first, second = (s / shares.total * 3000 for s in shares.shares)
    assert first == pytest.approx(2 * second, rel=0.05)


def test_promises_beyond_the_capacity_leave_a_little_to_whoever_was_promised_nothing() -> None:
    shares = divide([Member(1024, 3000, free=True), Member(1024, 1500, free=True), Member(1024)], 3000, FINE)
    assert not shares.holds
    assert shares.shares[2] * 3000 / shares.total == pytest.approx(0.05 * 3000, rel=0.1)


def test_a_range_that_cannot_express_the_floor_is_said() -> None:
    assert not divide([Member(1024, 1900, free=True), Member(200_000)], 2000, COARSE).holds
    assert divide([Member(1024, 1000, free=True), Member(200_000)], 2000, FINE).holds


def test_a_held_rate_stays_while_it_is_safe_and_near() -> None:
    members = [Member(0, 1000, free=True), Member(4096)]
    best = divide(members, 4000, FINE).rate
    above = best * 2 ** (1 / 16)
    assert divide(members, 4000, FINE, held=above).rate == above
    assert divide(members, 4000, FINE, held=best / 2).rate == best, "too low"
    assert divide(members, 4000, FINE, held=best * 2).rate == best, "higher than need be"
