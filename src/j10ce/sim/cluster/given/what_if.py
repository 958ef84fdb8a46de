"""What-ifs: a scenario with something else about it.

slo.CLASS=0.95     another promise
nodes=-10%         fewer or more nodes: -10%, +5, or so many in all: 180
margin=45s         of QosAware, under each policy
overhead=+3s       more time for every start
drain=NODE         a node takes no pod, and gives away those it has
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from j10ce.errors import Finding, Invalid
from j10ce.model.quantity import Duration
from j10ce.model.text.near import one_of
from j10ce.sim.cluster.given.limits import MOST_NODES, names, no_such_node, node_names
from j10ce.sim.cluster.given.scenario import Scenario, ScenarioNodes

NODES: Final = re.compile(r"(?P<sign>[+-]?)(?P<count>[0-9]{1,6})(?P<percent>%?)", re.ASCII)
NAMES: Final = ("slo.CLASS", "nodes", "margin", "overhead", "drain")


def changed(scenario: Scenario, wishes: Sequence[str]) -> Scenario:
    """Each wish may name several changes, with commas between them. Raises Invalid with all that is wrong."""
    findings = list[Finding]()
    for wish in (part.strip() for text in wishes for part in text.split(",")):
        try:
            scenario = _changed(scenario, wish)
        except Invalid as e:
            findings += [f._replace(path=f"--what-if {wish}") for f in e.findings]
    if findings:
        raise Invalid(findings, "what-if")
    return scenario


def _changed(scenario: Scenario, wish: str) -> Scenario:
    name, equals, value = wish.partition("=")
    if not equals or not value:
        raise _bad(None, "not NAME=VALUE", f"write one of {', '.join(f'{known}=…' for known in NAMES)}")
    if name.startswith("slo."):
        return _promised(scenario, name.removeprefix("slo."), value)
    if name not in CHANGES:
        raise _bad(name, "nothing that can be changed", one_of(name, NAMES))
    return CHANGES[name](scenario, value)


def _promised(scenario: Scenario, name: str, value: str) -> Scenario:
    if name not in scenario.classes:
        raise _bad(name, "no such class", one_of(name, scenario.classes))
    try:
        slo = float(value)
    except ValueError:
        slo = -1.0
    if not 0 <= slo <= 1:
        raise _bad(value, "not a share of time", "write a number from 0 to 1")
    return replace(scenario, classes={**scenario.classes, name: replace(scenario.classes[name], slo=slo)})


def _sized(scenario: Scenario, value: str) -> Scenario:
    """Every group by the same share; the last nodes of a group go first."""
    match = NODES.fullmatch(value)
    if match is None:
        raise _bad(value, "not a number of nodes", "write -10%, +5 or 180")
    whole = sum(group.count for group in scenario.nodes)
    number = int(match["count"])
    amount = round(whole * number / 100) if match["percent"] else number
    wanted = {"": amount, "+": whole + amount, "-": whole - amount}[match["sign"]]
    if not 1 <= wanted <= MOST_NODES:
        raise _bad(value, f"makes {wanted} nodes of {whole}", f"leave from 1 to {MOST_NODES}")
    return replace(scenario, nodes=_scaled(scenario.nodes, whole, wanted))


def _scaled(nodes: tuple[ScenarioNodes, ...], whole: int, wanted: int) -> tuple[ScenarioNodes, ...]:
    groups, before, given = list[ScenarioNodes](), 0, 0
    for group in nodes:
        before += group.count
        until = round(before * wanted / whole)
        if until > given:
            name = next(names(group.name, group.count)) if group.count > 1 and until - given == 1 else group.name
            groups.append(replace(group, count=until - given, name=name))
        given = until
    return tuple(groups)


def _margin(scenario: Scenario, value: str) -> Scenario:
    """Lazy and classic mode have each their own."""
    margin, of = Duration.parse(value), scenario.policies
    lazy, classic = replace(of.lazy, margin=margin), replace(of.classic, safety_margin=margin)
    return replace(scenario, policies=replace(of, lazy=lazy, classic=classic))


def _slower(scenario: Scenario, value: str) -> Scenario:
    more = scenario.more_overhead.seconds + Duration.parse(value.removeprefix("+")).seconds
    return replace(scenario, more_overhead=Duration(more))


def _drained(scenario: Scenario, value: str) -> Scenario:
    if value not in (known := set(node_names(scenario))):
        raise Invalid([no_such_node("", value, known)], "what-if")
    return replace(scenario, drain=(*scenario.drain, value))


def _bad(value: object, problem: str, hint: str) -> Invalid:
    return Invalid([Finding("", value, problem, hint)], "what-if")


CHANGES: Final[Mapping[str, Callable[[Scenario, str], Scenario]]] = {
    "nodes": _sized, "margin": _margin, "overhead": _slower, "drain": _drained,
}  # fmt: skip
