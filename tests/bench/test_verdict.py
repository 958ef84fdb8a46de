from __future__ import annotations

import msgspec
import pytest

from j10ce.bench.scenarios import ARMS, LS, NO_QOS, SCENARIOS, quick
from j10ce.bench.taken import Taken
from j10ce.bench.verdict import Proof, judge
from tests.bench.build import proof, taken, usual

QUIET = {"alone": taken(1.0, 1.0, 1.1), "ls": taken(1.1, 1.1, 1.1)}


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        pytest.param(QUIET, "", id="a quiet machine"),
        pytest.param({**QUIET, "alone": taken(1.0, 1.0, 2.0)}, "alone, p99 was", id="alone is not steady"),
        pytest.param({"alone": taken(1.0, 1.0, others=0.2)}, "other processes used 20%", id="others work here, too"),
        pytest.param({**QUIET, "ls": taken(1.0, 1.0, 9.0)}, "ls: p99 is", id="ours is not steady"),
        pytest.param({**QUIET, "no QoS": taken(1.0, 900.0)}, "", id="without QoS nothing has to be steady"),
    ],
)
def test_a_run_says_why_it_is_too_noisy(arms: dict[str, list[Taken]], words: str) -> None:
    noise = judge(ARMS, arms)[1]
    assert any(words in reason for reason in noise) if words else not noise


def test_an_arm_is_the_median_of_its_rounds_in_ms_and_compared_with_alone() -> None:
    line = usual().line(LS)
    assert line is not None
    assert line.p99 == pytest.approx(1.9)
    assert line.ratio is not None
    assert line.ratio.middle == pytest.approx(1.9 / 1.8)
    assert line.isolation_mean == pytest.approx(1.8 / 1.9, abs=0.02)


def test_alone_is_compared_with_nothing() -> None:
    alone = usual().line("alone")
    assert alone is not None
    assert alone.ratio is alone.isolation_mean is None


def test_without_alone_arms_are_shown_and_compared_with_nothing() -> None:
    made = proof({NO_QOS: taken(900.0), LS: taken(2.0)})
    assert [line.ratio for line in made.lines] == [None, None]
    assert not made.noise


def test_what_is_written_can_be_read_again() -> None:
    made = usual()
    assert msgspec.json.decode(msgspec.json.encode(made), type=Proof) == made


@pytest.mark.parametrize("cpus", [1, 2, 64])
@pytest.mark.parametrize("name", [name for name, scenario in SCENARIOS.items() if not scenario.stage])
def test_a_service_needs_its_share_of_any_machine(name: str, cpus: int) -> None:
    scenario = SCENARIOS[name]
    load = scenario.load(cpus, 4.0)
    assert load.demand == pytest.approx(scenario.peak * cpus)
    assert load.demand <= scenario.floor * cpus
    assert load.workers >= cpus


def test_quick_is_off_on_off_in_half_a_minute() -> None:
    short = quick(SCENARIOS["cpu"])
    assert [arm.name for arm in short.arms] == [NO_QOS, LS, NO_QOS]
    assert short.rounds * short.seconds * len(short.arms) < 30
