from __future__ import annotations

import pytest

from j10ce.bench.run import turns, unavailable
from j10ce.bench.scenarios import SCENARIOS
from j10ce.bench.taken import Arm


@pytest.mark.parametrize("rounds", [1, 3, 4])
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_every_arm_has_its_turn_in_every_round(name: str, rounds: int) -> None:
    scenario = SCENARIOS[name]
    made = [*turns(scenario, rounds)]
    assert [turn.round for turn in made] == sorted(turn.round for turn in made)
    for number in range(rounds):
        assert {turn.arm for turn in made if turn.round == number} == {*scenario.arms}


def test_who_comes_late_in_one_round_comes_early_in_the_next() -> None:
    scenario = SCENARIOS["cpu"]
    made = [turn.arm for turn in turns(scenario, 2)]
    assert made == [*scenario.arms, *reversed(scenario.arms)]


@pytest.mark.parametrize(
    ("arm", "available"),
    [
        pytest.param(Arm("ls", "", "ours"), True, id="a profile that there is"),
        pytest.param(Arm("hoverboard", "", "ours"), False, id="a profile that there is not"),
        pytest.param(Arm("kubernetes", ""), True, id="no profile of ours"),
    ],
)
def test_an_arm_without_its_profile_is_left_out_by_name(arm: Arm, available: bool) -> None:
    assert (unavailable(arm) == "") is available
