"""Water-filling: against an oracle that raises the level until the room is used up."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.cpu.suppression.water import RoomClaim, fill, wants

CLAIMS = st.lists(st.builds(RoomClaim, st.integers(1, 5), st.floats(0, 64) | st.just(math.inf)), min_size=1, max_size=8)


def by_level(room: float, claims: list[RoomClaim]) -> list[float]:
    """The level is found by halving; what nobody wants is divided by parts."""
    low, high = 0.0, room
    for _ in range(200):
        level = (low + high) / 2
        used = math.fsum(min(c.wants, level * c.parts) for c in claims)
        low, high = (level, high) if used < room else (low, level)
    got = [min(c.wants, low * c.parts) for c in claims]
    rest = (room - math.fsum(got)) / sum(c.parts for c in claims)
    return [g + rest * c.parts for g, c in zip(got, claims, strict=True)]


@given(room=st.floats(0.01, 64), claims=CLAIMS)
def test_portions_are_those_of_a_rising_level(room: float, claims: list[RoomClaim]) -> None:
    assert fill(room, claims) == pytest.approx(by_level(room, claims), abs=1e-6)


@given(room=st.floats(0.01, 64), claims=CLAIMS)
def test_what_each_would_have_of_equal_shares_is_never_taken_by_a_neighbour(
    room: float, claims: list[RoomClaim]
) -> None:
    portions, parts = fill(room, claims), sum(c.parts for c in claims)
    assert math.fsum(portions) == pytest.approx(room)
    for claim, portion in zip(claims, portions, strict=True):
        assert portion >= min(claim.wants, room * claim.parts / parts) - 1e-9


@given(room=st.floats(0.01, 64), claims=CLAIMS, data=st.data())
def test_the_order_of_the_claims_does_not_matter(room: float, claims: list[RoomClaim], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(claims))))
    shuffled = fill(room, [claims[n] for n in order])
    assert shuffled == pytest.approx([fill(room, claims)[n] for n in order])


@pytest.mark.parametrize(
    ("held", "used", "cap", "share", "wanted"),
    [
        pytest.param(math.inf, 0.0, math.inf, 2.0, 0.2, id="asleep"),
        pytest.param(0.2, 0.19, 0.2, 2.0, math.inf, id="awake: at its cap"),
        pytest.param(math.inf, 1.0, math.inf, 2.0, 1.25, id="no cap yet"),
        pytest.param(1.25, 1.1, 4.0, 2.0, 1.25, id="noise"),
        pytest.param(1.25, 1.2, 4.0, 2.0, 1.5, id="wants more"),
        pytest.param(1.25, 0.5, 4.0, 2.0, 0.625, id="wants less"),
    ],
)
def test_what_is_wanted_follows_from_what_is_used(
    held: float, used: float, cap: float, share: float, wanted: float
) -> None:
    assert wants(held, used, cap, share) == pytest.approx(wanted)
