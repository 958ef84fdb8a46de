"""A scenario file as a Scenario: every mistake at once, each with its line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

from j10ce.errors import Finding, Invalid
from j10ce.manager.changes import plain_yaml
from j10ce.model.schema import plain, salvage
from j10ce.sim.cluster.given.limits import wrong
from j10ce.sim.cluster.given.scenario import Scenario, ScenarioClass

LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_scenario(name: str, text: bytes) -> Scenario:
    """Raises Invalid; `name` is that of the file."""
    try:
        raw = plain_yaml.read(text)
    except Invalid as e:
        raise Invalid([f._replace(path=f"{name} {f.path}".rstrip()) for f in e.findings], "scenario") from None
    lines = _lines(text)
    scenario, findings = checked(raw)
    if scenario is None or findings:
        raise Invalid([f._replace(path=_where(name, f.path, lines)) for f in findings], "scenario")
    return scenario


def checked(raw: Any) -> tuple[Scenario | None, list[Finding]]:
    """What can be read of plain data, and all that is wrong with it."""
    if not isinstance(raw, dict):
        return None, [Finding("", raw, "not a scenario", "write a mapping with horizon, nodes, classes and owners")]
    raw, of_classes = _classes_apart(raw)
    scenario, findings = salvage(raw, Scenario)
    return scenario, [*findings, *of_classes, *(wrong(scenario) if scenario is not None else ())]


def _classes_apart(raw: dict[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
    """Each class by itself: of a mapping's values the decoder does not say which one is wrong."""
    classes, findings = raw.get("classes"), list[Finding]()
    if not isinstance(classes, dict):
        return raw, findings
    right = dict[str, Any]()
    for name, value in classes.items():
        of, wrong = salvage(value, ScenarioClass)
        findings += [f._replace(path=f"classes.{name}.{f.path}".rstrip(".")) for f in wrong]
        right[name] = plain(of) if of is not None else {"slo": 0.0}
    return {**raw, "classes": right}, findings


def _where(name: str, path: str, lines: Mapping[str, int]) -> str:
    """The line of the value, or of the nearest that holds it."""
    at = path
    while at and at not in lines:
        at = at[: max(at.rfind("."), at.rfind("["), 0)]
    return f"{name}:{lines.get(at, 1)} {path}".rstrip()


def _lines(text: bytes) -> dict[str, int]:
    """Where each value begins, by its path. The text was read before: it has no alias and is not too deep."""
    lines = dict[str, int]()
    todo = [("", yaml.compose(text, Loader=LOADER))]
    while todo:
        path, node = todo.pop()
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                below = f"{path}.{key.value}".lstrip(".")
                lines[below] = key.start_mark.line + 1
                todo.append((below, value))
        elif isinstance(node, yaml.SequenceNode):
            for n, value in enumerate(node.value):
                lines[f"{path}[{n}]"] = value.start_mark.line + 1
                todo.append((f"{path}[{n}]", value))
    return lines
