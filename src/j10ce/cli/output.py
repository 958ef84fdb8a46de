"""Listings: -o table, wide, json, yaml. Plain columns, as kubectl prints them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from j10ce.model.kinds import Kind

FORMATS = ("table", "wide", "json", "yaml")


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Aligned columns, three spaces apart; an empty cell shows as `-`."""
    lines = [list(headings), *([_cell(c) for c in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    return "\n".join("   ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def show_objects(kind: Kind, objects: Sequence[dict[str, Any]], style: str) -> str:
    """A listing of one kind in the asked style."""
    if style in ("json", "yaml"):
        listing = {"apiVersion": "j10ce.io/v1alpha1", "kind": f"{kind.name}List", "items": list(objects)}
        return dump(listing, style)
    columns = [c for c in kind.columns if style == "wide" or not c.wide]
    headings = [*(["NAMESPACE"] if kind.namespaced else []), "NAME", *(c.name for c in columns)]
    rows = [
        [*([dig(o, "metadata.namespace")] if kind.namespaced else []), dig(o, "metadata.name")]
        + [dig(o, c.path) for c in columns]
        for o in objects
    ]
    return table(headings, rows)


def dump(data: Any, style: str) -> str:
    if style == "yaml":
        import yaml

        return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True)).rstrip()
    return json.dumps(data, indent=2, ensure_ascii=False)


def dig(obj: Any, path: str) -> Any:
    """The value at a dotted path, or None."""
    for step in path.split("."):
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "-"
    return str(value)


def say(text: str = "") -> None:
    print(text)


def warn(text: str) -> None:
    print(text, file=sys.stderr)
