"""What `make bench` makes of a proof."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from benchmarks.__main__ import heading, key
from benchmarks.prove import disturbed_goals, diurnal_goals, goals_of, memory_goals
from j10ce.bench.taken import Taken
from tests.bench.build import proof, taken


@pytest.mark.parametrize(
    ("ls_ms", "met"), [pytest.param(1.1, True, id="close to alone"), pytest.param(1.3, False, id="far from it")]
)
def test_a_service_that_is_not_protected_misses_the_goal(ls_ms: float, met: bool) -> None:
    goals = [*goals_of(proof({"alone": taken(1.0), "ls": taken(ls_ms)}))]
    assert all(goal.met for goal in goals) is met


@pytest.mark.parametrize(
    ("ceiling_ms", "realtime_ms", "met"),
    [
        pytest.param(0.5, 0.6, True, id="near the ceiling and faster than alone"),
        pytest.param(0.5, 0.8, False, id="slower than it might be"),
        pytest.param(0.9, 1.0, True, id="where the ceiling is no better only the ceiling counts"),
        pytest.param(0.9, 1.2, False, id="and that far from it is too far"),
    ],
)
def test_real_time_is_measured_against_what_the_kernel_can_give(
    ceiling_ms: float, realtime_ms: float, met: bool
) -> None:
    arms = {"alone": taken(1.0), "ls": taken(1.0), "realtime": taken(realtime_ms), "ceiling": taken(ceiling_ms)}
    assert all(goal.met for goal in goals_of(proof(arms))) is met


def test_a_heading_says_how_far_it_is_and_what_is_left() -> None:
    took = {key("a"): 200.0, key("b"): 100.0}
    assert heading(["a", "b", "c"], 1, took) == "2 of 3  b  about 3 min left"
    assert heading(["b"], 0, {key("b"): 2.0}) == "1 of 1  b  less than a minute left"


@pytest.mark.parametrize(("realtime_ms", "met"), [pytest.param(0.9, True, id="faster"), pytest.param(1.1, False)])
def test_beside_those_that_the_fair_class_cannot_keep_off_real_time_is_as_fast_as_alone(
    realtime_ms: float, met: bool
) -> None:
    (goal,) = disturbed_goals(proof({"alone": taken(1.0), "realtime": taken(realtime_ms), "ceiling": taken(0.9)}))
    assert goal.met is met
    assert "the ceiling has 0.90" in goal.says


def test_a_day_is_missed_with_one_second_above_the_slo_or_an_idle_machine() -> None:
    within = proof({"alone": taken(1.0), "ls": taken(1.1, busy=0.95)})
    above = proof({"alone": taken(1.0), "ls": taken(1.3, busy=0.8)})
    assert [goal.met for goal in diurnal_goals(within)] == [True, True]
    assert [goal.met for goal in diurnal_goals(above)] == [False, False]


def test_a_working_set_that_is_read_again_is_missed() -> None:
    def boxed(served: float, refaults: int) -> list[Taken]:
        return [replace(t, served=served, refaults=refaults) for t in taken(1.0)]

    kept = proof({"alone": boxed(100.0, 0), "ls": boxed(99.0, 0)})
    lost = proof({"alone": boxed(100.0, 0), "ls": boxed(90.0, 7)})
    assert [goal.met for goal in memory_goals(kept)] == [True, True]
    assert [goal.met for goal in memory_goals(lost)] == [False, False]
