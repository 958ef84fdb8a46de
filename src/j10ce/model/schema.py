"""Text to objects and back: strict, and with every shape error at once; JSON Schema from the same structs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from j10ce.errors import Finding, Invalid, Malformed
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.kinds import API_VERSION, Object
from j10ce.model.quantity import Duration, Quantity

S = TypeVar("S", bound=Struct)
MOST_FINDINGS: Final = 50
CUSTOM: Final = (Quantity, Duration)  # written as text


def decode(raw: object) -> Object:
    """One object of any kind from plain data; raises Invalid with all findings."""
    return convert(raw, kind_of(raw).struct)  # type: ignore[return-value]


def kind_of(raw: object) -> Kind:
    """The kind that plain data claims to be."""
    if not isinstance(raw, dict):
        raise Invalid([Finding("", raw, "not an object", "write a mapping with apiVersion, kind, metadata and spec")])
    version, name = raw.get("apiVersion"), raw.get("kind")
    kind = KINDS.get(name) if isinstance(name, str) else None
    findings = []
    if version != API_VERSION:
        findings.append(Finding("apiVersion", version, "unknown version", f"use {API_VERSION}"))
    if kind is None:
        findings.append(Finding("kind", name, "unknown kind", "use one of " + ", ".join(KINDS)))
    if kind is None or findings:
        raise Invalid(findings, str(name or "object"))
    return kind


def parse(text: bytes | str, into: type[S], strays: list[Finding] | None = None) -> S:
    """JSON text into a struct: one pass when it is right, all shape findings when it is not."""
    try:
        return msgspec.json.decode(text, type=into, dec_hook=_decode_custom)
    except (ValueError, RecursionError):
        return convert(parse_plain(text), into, strays)


def parse_plain(text: bytes | str) -> Any:
    """JSON text into dicts, lists, strings and numbers; raises Malformed."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as e:
        raise Malformed([Finding("", None, f"not JSON: {e}")]) from None


def convert(raw: object, into: type[S], strays: list[Finding] | None = None) -> S:
    """Plain data into a struct, strictly; raises Invalid with all shape findings.

    The decoder stops at the first error, so each one is noted, cut out of a copy, and the rest is tried again.
    With `strays`, unknown fields are left out, and told there.
    """
    findings: list[Finding] = []
    try:
        rest = _copy(raw)
    except RecursionError:
        raise Invalid([Finding("", None, "nested too deeply")], into.__name__) from None
    while len(findings) < MOST_FINDINGS:
        try:
            done = msgspec.convert(rest, into, dec_hook=_decode_custom)
        except msgspec.ValidationError as e:
            found, go_on = _cut(rest, str(e))
            if strays is not None and go_on and len(strays) < MOST_FINDINGS and found[0].problem == STRAY:
                strays += found
                continue
            # What an earlier cut left missing is not a second mistake.
            findings += [f for f in found if not any(_inside(g.path, f.path) for g in findings)]
            if go_on:
                continue
            break
        if not findings:
            return done
        break
    raise Invalid(findings, into.__name__)


def _inside(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))


def encode(obj: Struct) -> bytes:
    return msgspec.json.encode(obj, enc_hook=_encode_custom)


def plain(obj: object) -> Any:
    """As dicts, lists, strings and numbers, ready for YAML or a template."""
    return msgspec.to_builtins(obj, enc_hook=_encode_custom)


def json_schema(structs: Iterable[type[Struct]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """(a reference per struct, all components), for OpenAPI 3.1 and docs."""
    refs, components = msgspec.json.schema_components(
        structs, schema_hook=_schema_custom, ref_template="#/components/schemas/{name}"
    )
    return list(refs), components


def _decode_custom(into: type, raw: object) -> object:
    if into in CUSTOM:
        try:
            if into is Quantity and isinstance(raw, str | int | float):
                return Quantity.parse(raw)
            if into is Duration and isinstance(raw, str):
                return Duration.parse(raw)
        except Invalid as e:
            first = e.findings[0]
            raise ValueError(f"{first.problem}; {first.hint}") from None
        raise ValueError(f"Expected `str`, got `{type(raw).__name__}`")
    raise NotImplementedError(f"no decoder for {into}")


def _encode_custom(value: object) -> object:
    if isinstance(value, CUSTOM):
        return str(value)
    raise NotImplementedError(f"no encoder for {type(value)}")


def _schema_custom(t: type) -> dict[str, Any]:
    if t is Quantity:
        return {
            "type": ["string", "integer", "number"],
            "pattern": r"^[+]?([0-9]{1,19}(\.[0-9]{0,12})?|\.[0-9]{1,12})"
            r"([eE][+-]?[0-9]{1,2}|[numkMGTPE]|[KMGTPE]i|[kKMGT]?bit|%)?$",
            "minimum": 0,
            "examples": ["500m", "1Gi", "100Mbit", "25%"],
        }
    if t is Duration:
        return {
            "type": "string",
            "pattern": r"^(?=.)([0-9]{1,6}d)?([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,9}(\.[0-9]{1,6})?s)?$",
            "examples": ["30s", "10m", "1h30m"],
        }
    raise NotImplementedError(f"no schema for {t}")


STRAY: Final = "unknown field"
MESSAGE: Final = re.compile(r"(?s)(.*?)(?: - at `(?:key in )?\$(.*)`)?")
UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`")
MISSING: Final = re.compile(r"Object missing required field `(.*)`")
STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def _cut(root: Any, message: str) -> tuple[list[Finding], bool]:
    """The findings that a decoder message tells, and whether cutting them out leaves something to go on with."""
    found = MESSAGE.fullmatch(message)
    problem, where = (found[1], found[2] or "") if found else (message, "")
    if unknown := UNKNOWN.fullmatch(problem):
        hint = "remove it or correct its spelling"
        return _cut_key(_walk(root, where), unknown[1], _original(root, where), STRAY, hint)
    if missing := MISSING.fullmatch(problem):
        lacking = Finding(f"{_original(root, where)}.{missing[1]}".lstrip("."), None, "missing", "it is required")
        return [lacking], bool(where) and _cut_at(root, where, problem)[1]
    if where.endswith("[...]"):
        holder = where.removesuffix("[...]")
        return _cut_values(_walk(root, holder), _original(root, holder), problem)
    return _cut_at(root, where, problem)


def _cut_at(root: Any, where: str, problem: str) -> tuple[list[Finding], bool]:
    steps = STEP.findall(where)
    if not steps:
        return [Finding("", None, problem)], False
    key, index = steps[-1]
    up = where[: where.rindex("." if key else "[")]
    holder, path = _walk(root, up), _original(root, where)
    if index and isinstance(holder, Items):
        return [Finding(path.lstrip("."), _shown(holder.cut(int(index))), problem)], True
    return _cut_key(holder, key, _original(root, up), problem)


def _cut_key(holder: Any, key: str, where: str, problem: str, hint: str = "") -> tuple[list[Finding], bool]:
    usable = isinstance(holder, dict) and key in holder
    value = holder.pop(key) if usable else None
    return [Finding(f"{where}.{key}".lstrip("."), _shown(value), problem, hint)], usable


def _cut_values(holder: Any, where: str, problem: str) -> tuple[list[Finding], bool]:
    """A free mapping of strings: the decoder does not name the key, so all values that are no strings are cut."""
    wrong = [k for k, v in holder.items() if not isinstance(v, str)] if isinstance(holder, dict) else []
    findings = [Finding(f"{where}.{k}".lstrip("."), _shown(holder.pop(k)), problem) for k in wrong]
    return findings or [Finding(where.lstrip("."), None, problem)], bool(findings)


def _walk(here: Any, path: str) -> Any:
    for key, index in STEP.findall(path):
        if key and isinstance(here, dict):
            here = here.get(key)
        elif index.isdigit() and isinstance(here, list) and int(index) < len(here):
            here = here[int(index)]
        else:
            return None
    return here


def _original(root: Any, path: str) -> str:
    """The path in the input: items that were cut out before have moved the indices."""
    out, walked = "", ""
    for key, index in STEP.findall(path):
        holder = _walk(root, walked)
        walked += f".{key}" if key else f"[{index}]"
        moved = isinstance(holder, Items) and index.isdigit()
        out += f".{key}" if key else f"[{holder.origin[int(index)] if moved else index}]"
    return out


def _shown(value: object) -> object:
    return value if isinstance(value, str | int | float | bool) else None


class Items(list[Any]):
    """A list that remembers where its items were."""

    def __init__(self, items: Iterable[Any]) -> None:
        super().__init__(items)
        self.origin = list(range(len(self)))

    def cut(self, index: int) -> Any:
        del self.origin[index]
        return self.pop(index)


def _copy(raw: Any) -> Any:
    if isinstance(raw, dict):
        return {k: _copy(v) for k, v in raw.items()}
    return Items(_copy(v) for v in raw) if isinstance(raw, list) else raw
