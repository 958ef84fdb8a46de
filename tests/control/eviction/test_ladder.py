"""The ladder goes up while it hurts, down when it does not, and does not swing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.eviction.ladder import LONGEST_S, Climb, Pace, Rung, Signs, step

EVERY = frozenset(Rung) - {Rung.CALM}
DOWN = Climb()
PACE = Pace({Rung.RECLAIM: 5.0, Rung.THROTTLE: 10.0, Rung.FREEZE: 20.0}, 10.0)
HURTS = Signs(over=True, under=False, pressed=True)
FULL = Signs(over=True, under=False, pressed=False)
CALM = Signs(over=False, under=True, pressed=False)
BETWEEN = Signs(over=False, under=False, pressed=True)


def run(signs: list[Signs], climb: Climb = DOWN, stages: frozenset[Rung] = EVERY, start: int = 0) -> list[Climb]:
    """One look a second."""
    climbs = []
    for n, sign in enumerate(signs):
        climb = step(PACE, climb, sign, float(start + n), stages)
        climbs.append(climb)
    return climbs


def entered(climbs: list[Climb]) -> dict[Rung, int]:
    """Second of the first look at each stage."""
    first: dict[Rung, int] = {}
    for n, climb in enumerate(climbs):
        first.setdefault(climb.stage, n)
    return first


def test_each_stage_lasts_its_time_before_the_next() -> None:
    seen = entered(run([HURTS] * 60))
    assert seen == {Rung.RECLAIM: 0, Rung.THROTTLE: 5, Rung.FREEZE: 15, Rung.EVICT: 35}


def test_without_pressure_nobody_is_frozen_or_evicted() -> None:
    assert max(r.stage for r in run([FULL] * 600)) is Rung.THROTTLE


def test_a_critical_node_waits_for_nothing_but_a_moment() -> None:
    seen = entered(run([FULL._replace(critical=True)] * 60))
    assert seen[Rung.EVICT] == 6


def test_where_pressure_is_not_known_the_thresholds_decide() -> None:
    assert run([FULL._replace(pressed=None)] * 60)[-1].stage is Rung.EVICT


def test_stages_that_a_machine_lacks_are_passed_over() -> None:
    seen = entered(run([HURTS] * 60, stages=frozenset((Rung.FREEZE, Rung.EVICT))))
    assert seen == {Rung.FREEZE: 0, Rung.EVICT: 20}


def test_between_the_marks_what_was_begun_goes_on_and_nothing_begins() -> None:
    assert run([BETWEEN] * 20)[-1].stage is Rung.CALM
    assert run([HURTS] * 6 + [BETWEEN] * 60)[-1].stage is Rung.EVICT


def test_calm_leads_down_one_stage_at_a_time_and_freezes_nobody_on_the_way() -> None:
    climbs = run([HURTS] * 40 + [CALM] * 60)
    down = entered(climbs[40:])
    assert down == {Rung.EVICT: 0, Rung.THROTTLE: 10, Rung.RECLAIM: 20, Rung.CALM: 30}


def test_when_the_pressure_ends_the_frozen_run_again_though_the_node_is_full() -> None:
    climbs = run([HURTS] * 20 + [FULL] * 15)
    assert climbs[19].stage is Rung.FREEZE
    assert climbs[-1].stage is Rung.THROTTLE


def test_a_trigger_may_have_to_last() -> None:
    waits = HURTS._replace(wait_s=20.0)
    seen = entered(run([waits] * 30, stages=frozenset((Rung.EVICT,))))
    assert seen == {Rung.CALM: 0, Rung.EVICT: 20}
    assert run([waits] * 19 + [CALM] + [waits] * 19, stages=frozenset((Rung.EVICT,)))[-1].stage is Rung.CALM


def test_whoever_comes_back_soon_stays_longer() -> None:
    climb, lasted = Climb(), []
    start = 0
    for _ in range(3):
        climb = run([HURTS] * 6, climb, start=start)[-1]
        calm = run([CALM] * 200, climb, start=start + 6)
        lasted.append(entered(calm)[Rung.CALM])
        climb, start = calm[-1], start + 206
    assert lasted == [20, 40, 80]


SIGNS = st.builds(Signs, st.booleans(), st.booleans(), st.sampled_from([None, True, False]), st.booleans())


@given(st.lists(SIGNS, max_size=80), st.sets(st.sampled_from(sorted(EVERY))))
def test_whatever_is_seen_up_is_one_stage_at_a_time_and_unpressed_never_beyond_throttle(
    signs: list[Signs], stages: set[Rung]
) -> None:
    before = Climb()
    usable = sorted(stages)
    for sign, climb in zip(signs, run(signs, stages=frozenset(stages)), strict=True):
        assert climb.stage in {Rung.CALM, *stages}
        if climb.stage > before.stage:
            assert climb.stage == next(s for s in usable if s > before.stage)
            assert climb.stage <= Rung.THROTTLE or sign.urgent
            assert not sign.under
        before = climb


@given(st.lists(SIGNS, max_size=120))
def test_after_enough_calm_every_ladder_is_down(signs: list[Signs]) -> None:
    climb = run(signs)[-1] if signs else Climb()
    assert run([CALM] * (int(LONGEST_S) * 4 + 4), climb, start=len(signs))[-1].stage is Rung.CALM
