"""Caps that follow what is measured: floors first, nobody starved, and an end when nobody needs them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.disk.follow import (
    LEAST_ROOM,
    LET_GO_S,
    DiskRate,
    Followed,
    divide,
    follow,
    promised,
    used,
)
from j10ce.model.knob import TargetId, workload
from j10ce.model.machine.disk import Disk
from j10ce.model.resource import Resources

MB = 1_000_000
SDA = Disk("8:0", name="sda", managed=True, read_bps=200 * MB, write_bps=100 * MB, read_iops=10_000, write_iops=5_000)
API, SYNC, SCAN = (workload("default", name) for name in ("api", "sync", "scan"))
FLOOR = {API: Resources(disk_read=100 * MB)}

rate = st.builds(
    DiskRate,
    st.floats(0, 400 * MB),
    st.floats(0, 200 * MB),
    st.floats(0, 20_000),
    st.floats(0, 10_000),
)


def steps(*rates: dict[TargetId, DiskRate], floors: dict[TargetId, Resources] = FLOOR) -> list[Followed]:
    """One every two seconds."""
    state, seen = Followed(), []
    for n, measured in enumerate(rates):
        state = follow(state, SDA, floors, measured, 2.0 * n)
        seen.append(state)
    return seen


BUSY = {API: DiskRate(read=20 * MB), SYNC: DiskRate(write=90 * MB)}


def test_others_are_capped_once_a_holder_works_and_the_disk_is_full() -> None:
    (state,) = steps(BUSY)
    assert state.needs == {API: pytest.approx(0.5)}
    assert state.caps[SYNC].share == pytest.approx(0.5)
    assert 0.7 * 50 * MB < state.caps[SYNC].write_bps <= 50 * MB


@pytest.mark.parametrize(
    "quiet",
    [
        pytest.param({SYNC: DiskRate(write=95 * MB)}, id="the holder does nothing"),
        pytest.param({API: DiskRate(read=20 * MB)}, id="nobody else is there"),
        pytest.param({API: DiskRate(read=20 * MB), SYNC: DiskRate(write=10 * MB)}, id="there is room for both"),
    ],
)
def test_nobody_is_capped_where_nobody_needs_it(quiet: dict[TargetId, DiskRate]) -> None:
    assert steps(quiet, quiet)[-1].caps == {}


def test_what_is_kept_follows_what_the_holder_uses() -> None:
    states = steps(*[BUSY] * 10)
    needs = [state.needs[API] for state in states]
    assert needs == sorted(needs, reverse=True)
    assert needs[-1] == pytest.approx(0.15)  # half as much again as the 10 % of the disk that it uses
    assert states[-1].caps[SYNC].write_bps > states[0].caps[SYNC].write_bps


def test_a_holder_that_wants_more_has_its_whole_floor_at_once() -> None:
    states = steps(*[BUSY] * 10, {**BUSY, API: DiskRate(read=28 * MB)})
    assert states[-1].needs[API] == pytest.approx(0.5)


def test_caps_end_some_seconds_after_the_last_work_of_a_holder() -> None:
    after = {SYNC: DiskRate(write=40 * MB)}
    states = steps(BUSY, *[after] * 4)
    assert [bool(state.caps) for state in states] == [2.0 * n <= LET_GO_S for n in range(5)]


def test_small_operations_make_each_byte_of_a_floor_dearer() -> None:
    small = DiskRate(read=4096 * 2000, reads=2000)
    assert used(small, SDA).read == pytest.approx(0.2)
    assert promised(Resources(disk_read=4096 * 4000), small, SDA) == pytest.approx(0.4)


def test_steady_use_moves_no_cap() -> None:
    states = steps(*[BUSY] * 20)
    assert len({state.caps[SYNC] for state in states[10:]}) == 1


@given(st.dictionaries(st.sampled_from([API, SYNC, SCAN]), rate), st.integers(1, 400), st.integers(1, 8))
def test_floors_come_first_and_nobody_is_starved(rates: dict[TargetId, DiskRate], floor_mb: int, times: int) -> None:
    floors = {API: Resources(disk_read=floor_mb * MB)}
    for state in steps(*[rates] * times, floors=floors):
        assert API not in state.caps
        assert all(0 <= need <= 1 - LEAST_ROOM for need in state.needs.values())
        shares = [cap.share for cap in state.caps.values()]
        room = max(LEAST_ROOM, 1 - sum(state.needs.values()))
        assert not shares or sum(shares) == pytest.approx(room)
        assert all(s >= room / (2 * len(shares)) - 1e-9 for s in shares)
        assert all(min(cap.read_bps, cap.write_bps) >= 1 for cap in state.caps.values())


@given(st.dictionaries(st.text(max_size=3).map(TargetId), st.floats(0, 3), min_size=1), st.floats(0.1, 1))
def test_a_division_uses_all_of_the_room_and_gives_each_his_due(asks: dict[TargetId, float], room: float) -> None:
    shares = divide(asks, room)
    assert sum(shares.values()) == pytest.approx(room)
    even = room / len(asks)
    assert all(shares[t] >= min(asks[t], even) - 1e-9 for t in asks)
