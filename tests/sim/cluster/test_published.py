"""The published experiments, run by us: what policies do to owners is what their authors saw, within the bands that the
experiments allow."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from j10ce.sim.cluster.given.source import read_scenario
from j10ce.sim.cluster.outcome import PolicyOutcome
from j10ce.sim.cluster.simulate import Subject, compared

EXAMPLES = Path(__file__).parents[3] / "examples/sim"


@cache
def published(name: str, policy: str) -> PolicyOutcome:
    path = EXAMPLES / f"{name}.yaml"
    (outcome,) = compared(Subject(read_scenario(path.name, path.read_bytes())), [policy], [1, 2], [], lambda _: None)
    return outcome


def values(name: str, policy: str, of: str, number: str) -> list[float]:
    return [run.classes[of][number] for run in published(name, policy).runs]


def within(low: float, high: float, numbers: list[float]) -> bool:
    return all(low <= value <= high for value in numbers)


def test_priority_serves_the_important_and_starves_half_of_the_free() -> None:
    for of in ("prod", "batch"):
        assert within(0.999, 1.0, values("validation-1", "priority", of, "availability"))
    assert within(0.40, 0.45, values("validation-1", "priority", "free", "availability"))
    assert within(54, 60, values("validation-1", "priority", "free", "belowSlo"))
    assert within(0.54, 0.59, values("validation-1", "priority", "free", "gini"))
    assert within(25, 60, [run.totals["preemptions"] for run in published("validation-1", "priority").runs])


def test_priority_starves_whom_there_is_no_room_for() -> None:
    assert within(21, 22, values("validation-2", "priority", "batch", "belowByAPoint"))
    assert within(0.09, 0.105, values("validation-2", "priority", "batch", "gini"))
    assert [run.totals["preemptions"] for run in published("validation-2", "priority").runs] == [0, 0]
    for run in published("validation-2", "priority").runs:
        assert all(owner.availability < 0.1 or owner.availability >= 0.99 for owner in run.owners)


def test_lazy_keeps_every_promise_that_can_be_kept() -> None:
    for of in ("batch", "free"):
        assert values("validation-1", "lazy", of, "belowByAPoint") == [0, 0]
    assert within(0.0, 0.016, values("validation-1", "lazy", "free", "gini"))
    assert within(0.0, 0.004, values("validation-1", "lazy", "free", "deficit"))
    assert within(200, 2250, [run.totals["starts"] for run in published("validation-1", "lazy").runs])
    assert values("validation-2", "lazy", "batch", "belowSlo") == [0, 0]
    assert within(1, 700, [run.totals["preemptions"] for run in published("validation-2", "lazy").runs])


@pytest.mark.slow
def test_classic_is_fair_at_the_price_of_many_starts() -> None:
    assert within(0.85, 1.0, values("validation-2", "classic", "batch", "minimum"))
    assert within(0.0, 0.01, values("validation-2", "classic", "batch", "gini"))
    assert within(1000, 6000, [run.totals["preemptions"] for run in published("validation-2", "classic").runs])


@pytest.mark.parametrize("name", ["validation-1", "validation-2"])
def test_what_chance_does_is_the_same_for_every_run_of_a_seed(name: str) -> None:
    first, other = published(name, "priority").runs
    assert first != other
