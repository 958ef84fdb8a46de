"""Values of annotations that are no objects: lists, numbers, CPU lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from j10ce.dialects.koordinator.classes import integer
from j10ce.dialects.koordinator.reading import bearable, below, checked, read, read_text
from j10ce.errors import Finding
from j10ce.model.bounds import MOST_ITEMS
from j10ce.model.knob import parse_cpus

S = TypeVar("S", bound=Struct)
T = TypeVar("T")
Findings = list[Finding]


class Reading(NamedTuple, Generic[T]):
    """What was read, and what is wrong with it; None: not said, or not to be heeded."""

    value: T | None
    findings: list[Finding]


def path_of(key: str) -> str:
    return f"metadata.annotations.{key}"


def struct(
    annotations: Mapping[str, str],
    key: str,
    into: type[S],
    rules: Callable[[S], Iterable[Finding]] | None = None,
) -> Reading[S]:
    """An object; one that breaks a rule is not heeded."""
    if key not in annotations:
        return Reading(None, [])
    value, findings = read(annotations[key], into, path_of(key))
    broken = below(path_of(key), rules(value)) if value is not None and rules is not None else []
    return Reading(None if broken else value, findings + broken)


def structs(annotations: Mapping[str, str], key: str, into: type[S]) -> Reading[tuple[S, ...]]:
    """A list of objects; one that is wrong makes the list worth nothing."""
    items, findings = _list(annotations, key)
    if items is None:
        return Reading(None, findings)
    values = [checked(item, into, f"{path_of(key)}[{n}]") for n, item in enumerate(items)]
    findings += [finding for _, problems in values for finding in problems]
    done = tuple(value for value, _ in values if value is not None)
    return Reading(done if len(done) == len(items) else None, findings)


def words(annotations: Mapping[str, str], key: str, hint: str) -> Reading[tuple[str, ...]]:
    """A list of words."""
    items, findings = _list(annotations, key)
    if items is None:
        return Reading(None, findings)
    wrong = [
        Finding(f"{path_of(key)}[{n}]", None, "not a word", hint)
        for n, item in enumerate(items)
        if not isinstance(item, str)
    ]
    return Reading(None if wrong else tuple(items), findings + wrong)


def _list(annotations: Mapping[str, str], key: str) -> tuple[list[Any] | None, Findings]:
    if not annotations.get(key):
        return None, []
    data, odd = read_text(annotations[key], path_of(key))
    findings = [*odd]
    if isinstance(data, list) and len(data) <= MOST_ITEMS and all(map(bearable, findings)):
        return data, findings
    if data is not None or not findings:
        hint = f"write a list of at most {MOST_ITEMS} items"
        findings.append(Finding(path_of(key), annotations[key], "not a list", hint))
    return None, findings


def number(annotations: Mapping[str, str], key: str, within: range) -> Reading[int]:
    if key not in annotations:
        return Reading(None, [])
    value = integer(annotations[key], within)
    hint = f"use a whole number from {within.start} to {within.stop - 1}"
    return Reading(value, [] if value is not None else [Finding(path_of(key), annotations[key], "out of range", hint)])


def cpus(path: str, text: str) -> list[Finding]:
    """What is wrong with a CPU list."""
    try:
        parse_cpus(text)
    except ValueError as e:
        return [Finding(path, text, str(e), "write it as 0-3,8")]
    return []
