"""Label selectors with Kubernetes' rules, compiled once and asked often."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from j10ce.model.kinds import Requirement, Selector

Labels: TypeAlias = Mapping[str, str]
Test: TypeAlias = Callable[[Labels], bool]


def matches(selector: Selector, labels: Labels) -> bool:
    return compiled(selector)(labels)


def compiled(selector: Selector) -> Test:
    """All parts must hold; an empty selector selects everything."""
    tests = [*(_label(k, v) for k, v in selector.match_labels.items()), *map(_requirement, selector.match_expressions)]
    if len(tests) == 1:
        return tests[0]
    return (lambda labels: all(test(labels) for test in tests)) if tests else everything


def everything(_: Labels) -> bool:
    return True


def _label(key: str, value: str) -> Test:
    return lambda labels: labels.get(key) == value


def _requirement(r: Requirement) -> Test:
    key, values = r.key, frozenset(r.values)
    match r.operator:
        case "In":
            return lambda labels: labels.get(key) in values
        case "NotIn":  # holds where the key is absent, too
            return lambda labels: labels.get(key) not in values
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
