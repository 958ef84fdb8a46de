"""Text to objects and back: strict, and with every shape error at once; JSON Schema from the same structs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from j10ce.errors import MOST_FINDINGS, Finding, Invalid, Malformed
from j10ce.model.bounds import MOST_DEPTH, MOST_VALUES, may_repeat, repeated_keys, too_deep, too_many
from j10ce.model.catalogue import KINDS, Kind
from j10ce.model.kinds import API_VERSION, Object
from j10ce.model.quantity import Duration, Quantity
from j10ce.model.text.items import Items
from j10ce.model.text.near import near, one_of

S = TypeVar("S", bound=Struct)
STORED_DEPTH: Final = 4000  # frames; earlier releases stored objects of nearly a thousand levels
CUSTOM: Final = (Quantity, Duration)  # written as text
HOLDING: Final = frozenset({dict, list})  # plain data that holds other plain data


def prime() -> None:
    """To be called by a process before it starts threads: a struct that two of them use for the first time at the same
    instant crashes the interpreter (msgspec 0.22)."""
    waiting: list[type[Struct]] = [Struct]
    while waiting:
        struct = waiting.pop()
        waiting += struct.__subclasses__()
        if struct.__module__.startswith("j10ce."):
            with suppress(TypeError):  # one that holds what cannot be decoded, such as a plan, is never decoded
                msgspec.json.Decoder(struct, dec_hook=_decode_custom)


def decode(raw: object) -> Object:
    """One object of any kind from plain data of our own, such as a backup; raises Invalid with all findings."""
    return convert_ours(raw, kind_of(raw).struct)  # type: ignore[return-value]


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
        findings.append(Finding("kind", name, "unknown kind", one_of(str(name or ""), KINDS)))
    if kind is None or findings:
        raise Invalid(findings, str(name or "object"))
    return kind


def parse(text: bytes | str, into: type[S], strays: list[Finding] | None = None) -> S:
    """JSON text into a struct: one pass when it is right, all shape findings when it is not."""
    if (right := parse_right(text, into)) is not None:
        return right
    return _convert(Copies(MOST_VALUES, ours=True).of(parse_sent(text), MOST_DEPTH), into, strays)


def parse_right(text: bytes | str, into: type[S]) -> S | None:
    """The same where it is right at first sight, else None."""
    if too_deep(text):
        raise _nested()
    try:
        return msgspec.json.decode(text, type=into, dec_hook=_decode_custom)
    except (ValueError, RecursionError):
        return None


def parse_once(text: bytes | str, into: type[S]) -> S:
    """The same of what a client sends, which names no field twice."""
    refuse_crowd(text)
    parsed = parse(text, into)
    refuse_repeated(text, None)
    return parsed


def parse_plain(text: bytes | str) -> Any:
    """JSON text into dicts, lists, strings and numbers; raises Malformed."""
    if too_deep(text):
        raise _nested()
    return _plain_json(text)


def parse_sent(text: bytes | str) -> Any:
    """The same of what a client sends, of which too much is refused before it is made."""
    refuse_crowd(text)
    return parse_plain(text)


def refuse_crowd(text: bytes | str) -> None:
    """Text of more values than one object may have: raises Malformed, before any of them is made."""
    if too_many(text):
        raise _crowded()


def parse_stored(text: bytes, into: type[S], strays: list[Finding]) -> S:
    """What another release may have stored: its own fields, and beside the spec all that is beyond today's bounds, are
    left out and listed in `strays`. In a spec nothing else is: a selector that lost a word would choose others."""
    try:
        return msgspec.json.decode(text, type=into, dec_hook=_decode_custom)
    except (ValueError, RecursionError):
        with _frames(STORED_DEPTH):
            return _convert(Copies(sys.maxsize).of(_plain_json(text), sys.maxsize), into, strays, lossy=True)


@contextmanager
def _frames(most: int) -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(most, before))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def refuse_repeated(text: bytes | str, strays: list[Finding] | None) -> None:
    """Fields that valid JSON text names twice, where a decoder takes the last: raises Malformed, or tells `strays`."""
    if not may_repeat(text):
        return
    refuse_crowd(text)
    repeated = [Finding(path, None, REPEATED, "write it once") for path in repeated_keys(text)]
    if strays is not None:
        strays += repeated
    elif repeated:
        raise Malformed(repeated, "JSON")


def _plain_json(text: bytes | str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as e:
        raise Malformed([Finding("", None, f"not JSON: {e}")]) from None


def _nested() -> Malformed:
    return Malformed([Finding("", None, "nested too deeply", f"nest at most {MOST_DEPTH} levels")])


def _crowded() -> Malformed:
    return Malformed([Finding("", None, "too many values", f"send at most {MOST_VALUES} in one object")])


def convert(raw: object, into: type[S], strays: list[Finding] | None = None) -> S:
    """Plain data into a struct, strictly; raises Invalid with all shape findings.

    The decoder stops at the first error, so each one is noted, cut out of a copy, and the rest is tried again.
    With `strays`, unknown fields are left out, and listed there.
    """
    return _convert(Copies(MOST_VALUES).of(raw, MOST_DEPTH), into, strays)


def salvage(raw: object, into: type[S]) -> tuple[S | None, list[Finding]]:
    """What can be read of plain data, without what is wrong, and all that is; None where nothing can be."""
    return _salvage(Copies(MOST_VALUES).of(raw, MOST_DEPTH), into, None)


def convert_ours(raw: object, into: type[S]) -> S:
    """The same of what a manager or a file of ours says, however many values it has."""
    return _convert(Copies(sys.maxsize).of(raw, MOST_DEPTH), into, None)


def _convert(rest: Any, into: type[S], strays: list[Finding] | None, *, lossy: bool = False) -> S:
    done, findings = _salvage(rest, into, strays, lossy=lossy)
    if done is None or findings:
        raise Invalid(findings, into.__name__)
    return done


def _salvage(
    rest: Any, into: type[S], strays: list[Finding] | None, *, lossy: bool = False
) -> tuple[S | None, list[Finding]]:
    """`lossy`: `strays` lists whatever is wrong beside the spec, as long as the rest is an object."""
    findings: list[Finding] = []
    while len(findings) < MOST_FINDINGS:
        try:
            return msgspec.convert(rest, into, dec_hook=_decode_custom), findings
        except msgspec.ValidationError as e:
            wrong, go_on = _cut(rest, str(e))
            bearable = wrong[0].problem == STRAY or (lossy and not _inside(wrong[0].path, "spec"))
            if strays is not None and go_on and len(strays) < MOST_FINDINGS and bearable:
                strays += wrong
                continue
            # What an earlier cut left missing is not a second mistake.
            findings += [_with_choices(f, into) for f in wrong if not any(_inside(g.path, f.path) for g in findings)]
            if not go_on:
                break
    return None, findings


def _with_choices(finding: Finding, into: type[Struct]) -> Finding:
    """The decoder says neither which words are known nor which field an unknown one resembles."""
    stray = finding.problem == STRAY
    if isinstance(finding.value, bool) and finding.problem.startswith("Expected `str`"):
        return finding._replace(hint="put it in quotes: YAML takes off, on, no and yes for truth values")
    if stray and finding.path.rpartition(".")[2] == "":
        return finding  # a field without a name resembles none
    if not stray and not finding.problem.startswith("Invalid enum value"):
        return finding
    *way, last = [key for key, _ in STEP.findall(f".{finding.path}")] or [""]  # a field may be named by no letter
    types = [_type_info(into)]
    for key in way if stray else [*way, last]:
        types = [below for above in types for below in _below(above, key)]
    if stray:
        meant = near(last, [field.encode_name for t in types for field in getattr(t, "fields", ())])
        return finding._replace(hint=f"did you mean {meant}?") if meant else finding
    known = [word for t in types for word in _words(t)]
    return Finding(finding.path, finding.value, "not one of the known words", one_of(str(finding.value), known))


@cache
def _type_info(into: type[Struct]) -> Any:
    from msgspec import inspect  # loaded for mistakes alone

    return inspect.type_info(into)


def _below(above: Any, key: str) -> list[Any]:
    """The types that the value of a field, a key or an item may have."""
    within = [above, *getattr(above, "types", ())]  # a union is any of its own
    fields = [f.type for t in within for f in getattr(t, "fields", ()) if f.encode_name == key]
    held = [getattr(t, name) for t in within for name in ("value_type", "item_type") if hasattr(t, name)]
    return [leaf for t in fields or held for leaf in (t, *getattr(t, "types", ()))]


def _words(of: Any) -> list[str]:
    members = [member.value for member in getattr(of, "cls", ())] if type(of).__name__ == "EnumType" else []
    return [str(word) for word in (*members, *getattr(of, "values", ()))]


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
        example = "quantity; write it as 500m or 1Gi" if into is Quantity else "duration; write it as 30s, 10m or 1h30m"
        raise ValueError(f"not a {example}")
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
REPEATED: Final = "duplicate field"
UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`")
MISSING: Final = re.compile(r"Object missing required field `(.*)`")
STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def _cut(root: Any, message: str) -> tuple[list[Finding], bool]:
    """The findings that a decoder message tells, and whether cutting them out leaves something to go on with."""
    # The last one is the decoder's own; an earlier one is part of a key or a value.
    problem, place, where = message.rpartition(" - at `")
    problem, where = (problem, where.removesuffix("`").removeprefix("key in ")[1:]) if place else (message, "")
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
    out, here = "", root
    for key, index in STEP.findall(path):
        moved = isinstance(here, Items) and index.isdigit() and int(index) < len(here)
        out += f".{key}" if key else f"[{here.origin[int(index)] if moved else index}]"
        here = _walk(here, f".{key}" if key else f"[{index}]")
    return out


def _shown(value: object) -> object:
    return value if isinstance(value, str | int | float | bool) else None


class Copies:
    """Copies of plain data, down to a depth and of so many values in all: what is beyond is refused before it is looked
    at any further, as it takes time from everybody else. `ours`: nobody else has it, so it is changed in place."""

    def __init__(self, values: int, *, ours: bool = False) -> None:
        self._left, self._ours = values, ours

    def of(self, raw: Any, room: int) -> Any:
        if not isinstance(raw, dict | list):
            return raw
        self._left -= len(raw)
        if self._left < 0:
            raise _crowded()
        if not room:
            raise _nested()
        if isinstance(raw, list):
            return Items([self.of(v, room - 1) if type(v) in HOLDING else v for v in raw])
        copy = raw if self._ours else dict(raw)
        for key, value in raw.items():
            if type(value) in HOLDING:
                copy[key] = self.of(value, room - 1)
        return copy
