"""The law of `cpu-suppress`: how room follows what the others use."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.cpu.suppression.room import Law, Room, next_room
from j10ce.control.cpu.suppression.terms import QUICK
from j10ce.model.quantity import Duration

CPUS = 10.0
LAW = Law()
QUICK_LAW = msgspec.structs.replace(LAW, **QUICK)
readings = st.lists(st.one_of(st.none(), st.floats(0, 12)), min_size=1, max_size=80)


def run(uses: Iterable[float | None], law: Law = LAW, step_s: float = 1.0) -> list[Room]:
    rooms: list[Room] = []
    for n, use in enumerate(uses):
        rooms.append(next_room(law, rooms[-1] if rooms else None, n * step_s, use, CPUS))
    return rooms


def changes(rooms: list[Room]) -> int:
    return sum(a.cpus != b.cpus for a, b in pairwise(rooms))


def cpus(rooms: Iterable[Room]) -> list[float]:
    return [room.cpus for room in rooms]


@pytest.mark.parametrize(
    ("use", "want"),
    [
        pytest.param(0.0, 8.0, id="an idle machine lends its ceiling"),
        pytest.param(5.0, 3.0, id="what the others leave"),
        pytest.param(7.9, 0.5, id="never below the floor"),
        pytest.param(12.0, 0.5, id="not even when overloaded"),
    ],
)
def test_the_first_reading_decides_at_once(use: float, want: float) -> None:
    assert cpus(run([use])) == pytest.approx([want])


def test_reserve_is_left_free() -> None:
    assert cpus(run([5.0], Law(reserve_cpus=1.0))) == pytest.approx([2.0])


def test_shrinking_is_immediate_and_growing_slow() -> None:
    rooms = run([2.0, 6.0, *[0.0] * 4], Law(window=Duration(2), calm=Duration(2)))
    # 2 % of ten CPUs a second, once the lower use has lasted for two seconds.
    assert cpus(rooms) == pytest.approx([6.0, 2.0, 2.0, 2.2, 2.4, 2.6])


def test_a_burst_is_remembered_for_the_window() -> None:
    rooms = run([*[1.0] * 20, *[6.0] * 5, *[1.0] * 30])
    assert rooms[24].cpus == pytest.approx(2.0, abs=0.5)
    assert rooms[-1].cpus <= rooms[24].cpus


def test_a_missing_reading_keeps_the_decision_and_says_so() -> None:
    first, second = run([5.0, None])
    assert second.cpus == first.cpus
    assert second.reason == "no reading of the node's CPU use; stays at 3.00 CPUs"


def test_before_the_first_reading_others_count_by_what_they_ask_for_and_growth_is_not_held_against_it() -> None:
    first = next_room(LAW, None, 0.0, None, CPUS, asked=2.5)
    assert first.cpus == pytest.approx(5.5)
    assert first.reason == "nothing was read yet; others ask for 2.50 of 10 CPUs; 5.50 left"
    assert next_room(LAW, first, 1.0, 0.0, CPUS).cpus == pytest.approx(8.0)


def test_a_step_is_answered_by_one_change_each_way() -> None:
    rooms = run([*[2.0] * 30, *[6.0] * 30, *[2.0] * 30], QUICK_LAW)
    assert changes(rooms) == 2
    assert rooms[30].cpus == pytest.approx(2.0), "at once"
    assert rooms[63].cpus == pytest.approx(6.0), "once it has lasted for three seconds"


def test_samples_between_ticks_do_not_pile_up() -> None:
    assert len(run([1.0] * 1000, step_s=0.01)[-1].uses) <= 1000 * 0.01 / 0.5 + 1


@given(readings)
def test_room_stays_between_its_floor_and_the_machine(uses: list[float | None]) -> None:
    for room in run(uses):
        assert LAW.floor * CPUS <= room.cpus <= CPUS


@given(uses=st.lists(st.floats(0, 12), min_size=1, max_size=40), more=st.floats(0, 6))
def test_a_use_beyond_all_noise_is_made_room_for_at_once(uses: list[float], more: float) -> None:
    """Whatever was before: 36 CPUs are more than any noise between 0 and 12."""
    held = run(uses)[-1]
    after = next_room(LAW, held, float(len(uses)), 36.0 + held.level + more, CPUS)
    assert after.cpus == pytest.approx(LAW.floor * CPUS, abs=LAW.dead_band * CPUS)


@given(seed=st.integers(0, 2**32), peaks=st.booleans())
def test_stationary_noise_costs_few_changes(seed: int, peaks: bool) -> None:
    """Of readings that the law of theirs would answer with a change nearly each."""
    draw = random.Random(seed)
    rooms = run([4.0 + (draw.choice((-1, 1)) if peaks else draw.uniform(-1, 1)) for _ in range(120)], QUICK_LAW)
    assert changes(rooms[20:]) <= 100 / 2


@given(st.lists(st.floats(-0.09, 0.09), min_size=10, max_size=200))
def test_noise_within_the_dead_band_moves_nothing(noise: list[float]) -> None:
    """0.18 CPUs from peak to peak, and a dead band of 0.2."""
    assert len(set(cpus(run([4.0, *(4.0 + n for n in noise)])))) == 1


@given(st.lists(st.floats(0, 10), min_size=2, max_size=60))
def test_a_constant_load_settles_and_stays(uses: list[float]) -> None:
    rooms = run([*uses, *[3.0] * 200])
    assert len(set(cpus(rooms[-60:]))) == 1
    assert rooms[-1].cpus == pytest.approx(5.0, abs=LAW.dead_band * CPUS)


@given(readings)
def test_growth_is_limited_per_second(uses: list[float | None]) -> None:
    rooms = run([1.0, *uses])
    for before, after in pairwise(rooms):
        assert after.cpus - before.cpus <= LAW.grow * CPUS + 1e-9
