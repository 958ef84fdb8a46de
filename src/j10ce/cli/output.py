"""Listings: -o table, wide, json, yaml. Plain columns, as kubectl prints them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from j10ce.cli.screen import fitted
from j10ce.errors import Invalid, QosError
from j10ce.http.status import exit_code
from j10ce.model.catalogue import Column, Kind
from j10ce.model.text.cells import cell, dig, shown, text_of
from j10ce.model.text.words import aged

FORMATS = ("table", "wide", "json", "yaml")


class Verbatim(str):
    """Text for machines: no line of it is folded, and nothing is coloured."""

    __slots__ = ()


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
    names = ["NAMESPACE", "NAME"] if kind.namespaced else ["NAME"]
    return [*names, *(c.name for c in _columns(kind, style)), *(["AGE"] if _aging(kind, style) else [])]


def cells(kind: Kind, obj: dict[str, Any], style: str) -> list[str]:
    names = [dig(obj, "metadata.namespace"), dig(obj, "metadata.name")]
    shown = [cell(obj, column) for column in _columns(kind, style)]
    ages = [age(dig(obj, "metadata.creationTimestamp"))] if _aging(kind, style) else []
    return [_cell(value) for value in (*(names if kind.namespaced else names[1:]), *shown, *ages)]


def age(created: str | None) -> str | None:
    """`5m30s`, `3d`, as kubectl shows it."""
    if not created:
        return None
    now = time.time()  # noqa: TID251 a command has no other clock
    return aged(int(now - datetime.fromisoformat(created).timestamp()))


def _aging(kind: Kind, style: str) -> bool:
    """A plain listing of workloads has no room for it: it fits 80 columns without."""
    return kind.stored or style == "wide"


def _columns(kind: Kind, style: str) -> list[Column]:
    return [c for c in kind.columns if style == "wide" or not c.wide]


def dump(data: Any, style: str) -> Verbatim:
    if style == "yaml":
        import yaml

        return Verbatim(yaml.safe_dump(data, sort_keys=False, allow_unicode=True).rstrip())
    return Verbatim(json.dumps(data, indent=2, ensure_ascii=False))


def without_owners(obj: dict[str, Any]) -> dict[str, Any]:
    """An object as a person reads it: who owns which field is the business of `kubectl --show-managed-fields`."""
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}


def _cell(value: object) -> str:
    return shown(text_of(value)) or "-"


# Every word of this command goes through one of these three: a node, a user or a server may have written it.


def say(text: str = "") -> None:
    """To standard output at once: a reader of our pipe follows."""
    plain = shown(text, keep="\n\t")
    print(plain if isinstance(text, Verbatim) else fitted(plain, sys.stdout), flush=True)


def warn(text: str) -> None:
    """One line to standard error."""
    print(fitted(shown(text), sys.stderr), file=sys.stderr)


def progress(text: str, *, last: bool) -> None:
    """To standard error: one line that is rewritten on a terminal, elsewhere the last of them alone."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{fitted(shown(text), sys.stderr)}", end="\n" if last else "", file=sys.stderr, flush=True)
    elif last:
        warn(text)


def report(error: QosError) -> int:
    """Say it on stderr, findings on lines of their own; the exit code that tells them apart."""
    if isinstance(error, Invalid) and len(error.findings) > 1:
        warn(f"error: invalid {error.what}:")
        for finding in error.findings:
            warn(f"  {finding}")
    else:
        warn(f"error: {error}")
    return exit_code(type(error))
