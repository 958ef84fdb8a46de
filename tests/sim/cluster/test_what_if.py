"""A what-if changes what it names, and nothing else."""

from __future__ import annotations

import pytest

from j10ce.errors import Invalid
from j10ce.model.quantity import Quantity
from j10ce.sim.cluster.given.limits import node_names
from j10ce.sim.cluster.given.scenario import (
    Duration,
    PolicyArguments,
    QosArguments,
    Scenario,
    ScenarioClass,
    ScenarioNodes,
)
from j10ce.sim.cluster.given.what_if import changed

AMOUNTS = {"cpu": Quantity(1), "memory": Quantity(1)}
BASE = Scenario(
    horizon=Duration(60),
    nodes=(ScenarioNodes(name="a", count=20, **AMOUNTS), ScenarioNodes(name="b", **AMOUNTS)),
    classes={"batch": ScenarioClass(slo=0.9), "free": ScenarioClass(slo=0.5)},
    policies=PolicyArguments(classic=QosArguments(minimum_running_time=Duration(300))),
)


def test_a_promise_is_another_one() -> None:
    new = changed(BASE, ["slo.batch=0.95"])
    assert new.classes == {"batch": ScenarioClass(slo=0.95), "free": ScenarioClass(slo=0.5)}
    assert new.nodes == BASE.nodes


@pytest.mark.parametrize(("wish", "nodes"), [("-10%", 19), ("+5", 26), ("5", 5), ("-1", 20), ("+100%", 42), ("1", 1)])
def test_there_are_fewer_or_more_nodes(wish: str, nodes: int) -> None:
    new = changed(BASE, [f"nodes={wish}"])
    assert len(set(node_names(new))) == nodes
    assert new.nodes[0].name.startswith("a")


def test_the_margin_is_that_of_every_policy() -> None:
    policies = changed(BASE, ["margin=45s"]).policies
    assert policies.classic == QosArguments(minimum_running_time=Duration(300), safety_margin=Duration(45))
    assert policies.lazy == QosArguments(margin=Duration(45))


def test_starts_take_longer_by_the_sum_of_all_wishes() -> None:
    assert changed(BASE, ["overhead=+3s", "overhead=2s,drain=b"]).more_overhead == Duration(5)
    assert changed(BASE, ["drain=a-7,drain=b"]).drain == ("a-7", "b")


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        ("slo.bach=1", "no such class; did you mean batch?"),
        ("slo.batch=abc", "not a share of time"),
        ("slo.batch=nan", "not a share of time"),
        ("slo.batch=7", "not a share of time"),
        ("nodes=-200%", "makes -21 nodes of 21"),
        ("nodes=x", "not a number of nodes"),
        ("margin=5", "not a duration"),
        ("overhead=", "not NAME=VALUE"),
        ("overhead=-3s", "not a duration"),
        ("drain=c", "no such node"),
        ("colour=red", "nothing that can be changed"),
        ("", "not NAME=VALUE"),
    ],
)
def test_what_cannot_be_is_refused_together_with_all_else(wish: str, problem: str) -> None:
    with pytest.raises(Invalid) as e:
        changed(BASE, [wish, "drain=nobody"])
    assert [f.path for f in e.value.findings] == [f"--what-if {wish}", "--what-if drain=nobody"]
    assert problem in e.value.findings[0].advice
