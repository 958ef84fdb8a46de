"""What the values of a scenario may be."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import UNSET, UnsetType

from j10ce.errors import Finding, Invalid
from j10ce.model.quantity import Duration, Quantity
from j10ce.model.text.near import near, one_of
from j10ce.sim.cluster.given.scenario import Scenario, ScenarioNodes, ScenarioOwners

MOST_NODES: Final = 100_000
MOST_OWNERS: Final = 2_000_000
MOST_REPLICAS: Final = 100_000
FEW: Final = 1000  # names among which a resemblance is looked for
LONGEST_S: Final = 366 * 86400.0
PRIORITY: Final = "priority"
POLICIES: Final = ("lazy", "classic", PRIORITY)


def wrong(scenario: Scenario) -> list[Finding]:
    return [
        *_times(scenario),
        *_nodes(scenario.nodes),
        *_classes(scenario),
        *_owners(scenario),
        *_starts(scenario.start_overhead),
        *_failures(scenario),
        *_tariff(scenario),
    ]


def share(path: str, value: float | UnsetType) -> Iterator[Finding]:
    """A number from 0 to 1, and so not `nan`."""
    if value is not UNSET and not (0.0 <= value <= 1.0):
        yield Finding(path, value, "not a share of time", "write a number from 0 to 1")


def count(path: str, value: int | UnsetType, most: int) -> Iterator[Finding]:
    if value is not UNSET and not 1 <= value <= most:
        yield Finding(path, value, "out of range", f"write a whole number from 1 to {most}")


def absolute(path: str, amount: Quantity) -> Iterator[Finding]:
    if amount.percent:
        yield Finding(path, str(amount), "a percentage of nothing", "write an amount, such as 500m or 1Gi")


def _times(scenario: Scenario) -> Iterator[Finding]:
    if not 0 < scenario.horizon.seconds <= LONGEST_S:
        yield Finding("horizon", str(scenario.horizon), "out of range", "write more than 0s and at most 366d")
    arrivals = scenario.arrivals
    if arrivals.poisson and not arrivals.every.seconds:
        yield Finding("arrivals.every", "0s", "no mean time between arrivals", "write more than 0s")


def _nodes(nodes: tuple[ScenarioNodes, ...]) -> Iterator[Finding]:
    if not nodes:
        yield Finding("nodes", None, "no node", "list at least one")
    for n, group in enumerate(nodes):
        path = f"nodes[{n}]"
        yield from _named(path, group.name, [other.name for other in nodes[:n]])
        yield from count(f"{path}.count", group.count, MOST_NODES)
        yield from count(f"{path}.pods", group.pods, MOST_REPLICAS)
        yield from absolute(f"{path}.cpu", group.cpu)
        yield from absolute(f"{path}.memory", group.memory)


def _named(path: str, name: str, before: list[str]) -> Iterator[Finding]:
    if not name:
        yield Finding(f"{path}.name", name, "no name", "write one")
    elif name in before:
        yield Finding(f"{path}.name", name, "stands in the list already", "give each its own name")


def _classes(scenario: Scenario) -> Iterator[Finding]:
    for name, of in scenario.classes.items():
        yield from share(f"classes.{name}.slo", of.slo)
        if isinstance(of.price, float | int) and not 0 <= of.price < math.inf:
            yield Finding(f"classes.{name}.price", of.price, "not a price", "write zero or more")
        if not -(2**31) <= of.priority < 2**31:
            yield Finding(f"classes.{name}.priority", of.priority, "out of range", "write one of 32 bits")


def _owners(scenario: Scenario) -> Iterator[Finding]:
    for n, group in enumerate(scenario.owners):
        path = f"owners[{n}]"
        yield from _named(path, group.name, [other.name for other in scenario.owners[:n]])
        if group.class_ not in scenario.classes:
            yield Finding(f"{path}.class", group.class_, "no such class", one_of(group.class_, scenario.classes))
        yield from _amounts(path, group)
        yield from share(f"{path}.slo", group.slo)
        if group.kind != "Job" and group.completions is not UNSET:
            yield Finding(f"{path}.completions", group.completions, "counts for a Job alone", "leave it out")
        if group.kind == "Job" and group.duration is UNSET:
            yield Finding(path, None, "a Job without a duration", "write how long a pod of it runs")
        if isinstance(group.duration, Duration) and not group.duration.seconds:
            yield Finding(f"{path}.duration", "0s", "out of range", "write more than 0s")


def _amounts(path: str, group: ScenarioOwners) -> Iterator[Finding]:
    yield from count(f"{path}.count", group.count, MOST_OWNERS)
    yield from count(f"{path}.replicas", group.replicas, MOST_REPLICAS)
    yield from count(f"{path}.completions", group.completions, MOST_OWNERS)
    yield from absolute(f"{path}.cpu", group.cpu)
    yield from absolute(f"{path}.memory", group.memory)


def _starts(histogram: Mapping[str, int]) -> Iterator[Finding]:
    for span, times in histogram.items():
        path = f"startOverhead.{span}"
        try:
            Duration.parse(span)
        except Invalid as e:
            yield e.findings[0]._replace(path=path)
        yield from count(path, times, 2**40)


def _failures(scenario: Scenario) -> Iterator[Finding]:
    known = set(node_names(scenario))
    for n, outage in enumerate(scenario.failures):
        path = f"failures[{n}]"
        if outage.node and outage.node not in known:
            yield no_such_node(f"{path}.node", outage.node, known)
        if (outage.at is UNSET) == (outage.every is UNSET):
            yield Finding(path, None, "neither at nor every, or both", "write one of them")
        if isinstance(outage.every, Duration) and not outage.every.seconds:
            yield Finding(f"{path}.every", "0s", "no mean time between failures", "write more than 0s")
        if outage.at is not UNSET and not outage.node:
            yield Finding(f"{path}.node", None, "missing", "say which node fails at that time")
    for n, name in enumerate(scenario.drain):
        if name not in known:
            yield no_such_node(f"drain[{n}]", name, known)


def no_such_node(path: str, name: str, known: Collection[str]) -> Finding:
    meant = near(name, known) if len(known) <= FEW else ""
    return Finding(path, name, "no such node", f"did you mean {meant}?" if meant else f"there are {len(known)} nodes")


def _tariff(scenario: Scenario) -> Iterator[Finding]:
    for n, step in enumerate(scenario.tariff):
        yield from share(f"tariff[{n}].short", step.short)
        yield from share(f"tariff[{n}].share", step.share)


def node_names(scenario: Scenario) -> Iterator[str]:
    for group in scenario.nodes:
        yield from names(group.name, min(group.count, MOST_NODES))


def names(name: str, count: int) -> Iterator[str]:
    """Of `count` that are alike."""
    yield from (f"{name}-{n}" for n in range(1, count + 1)) if count > 1 else (name,)
