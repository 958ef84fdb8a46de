"""The law of a link: never over it, floors first, nothing wasted, tiers above classes above workloads."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.network.divide import TrafficClaim, divide

LINK = 1000.0
NEAR = 1e-6  # of the link
rates = st.floats(0, 2000).map(lambda x: round(x, 3))
limits = st.one_of(st.just(math.inf), rates)
claims = st.builds(TrafficClaim, limits, st.floats(0, 300), limits, st.integers(0, 7), st.sampled_from(("", "s", "t")))
shares = st.dictionaries(
    st.sampled_from(("s", "t")), st.builds(TrafficClaim, st.just(math.inf), st.floats(0, 300), limits), max_size=2
)


@pytest.mark.parametrize(
    ("asked", "parts"),
    [
        pytest.param([], [], id="nobody"),
        pytest.param([TrafficClaim(300)], [300], id="one that wants less than there is"),
        pytest.param([TrafficClaim(), TrafficClaim()], [500, 500], id="equals divide evenly"),
        pytest.param([TrafficClaim(100), TrafficClaim()], [100, 900], id="what one leaves the other has"),
        pytest.param([TrafficClaim(level=0), TrafficClaim(level=7)], [1000, 0], id="a better level goes first"),
        pytest.param(
            [TrafficClaim(level=0), TrafficClaim(floor=200, level=7)], [800, 200], id="but not before a floor"
        ),
        pytest.param([TrafficClaim(), TrafficClaim(10, floor=200)], [990, 10], id="an unused floor is lent"),
        pytest.param(
            [TrafficClaim(ceiling=50), TrafficClaim(ceiling=60)], [50, 60], id="ceilings hold on an idle link"
        ),
        pytest.param(
            [TrafficClaim(floor=900, level=2), TrafficClaim(floor=900, level=6)],
            [900, 100],
            id="floors beyond the link are cut from the last level up",
        ),
        pytest.param(
            [TrafficClaim(floor=600), TrafficClaim(floor=200)], [700, 300], id="equals have the same above their floors"
        ),
        pytest.param(
            [TrafficClaim(floor=600), TrafficClaim(250, floor=200)], [750, 250], id="and what one leaves of it goes on"
        ),
    ],
)
def test_how_a_link_is_divided(asked: list[TrafficClaim], parts: list[float]) -> None:
    assert divide(LINK, asked) == pytest.approx(parts, abs=NEAR)


def test_a_namespace_has_its_floor_and_its_ceiling_together() -> None:
    members = [TrafficClaim(share="s"), TrafficClaim(share="s"), TrafficClaim(share="s", wants=10)]
    others = [TrafficClaim(level=0)]
    assert divide(LINK, [*members, *others], {"s": TrafficClaim(floor=310)}) == pytest.approx([150, 150, 10, 690])
    assert divide(LINK, members, {"s": TrafficClaim(ceiling=110)}) == pytest.approx([50, 50, 10])


@given(st.lists(claims, max_size=12), shares, st.floats(0, 2000))
def test_never_more_than_the_link_nor_than_is_wanted(
    asked: list[TrafficClaim], together: dict[str, TrafficClaim], room: float
) -> None:
    parts = divide(room, asked, together)
    assert math.fsum(parts) <= room + NEAR
    for part, claim in zip(parts, asked, strict=True):
        assert -NEAR <= part <= claim.most + NEAR
    for name, share in together.items():
        assert math.fsum(p for p, c in zip(parts, asked, strict=True) if c.share == name) <= share.ceiling + NEAR


@given(st.lists(claims, max_size=12))
def test_floors_that_fit_are_had_by_whoever_wants_them(asked: list[TrafficClaim]) -> None:
    alone = [c._replace(share="") for c in asked]
    room = math.fsum(c.floor for c in alone)
    for part, claim in zip(divide(room, alone), alone, strict=True):
        assert part >= min(claim.floor, claim.most) - NEAR


@given(st.lists(claims, max_size=12))
def test_nothing_is_left_while_somebody_wants_it(asked: list[TrafficClaim]) -> None:
    alone = [c._replace(share="") for c in asked]
    wanted = math.fsum(c.most for c in alone)
    assert math.fsum(divide(LINK, alone)) == pytest.approx(min(LINK, wanted), abs=1e-3)


@given(st.lists(claims, min_size=2, max_size=12))
def test_nobody_has_more_than_a_floor_while_a_better_level_wants_more(asked: list[TrafficClaim]) -> None:
    alone = [c._replace(share="") for c in asked]
    parts = divide(LINK, alone)
    hungry = [c.level for p, c in zip(parts, alone, strict=True) if p < c.most - 1e-3]
    for part, claim in zip(parts, alone, strict=True):
        if hungry and claim.level > min(hungry):
            assert part <= min(claim.floor, claim.most) + 1e-3


@given(st.lists(claims, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_the_claims_changes_nothing(asked: list[TrafficClaim], shuffled: object) -> None:
    order = list(range(len(asked)))
    shuffled.shuffle(order)  # type: ignore[attr-defined]
    parts = divide(LINK, asked)
    again = divide(LINK, [asked[n] for n in order])
    assert [again[order.index(n)] for n in range(len(asked))] == pytest.approx(parts, abs=1e-3)


@given(st.lists(claims, min_size=1, max_size=8))
def test_whoever_gets_what_it_wants_gets_it_again(asked: list[TrafficClaim]) -> None:
    """No oscillation: if everyone wants what it has just been given, everyone is given the same."""
    alone = [c._replace(share="") for c in asked]
    parts = divide(LINK, alone)
    settled = [c._replace(wants=part) for c, part in zip(alone, parts, strict=True)]
    assert divide(LINK, settled) == pytest.approx(parts, abs=1e-3)
