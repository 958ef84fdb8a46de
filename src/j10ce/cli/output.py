"""Listings: -o table, wide, json, yaml. Plain columns, as kubectl prints them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from j10ce.errors import Busy, Conflict, Denied, Invalid, NotFound, QosError, Unreachable
from j10ce.model.catalogue import Column, Kind
from j10ce.model.text.cells import dig, shown, text_of

FORMATS = ("table", "wide", "json", "yaml")
EXIT_CODES: Final = (
    (Invalid, 3),
    (Unreachable, 4),
    (Denied, 5),
    (NotFound, 6),
    (Conflict, 7),
    (Busy, 7),
    (QosError, 1),
)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, least: Sequence[int] = ()) -> str:
    """Aligned columns, three spaces apart, at least so wide; an empty cell shows as `-`."""
    lines = [list(headings), *([_cell(c) for c in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    widths = [max(pair) for pair in zip(widths, least, strict=True)] if least else widths
    return "\n".join("   ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def show_objects(kind: Kind, objects: Sequence[dict[str, Any]], style: str) -> str:
    """A listing of one kind in the asked style."""
    if style in ("json", "yaml"):
        items = list(map(without_owners, objects))
        return dump({"apiVersion": "j10ce.io/v1alpha1", "kind": f"{kind.name}List", "items": items}, style)
    return table(headings(kind, style), [cells(kind, o, style) for o in objects])


def headings(kind: Kind, style: str) -> list[str]:
    return [*(["NAMESPACE"] if kind.namespaced else []), "NAME", *(c.name for c in _columns(kind, style))]


def cells(kind: Kind, obj: dict[str, Any], style: str) -> list[str]:
    names = [dig(obj, "metadata.namespace"), dig(obj, "metadata.name")]
    shown = [c.default if (value := dig(obj, c.path)) is None else value for c in _columns(kind, style)]
    return [_cell(value) for value in (*(names if kind.namespaced else names[1:]), *shown)]


def _columns(kind: Kind, style: str) -> list[Column]:
    return [c for c in kind.columns if style == "wide" or not c.wide]


def dump(data: Any, style: str) -> str:
    if style == "yaml":
        import yaml

        return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True)).rstrip()
    return json.dumps(data, indent=2, ensure_ascii=False)


def without_owners(obj: dict[str, Any]) -> dict[str, Any]:
    """An object as a person reads it: who owns which field is the business of `kubectl --show-managed-fields`."""
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}


def _cell(value: object) -> str:
    return shown(text_of(value)) or "-"


# Every word of this command goes through one of these two: a node, a user or a server may have written it.


def say(text: str = "") -> None:
    """To standard output at once: a reader of our pipe follows."""
    print(shown(text, keep="\n\t"), flush=True)


def warn(text: str) -> None:
    """One line to standard error."""
    print(shown(text), file=sys.stderr)


def report(error: QosError) -> int:
    """Say it on stderr, findings on lines of their own; the exit code that tells them apart."""
    if isinstance(error, Invalid) and len(error.findings) > 1:
        warn(f"error: invalid {error.what}:")
        for finding in error.findings:
            warn(f"  {finding}")
    else:
        warn(f"error: {error}")
    return next(code for kind, code in EXIT_CODES if isinstance(error, kind))
