"""Objects as kubectl wants to print them: tables of cells, and bare metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

import msgspec

from j10ce.manager.encoded import Form, list_meta
from j10ce.manager.failure import Refusal
from j10ce.manager.verbs import Page
from j10ce.model.catalogue import Column, Kind
from j10ce.model.cells import cell, dig
from j10ce.model.kinds import Object
from j10ce.model.schema import plain

Json = dict[str, Any]
Include = Literal["None", "Metadata", "Object"]
META_GROUP: Final = "meta.k8s.io"
PARTIAL: Final = "PartialObjectMetadata"
NOTHING: Final = "<none>"


def choose(accept: str, include: str, kind: Kind, wall: Callable[[], float], plainly: Form) -> Form:
    """The first form of an Accept header that is spoken here; raises Refusal when there is none."""
    for asked in accept.lower().split(","):
        media, *rest = (part.strip() for part in asked.split(";"))
        wanted = dict(part.partition("=")[::2] for part in rest)
        if media not in ("application/json", "application/*", "*/*"):
            continue
        version = f"{META_GROUP}/{wanted.get('v', '')}"
        known = wanted.get("g") == META_GROUP and wanted.get("v") in ("v1", "v1beta1")
        match wanted.get("as", ""):
            case "":
                return plainly
            case "table" if known:
                return Table(kind, version, _include(include), wall)
            case "partialobjectmetadata" | "partialobjectmetadatalist" if known:
                return Partial(version)
    raise Refusal(406, "NotAcceptable", "only application/json is spoken here, also as=Table and as=" + PARTIAL)


def _include(text: str) -> Include:
    match text or "Metadata":
        case ("None" | "Metadata" | "Object") as known:
            return known
        case _:
            raise Refusal(400, "BadRequest", f"includeObject={text!r} is not known; use None, Metadata or Object")


class Partial(NamedTuple):
    """Metadata and nothing else."""

    version: str

    def object(self, obj: Object) -> bytes:
        return msgspec.json.encode(partial(plain(obj), self.version))

    def page(self, kind: Kind, page: Page) -> bytes:
        items = [partial(plain(obj), self.version) for obj in page.items]
        return msgspec.json.encode(_typed(f"{PARTIAL}List", self.version, metadata=list_meta(page), items=items))

    def bookmark(self, kind: Kind, meta: Json) -> bytes:
        return msgspec.json.encode(_typed(PARTIAL, self.version, metadata=meta))


class Table(NamedTuple):
    """One row per object, with the columns of its kind and its age."""

    kind: Kind
    version: str
    include: Include
    wall: Callable[[], float]

    def object(self, obj: Object) -> bytes:
        return self.rows([plain(obj)], {"resourceVersion": obj.metadata.resource_version})

    def page(self, kind: Kind, page: Page) -> bytes:
        return self.rows(map(plain, page.items), list_meta(page))

    def bookmark(self, kind: Kind, meta: Json) -> bytes:
        return self.rows([], meta)

    def rows(self, objects: Iterable[Json], meta: Json) -> bytes:
        shown = _typed("Table", self.version, metadata=meta, columnDefinitions=_columns(self.kind))
        return msgspec.json.encode(shown | {"rows": [self._row(obj) for obj in objects]})

    def _row(self, obj: Json) -> Json:
        shown = [cell(obj, column) or NOTHING for column in self.kind.columns]
        created = dig(obj, "metadata.creationTimestamp")
        row: Json = {"cells": [dig(obj, "metadata.name"), *shown, age(created, self.wall())]}
        match self.include:
            case "None":
                return row
            case "Metadata":
                return row | {"object": partial(obj, self.version)}
            case "Object":
                return row | {"object": obj}


_: tuple[type[Form], ...] = (Partial, Table)


def partial(obj: Json, version: str) -> Json:
    return _typed(PARTIAL, version, metadata=obj["metadata"])


def age(created: str | None, wall: float) -> str:
    """As Kubernetes spells it: two units while they matter, one when they do not."""
    if not created:
        return "<unknown>"
    s = max(0, int(wall - datetime.fromisoformat(created).timestamp()))
    m, h, d = s // 60, s // 3600, s // 86400
    if s < 120:
        return f"{s}s"
    if m < 10:
        return f"{m}m{s % 60}s" if s % 60 else f"{m}m"
    if m < 180:
        return f"{m}m"
    if h < 8:
        return f"{h}h{m % 60}m" if m % 60 else f"{h}h"
    if h < 48:
        return f"{h}h"
    if d < 8:
        return f"{d}d{h % 24}h" if h % 24 else f"{d}d"
    if d < 2 * 365:
        return f"{d}d"
    if d < 8 * 365:
        return f"{d // 365}y{d % 365}d" if d % 365 else f"{d // 365}y"
    return f"{d // 365}y"


def _columns(kind: Kind) -> list[Json]:
    name = _column(Column("Name", "metadata.name")) | {"format": "name"}
    return [name, *map(_column, kind.columns), _column(Column("Age", "metadata.creationTimestamp"))]


def _column(column: Column) -> Json:
    kind = {"name": column.name.capitalize(), "type": "string", "format": "", "priority": int(column.wide)}
    return kind | {"description": column.path}


def _typed(kind: str, version: str, **content: Any) -> Json:
    return {"kind": kind, "apiVersion": version, **content}
