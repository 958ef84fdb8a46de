"""The law of taking memory back: larger steps while nobody feels them, a pause when somebody does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.memory import steps as law
from j10ce.control.memory.steps import FIRST, LONGEST_S, MOST, PAUSE_S, PERIOD_S, Measured, Steps, felt

MI = float(1 << 20)


def seen(now: float = 4.0, current: float = 90 * MI, refaults: float = 0.0, pressure: float | None = 0.0) -> Measured:
    return Measured(now, current, refaults, pressure)


AFTER = Steps(0.0, 4.0, taken=10 * MI, before=100 * MI)


@pytest.mark.parametrize(
    ("steps", "measured", "why"),
    [
        pytest.param(AFTER, seen(), "", id="nothing"),
        pytest.param(AFTER, seen(pressure=0.0009), "", id="stalled less than allowed"),
        pytest.param(AFTER, seen(pressure=0.0011), "stalled 0.11% of the time, 0.1% are allowed", id="stalled"),
        pytest.param(AFTER, seen(refaults=0.24 * MI), "", id="less than a tenth read back"),
        pytest.param(AFTER, seen(refaults=0.26 * MI), "1.04Mi read back", id="more than a tenth read back"),
        pytest.param(AFTER, seen(pressure=None), "", id="a kernel without PSI: refaults alone"),
        pytest.param(AFTER, seen(current=100 * MI), "nothing came of the 10Mi asked for", id="nothing to be had"),
        pytest.param(Steps(0.0, 0.0), seen(refaults=1 * MI), "4Mi read back", id="short of memory before we began"),
    ],
)
def test_what_is_felt(steps: Steps, measured: Measured, why: str) -> None:
    assert felt(steps, measured, 0.1).startswith(why[:4]) if why else not felt(steps, measured, 0.1)


def test_steps_double_up_to_the_largest() -> None:
    steps, fractions = Steps(0.0, 0.0), []
    for n in range(6):
        fractions.append(steps.fraction)
        steps = steps.stepped(MI, seen(now=n * PERIOD_S)).quiet()
    assert fractions == [0.01, 0.02, 0.04, 0.08, 0.08, 0.08]


def test_a_look_without_a_step_makes_the_next_no_larger() -> None:
    assert Steps(0.0, 0.0).stepped(0.0, seen()).quiet().fraction == FIRST


def test_pauses_double_and_a_calm_time_forgets_them() -> None:
    steps, pauses = Steps(0.0, 0.0), []
    for _ in range(8):
        pauses.append(steps.paused(100.0).again - 100.0)
        steps = steps.paused(100.0)
    assert pauses == [16, 32, 64, 128, 256, 512, 512, 512]
    for _ in range(law.CALM):
        steps = steps.stepped(MI, seen()).quiet()
    assert steps.pause == PAUSE_S


def test_what_is_read_back_during_a_pause_does_not_count_after_it() -> None:
    paused = AFTER.paused(4.0)
    assert paused.at == paused.again == 4.0 + PAUSE_S
    assert not felt(paused, seen(now=paused.at + 0.5, refaults=0.4 * MI), 0.1)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60))
def test_whatever_happens_steps_and_pauses_stay_within_their_bounds(rounds: list[tuple[bool, bool]]) -> None:
    steps, now = Steps(0.0, 0.0), 0.0
    for stepped, hurt in rounds:
        now = max(now + 1.0, steps.again)
        steps = steps.paused(now) if hurt else steps.quiet().stepped(MI * stepped, seen(now=now))
        assert FIRST <= steps.fraction <= MOST
        assert PAUSE_S <= steps.pause <= LONGEST_S
        assert steps.again >= now + min(PERIOD_S, PAUSE_S)
        assert not hurt or steps.fraction == FIRST
