"""Patches as functions of plain data: JSON merge patch (RFC 7396) and JSON patch (RFC 6902). Pure."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from j10ce.errors import Finding, Invalid, Malformed
from j10ce.model.bounds import MOST_DEPTH
from j10ce.model.schema import convert, parse_sent

MOST_OPERATIONS: Final = 1000
MOST_COPIED: Final = 1 << 20  # bytes of one patch: a copy of a copy of a copy grows without bounds


def merge(old: Any, patch: Any) -> Any:
    """RFC 7396: objects merge, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = merge(kept.get(key), value)
    return kept


class Operation(Struct, frozen=True):
    """Members that an operation does not know are ignored, as the RFC wants it."""

    op: Literal["add", "remove", "replace", "move", "copy", "test"]
    path: str
    from_: str | UnsetType = field(default=UNSET, name="from")
    value: Any = UNSET


class Patch(Struct, frozen=True):
    operations: tuple[Operation, ...]


def read_operations(raw: bytes) -> tuple[Operation, ...]:
    """Raises Malformed for what is no list of operations, Invalid for an operation that lacks something."""
    listed = parse_sent(raw)
    if not isinstance(listed, list):
        raise Malformed([Finding("", None, "not a list", "a JSON patch is a list of operations")], "patch")
    if len(listed) > MOST_OPERATIONS:
        raise Invalid([Finding("", len(listed), "too many operations", f"send at most {MOST_OPERATIONS}")], "patch")
    try:
        operations = convert({"operations": listed}, Patch).operations
    except Malformed:
        raise
    except Invalid as e:
        raise Invalid([f._replace(path=f.path.removeprefix("operations")) for f in e.findings], "patch") from None
    lacking = [(n, name) for n, operation in enumerate(operations) if (name := _lacks(operation))]
    if lacking:
        raise Invalid([Finding(f"[{n}].{name}", None, "missing", "it is required") for n, name in lacking], "patch")
    return operations


def _lacks(operation: Operation) -> str:
    if operation.op in ("add", "replace", "test") and operation.value is UNSET:
        return "value"
    return "from" if operation.op in ("move", "copy") and operation.from_ is UNSET else ""


def patched(document: Any, operations: tuple[Operation, ...]) -> Any:
    """`document` (dicts and lists, changed in place) after all operations; raises Invalid at the first that fails."""
    copied = 0
    for n, operation in enumerate(operations):
        try:
            document, size = _done(document, operation)
            copied += size
        except LookupError as e:
            finding = Finding(f"[{n}].path", operation.path, str(e.args[0]), f"{operation.op} failed")
            raise Invalid([finding], "patch") from None
        except RecursionError:
            raise Invalid([Finding(f"[{n}]", None, "nests too deeply")], "patch") from None
        if copied > MOST_COPIED:
            raise Invalid([Finding(f"[{n}]", None, f"copies more than {MOST_COPIED} bytes")], "patch")
    return document


def _done(document: Any, operation: Operation) -> tuple[Any, int]:
    """The document, and how many bytes were copied."""
    path, source = operation.path, str(operation.from_)
    match operation.op:
        case "test":
            value = _get(document, path)
            if value != operation.value or isinstance(value, bool) is not isinstance(operation.value, bool):
                raise LookupError("has another value")
            return document, 0
        case "add":
            return _add(document, path, _fresh(operation.value)), 0
        case "remove":
            return _remove(document, path), 0
        case "replace":
            _get(document, path)
            return _add(document, path, _fresh(operation.value), replacing=True), 0
        case "move":
            if path.startswith(f"{source}/"):
                raise LookupError("lies inside of what is moved")
            value = _get(document, source)
            return (_add(_remove(document, source), path, value) if path != source else document), 0
        case "copy":
            data = msgspec.json.encode(_get(document, source))
            return _add(document, path, msgspec.json.decode(data)), len(data)


def _fresh(value: Any) -> Any:
    """A later operation may change what was added, and the patch may be tried again."""
    return msgspec.json.decode(msgspec.json.encode(value)) if isinstance(value, dict | list) else value


def _add(document: Any, pointer: str, value: Any, *, replacing: bool = False) -> Any:
    if not pointer:
        return value
    holder, last = _holder(document, pointer)
    if isinstance(holder, dict):
        holder[last] = value
    elif replacing:
        holder[_index(last, len(holder) - 1)] = value
    else:
        holder.insert(len(holder) if last == "-" else _index(last, len(holder)), value)
    return document


def _remove(document: Any, pointer: str) -> Any:
    _get(document, pointer)
    if not pointer:
        return None
    holder, last = _holder(document, pointer)
    del holder[last if isinstance(holder, dict) else int(last)]
    return document


def _get(document: Any, pointer: str) -> Any:
    for step in _steps(pointer):
        document = _member(document, step)
    return document


def _holder(document: Any, pointer: str) -> tuple[Any, str]:
    *steps, last = _steps(pointer)
    for step in steps:
        document = _member(document, step)
    if not isinstance(document, dict | list):
        raise LookupError("leads into a value that holds nothing")
    return document, last


def _member(holder: Any, step: str) -> Any:
    if isinstance(holder, list):
        return holder[_index(step, len(holder) - 1)]
    if isinstance(holder, dict) and step in holder:
        return holder[step]
    raise LookupError(f"has no {step!r}")


def _index(step: str, most: int) -> int:
    if not (step.isascii() and step.isdecimal()) or (step != "0" and step.startswith("0")) or len(step) > 9:
        raise LookupError(f"{step!r} is no index")
    if int(step) > most:
        raise LookupError(f"index {step} is past the end")
    return int(step)


def _steps(pointer: str) -> list[str]:
    """RFC 6901: `/` separates; `~1` stands for it, and `~0` for `~`."""
    if pointer and not pointer.startswith("/"):
        raise LookupError("is no pointer: it does not start with /")
    if pointer.count("/") > MOST_DEPTH:
        raise LookupError(f"leads deeper than {MOST_DEPTH} levels, and no object does")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
