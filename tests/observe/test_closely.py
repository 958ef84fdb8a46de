"""Who is looked at closely: those that may suffer, those that may be why, and never many."""

from __future__ import annotations

import pytest

from j10ce.model.kinds import Tier
from j10ce.model.knob import NODE
from j10ce.model.knob import workload as target_of
from j10ce.observe.closely import CHOOSE_S, MOST_SUSPECTS, MOST_VICTIMS, Closely
from j10ce.testing.build import entitlement, snapshot, workload


def chosen(tier: Tier, readings: dict[str, float]) -> bool:
    one = entitlement(workload("one"), tier=tier.value)
    closely = Closely()
    closely.follow(snapshot(one, readings={(one.target, metric): value for metric, value in readings.items()}))
    return one.target in closely.targets


@pytest.mark.parametrize(
    ("tier", "readings", "closely"),
    [
        pytest.param(Tier.SENSITIVE, {"cpu.usage": 0.5}, True, id="protected, and at work"),
        pytest.param(Tier.SENSITIVE, {"cpu.usage": 0.001, "memory.pressure": 0.3}, True, id="protected, and waits"),
        pytest.param(Tier.SENSITIVE, {"cpu.usage": 0.001}, False, id="protected, and asleep"),
        pytest.param(Tier.SENSITIVE, {}, False, id="protected, and never measured"),
        pytest.param(Tier.BESTEFFORT, {"cpu.usage": 1.5, "cpu.pressure": 0.9}, False, id="best effort waits for CPUs"),
        pytest.param(Tier.BESTEFFORT, {"io.pressure": 0.5}, True, id="best effort that is busy with I/O"),
    ],
)
def test_those_that_may_suffer_and_those_that_may_be_why(tier: Tier, readings: dict[str, float], closely: bool) -> None:
    assert chosen(tier, readings) is closely


def test_there_are_never_many_and_those_that_wait_come_first() -> None:
    protected = [entitlement(workload(f"p{n}"), tier=Tier.SENSITIVE.value) for n in range(100)]
    others = [entitlement(workload(f"b{n}"), tier=Tier.BESTEFFORT.value) for n in range(100)]
    readings = {(e.target, "cpu.usage"): 1.0 for e in protected}
    readings |= {(e.target, "io.pressure"): 0.5 for e in others} | {(target_of("default", "p7"), "cpu.pressure"): 0.2}
    closely = Closely()
    closely.follow(snapshot(*protected, *others, readings=readings))
    assert len(closely.targets & {e.target for e in protected}) == MOST_VICTIMS
    assert len(closely.targets & {e.target for e in others}) == MOST_SUSPECTS
    assert target_of("default", "p7") in closely.targets


def test_the_choice_stands_for_a_while() -> None:
    one = entitlement(workload("one"), tier=Tier.SENSITIVE.value)
    closely = Closely()
    closely.follow(snapshot(one, now=1000.0))
    busy = {(one.target, "cpu.usage"): 1.0}
    closely.follow(snapshot(one, now=1000.0 + CHOOSE_S / 2, readings=busy))
    assert not closely.targets
    closely.follow(snapshot(one, now=1000.0 + CHOOSE_S, readings=busy))
    assert closely.targets == {one.target}


@pytest.mark.parametrize(
    ("of_node", "closely"),
    [(0.0, False), (0.001, False), (0.2, True)],
    ids=["nobody waits", "hardly anybody", "somebody does"],
)
def test_what_nobody_on_the_machine_waits_for_is_not_looked_at(of_node: float, closely: bool) -> None:
    one = entitlement(workload("one"), tier="sensitive")
    chooser = Closely()
    readings = {(one.target, "memory.pressure"): 0.5, (NODE, "memory.pressure"): of_node}
    chooser.follow(snapshot(one, readings=readings))
    assert (one.target in chooser.targets) is closely
