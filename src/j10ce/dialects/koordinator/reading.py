"""JSON that others wrote, read strictly: whatever is in it, the answer is a value, or findings, or both.

A field that nobody knows is reported and left out, since a later release of theirs may know it. A value that is wrong
makes the whole text worth nothing: half of an intention is not an intention.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct

from j10ce.errors import Finding, Invalid
from j10ce.model.bounds import MOST_OBJECT
from j10ce.model.kube.native import without_nulls
from j10ce.model.schema import REPEATED, STEP, STRAY, parse_sent, refuse_repeated, salvage

S = TypeVar("S", bound=Struct)
BEARABLE: Final = (STRAY, REPEATED)  # what is wrong with a text and does not change what its other fields mean


class JsonText(NamedTuple):
    """Plain data of a text that is JSON, and what is odd about it; `data` is None where it is none."""

    data: Any
    findings: tuple[Finding, ...]


def read_text(text: str, path: str) -> JsonText:
    """JSON into plain data. A null is what was left out, as in Go."""
    if len(text) > MOST_OBJECT:
        return JsonText(None, (Finding(path, None, f"{len(text)} characters", f"write at most {MOST_OBJECT}"),))
    strays: list[Finding] = []
    try:
        data = without_nulls(parse_sent(text))
        refuse_repeated(text, strays)
    except (Invalid, UnicodeError) as e:
        first = e.findings[0] if isinstance(e, Invalid) else Finding("", None, "not UTF-8")
        return JsonText(None, (Finding(path, text, first.problem, first.hint or "write one JSON document"),))
    return JsonText(data, tuple(below(path, strays)))


def read(text: str, into: type[S], path: str) -> tuple[S | None, list[Finding]]:
    """A JSON object into a struct; None with findings where it is malformed."""
    data, odd = read_text(text, path)
    if data is None:
        return None, [*odd] or [Finding(path, text, "empty", "write one JSON document")]
    value, findings = checked(data, into, path)
    return value, [*odd, *findings]


def checked(data: object, into: type[S], path: str) -> tuple[S | None, list[Finding]]:
    """Plain data into a struct; None unless everything but unknown fields is right."""
    try:
        value, findings = salvage(data, into)
    except Invalid as e:
        value, findings = None, [*e.findings]
    problems = [*below(path, (_with_range(finding, into) for finding in findings))]
    return value if all(bearable(finding) for finding in findings) else None, problems


def bearable(finding: Finding) -> bool:
    return finding.problem in BEARABLE


def below(path: str, findings: Iterable[Finding]) -> list[Finding]:
    """The findings of a part, as those of the whole."""
    return [f._replace(path=".".join(part for part in (path, f.path.lstrip(".")) if part)) for f in findings]


def _with_range(finding: Finding, into: type[Struct]) -> Finding:
    """What the decoder does not say: which numbers would be right."""
    if finding.hint:
        return finding
    problem, _, hint = finding.problem.partition("; ")
    if not problem.startswith("Expected"):
        return finding._replace(problem=problem, hint=hint or "correct it")
    types = [_info(into)]
    for key, _ in STEP.findall(f".{finding.path}"):
        types = [leaf for above in types for leaf in _under(above, key)]
    ranges = [text for leaf in types if (text := _range(leaf))]
    return finding._replace(hint=f"use {' or '.join(ranges)}") if ranges else finding._replace(hint="correct it")


@cache
def _info(into: type[Struct]) -> Any:
    from msgspec import inspect  # loaded for mistakes alone

    return inspect.type_info(into)


def _under(above: Any, key: str) -> list[Any]:
    if not key:
        return [leaf for leaf in (getattr(above, "item_type", None),) if leaf is not None]
    fields = [f.type for f in getattr(above, "fields", ()) if f.encode_name == key]
    return [leaf for t in fields for leaf in (t, *getattr(t, "types", ()))]


def _range(leaf: Any) -> str:
    bounds = [getattr(leaf, name, None) for name in ("gt", "ge", "le")]
    above, low, high = (None if bound is None else f"{bound:g}" for bound in bounds)
    if high is None:
        least = f"{low} or more" if low is not None else f"more than {above}" if above is not None else ""
        return least if type(leaf).__name__ in ("IntType", "FloatType") else ""
    return f"{low} to {high}" if low is not None else f"more than {above or '-inf'}, at most {high}"
