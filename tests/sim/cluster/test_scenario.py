"""A scenario is read whole, or refused with every mistake and its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from j10ce.errors import Invalid
from j10ce.sim.cluster.given.arrivals import arrivals
from j10ce.sim.cluster.given.limits import node_names
from j10ce.sim.cluster.given.scenario import Scenario
from j10ce.sim.cluster.given.source import read_scenario

EXAMPLES = sorted((Path(__file__).parents[3] / "examples/sim").glob("*.yaml"))
SMALL = {
    "horizon": "1m",
    "nodes": [{"name": "n", "count": 2, "cpu": 1, "memory": "1Gi"}],
    "classes": {"web": {"slo": 0.9}},
    "owners": [{"name": "a", "class": "web", "count": 3, "cpu": "100m"}],
}


def read(raw: Any) -> Scenario:
    return read_scenario("s.yaml", yaml.safe_dump(raw, sort_keys=False).encode())


def mistakes(text: str) -> list[str]:
    with pytest.raises(Invalid) as e:
        read_scenario("s.yaml", text.encode())
    return [str(finding) for finding in e.value.findings]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_scenarios(path: Path) -> None:
    scenario = read_scenario(path.name, path.read_bytes())
    assert list(arrivals(scenario, 1))
    assert list(node_names(scenario))


def test_every_mistake_is_named_with_its_line() -> None:
    assert mistakes(
        """\
horizon: 0s
nodes:
  - {name: n, cpu: 1, memory: 1Gi, count: 0}
  - {name: n, cpu: 10%, memory: 1Gi, disk: 3}
classes:
  web: {slo: 7}
  free: {slo: .5, priority: x}
owners:
  - name: a
    class: wep
    cpu: 100m
    kind: Job
failures:
  - {node: m, every: 1m, at: 1m, for: 1m}
startOverhead: {1x: 3, 2s: 0}
"""
    ) == [
        "s.yaml:4 nodes[1].disk = 3: unknown field; remove it or correct its spelling",
        "s.yaml:7 classes.free.priority = 'x': Expected `int`, got `str`",
        "s.yaml:1 horizon = '0s': out of range; write more than 0s and at most 366d",
        "s.yaml:3 nodes[0].count = 0: out of range; write a whole number from 1 to 100000",
        "s.yaml:4 nodes[1].name = 'n': stands in the list already; give each its own name",
        "s.yaml:4 nodes[1].cpu = '10%': a percentage of nothing; write an amount, such as 500m or 1Gi",
        "s.yaml:6 classes.web.slo = 7.0: not a share of time; write a number from 0 to 1",
        "s.yaml:10 owners[0].class = 'wep': no such class; did you mean web? use one of web, free",
        "s.yaml:9 owners[0]: a Job without a duration; write how long a pod of it runs",
        "s.yaml:15 startOverhead.1x = '1x': not a duration; write it as 30s, 10m, 1h30m or 7d",
        "s.yaml:15 startOverhead.2s = 0: out of range; write a whole number from 1 to 1099511627776",
        "s.yaml:14 failures[0].node = 'm': no such node; there are 1 nodes",
        "s.yaml:14 failures[0]: neither at nor every, or both; write one of them",
    ]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        pytest.param("", "s.yaml:1: not a scenario", id="empty"),
        pytest.param("- 1", "s.yaml:1 = [1]: not a scenario", id="a list"),
        pytest.param("a: [", "s.yaml = None", id="no yaml"),
        pytest.param("a: &x 1\nb: *x", "line 1: aliases are not read here", id="alias"),
        pytest.param("horizon: 1m\nhorizon: 2m", "duplicate field", id="twice"),
    ],
)
def test_what_is_no_scenario_is_refused(text: str, mistake: str) -> None:
    assert any(mistake in line or "not read" in line or "neither JSON" in line for line in mistakes(text))


@pytest.mark.parametrize("slo", ["abc", ".nan", "-1", "7", ".inf"])
def test_a_promise_is_a_share_of_time(slo: str) -> None:
    text = yaml.safe_dump({**SMALL, "classes": {}}).replace("classes: {}", f"classes: {{web: {{slo: {slo}}}}}")
    assert any("classes.web" in line for line in mistakes(text))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([*SMALL, "arrivals", "startOverhead", "failures", "tariff", "policies", "drain"]), VALUES)
def test_whatever_stands_in_a_field_it_is_read_or_refused(field: str, value: Any) -> None:
    try:
        list(arrivals(read({**SMALL, field: value}), 1))
    except Invalid:
        pass


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    with pytest.raises(Invalid):
        read_scenario("s.yaml", text)


def test_owners_come_in_an_order_that_the_seed_decides() -> None:
    scenario = read({**SMALL, "owners": [{"name": "a", "class": "web", "count": 30, "cpu": "1m"}]})
    first, again, other = ([a.name for a in arrivals(scenario, seed)] for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(first) == sorted(other)
    assert [a.at for a in arrivals(scenario, 1)] == list(range(30))


def test_owners_that_say_when_come_then() -> None:
    late = {"name": "b", "class": "web", "cpu": "1m", "at": "2s", "every": "10s", "count": 2}
    scenario = read({**SMALL, "owners": [*SMALL["owners"], late], "arrivals": {"order": "listed", "every": "3s"}})
    assert [(a.at, a.name) for a in arrivals(scenario, 1)] == [
        (0, "a-1"), (2, "b-1"), (3, "a-2"), (6, "a-3"), (12, "b-2"),
    ]  # fmt: skip


def test_waits_between_arrivals_may_vary_around_their_mean() -> None:
    owners = [{"name": "a", "class": "web", "count": 4000, "cpu": "1m"}]
    scenario = read({**SMALL, "owners": owners, "arrivals": {"poisson": True, "every": "2s"}})
    *_, last = arrivals(scenario, 5)
    assert last.at / 4000 == pytest.approx(2, rel=0.1)
