"""The ladder: the mildest cap that helps, undone where none does, and less and less often tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.interference.trial import (
    BACK_OFF_S,
    KEEP_S,
    LONGEST_S,
    RUNGS,
    TRIAL_S,
    Trial,
    again,
    begin,
    cap,
    may_begin,
    proceed,
)
from j10ce.model.knob import PERIOD_US, workload
from j10ce.testing.build import entitlement, snapshot
from j10ce.testing.build import workload as described

VICTIM, HOG = workload("default", "victim"), workload("default", "hog")
BAD = 0.3


def started(resource: str = "cpu", used: float = 4.0) -> Trial:
    return begin(VICTIM, HOG, resource, suffered=0.6, used=used, now=0.0)


def test_what_helps_is_kept_and_ends() -> None:
    trial = proceed(started(), TRIAL_S, level=0.1, bad=BAD)
    assert (trial.stage, trial.rung, trial.until) == ("kept", 0, TRIAL_S + KEEP_S)
    assert proceed(trial, trial.until - 1, level=0.1, bad=BAD) is trial
    assert proceed(trial, trial.until, level=0.1, bad=BAD).stage == "ended"


def test_a_quarter_less_is_help() -> None:
    assert proceed(started(), TRIAL_S, level=0.44, bad=BAD).stage == "kept"
    assert proceed(started(), TRIAL_S, level=0.46, bad=BAD).stage == "trying"


def test_nothing_is_judged_before_the_trial_is_over() -> None:
    trial = started()
    assert proceed(trial, TRIAL_S - 1, level=0.0, bad=BAD) is trial


def test_without_help_it_climbs_every_rung_and_gives_up() -> None:
    trial, now, climbed = started(), 0.0, []
    while trial.caps:
        climbed.append(trial.rung)
        now += TRIAL_S
        trial = proceed(trial, now, level=0.6, bad=BAD)
    assert climbed == list(range(len(RUNGS["cpu"])))
    assert (trial.stage, trial.until) == ("given up", now + BACK_OFF_S)
    assert not may_begin(trial, trial.until - 1)
    assert may_begin(trial, trial.until)


def test_each_time_in_vain_it_waits_twice_as_long_up_to_an_hour() -> None:
    trial, now, waits = started(), 0.0, []
    for _ in range(5):
        while trial.caps:
            now += TRIAL_S
            trial = proceed(trial, now, level=0.6, bad=BAD)
        waits.append(trial.until - now)
        now = trial.until
        trial = again(trial, 0.6, 4.0, now)
    assert waits == [BACK_OFF_S, 2 * BACK_OFF_S, 4 * BACK_OFF_S, LONGEST_S, LONGEST_S]


def test_what_helped_is_where_the_next_time_begins() -> None:
    second = proceed(started(), TRIAL_S, level=0.6, bad=BAD)
    kept = proceed(second, 2 * TRIAL_S, level=0.1, bad=BAD)
    ended = proceed(kept, kept.until, level=0.1, bad=BAD)
    assert may_begin(ended, kept.until)
    renewed = again(ended, 0.5, 4.0, now=1000.0)
    assert (renewed.stage, renewed.rung) == ("trying", second.rung)
    longer = proceed(renewed, 1000.0 + TRIAL_S, level=0.1, bad=BAD)
    assert longer.until - (1000.0 + TRIAL_S) == 2 * KEEP_S


@given(st.floats(0, 64), st.integers(0, 64_000), st.integers(0, 2))
def test_a_cap_on_cpu_time_never_cuts_into_the_floor(used: float, floor: int, rung: int) -> None:
    hog = described("hog")
    entitled = entitlement(hog, floor_cpu=f"{floor}m")
    value = cap(started(used=used)._replace(rung=rung), entitled, snapshot(entitled, workloads=[hog]))
    assert value >= floor / 1000 * PERIOD_US - 1
    assert value <= max(used * RUNGS["cpu"][rung], floor / 1000, 0.1) * PERIOD_US + 1


@pytest.mark.parametrize(("used", "floor"), [(5 << 30, 0), (1 << 20, 1 << 30)], ids=["what it has", "its floor"])
def test_memory_may_not_grow_any_more(used: int, floor: int) -> None:
    hog = described("hog")
    entitled = entitlement(hog, floor_memory=str(floor))
    value = cap(started("memory", float(used)), entitled, snapshot(entitled, workloads=[hog]))
    assert value == max(used, floor)
