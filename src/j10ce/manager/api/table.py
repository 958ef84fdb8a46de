"""Objects as kubectl wants to print them: tables of cells, and bare metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec import UnsetType

from j10ce.manager.api.forms import Encoded, Form, list_meta
from j10ce.manager.api.verbs import Page
from j10ce.manager.asgi.status import Refusal
from j10ce.model.catalogue import Column, Kind
from j10ce.model.kinds import Object
from j10ce.model.schema import encode, plain
from j10ce.model.text.cells import cell

Json = dict[str, Any]
Include = Literal["None", "Metadata", "Object"]
META_GROUP: Final = "meta.k8s.io"
PARTIAL: Final = "PartialObjectMetadata"
NOTHING: Final = "<none>"


def choose(accept: str, include: str, kind: Kind, wall: Callable[[], float], plainly: Encoded) -> Form:
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
                return Table(kind, version, _include(include), wall, plainly)
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

    def object(self, obj: Object, *, kept: bool = True) -> bytes:
        return partial(obj, self.version)

    def items(self, objects: Sequence[Object]) -> bytes:
        return b",".join(map(self.object, objects))

    def page(self, kind: Kind, page: Page, items: bytes) -> bytes:
        head = _typed(f"{PARTIAL}List", self.version, metadata=list_meta(page))
        return msgspec.json.encode(head)[:-1] + b',"items":[' + items + b"]}"

    def bookmark(self, kind: Kind, meta: Json) -> bytes:
        return msgspec.json.encode(_typed(PARTIAL, self.version, metadata=meta))


class Table(NamedTuple):
    """One row per object, with the columns of its kind and its age."""

    kind: Kind
    version: str
    include: Include
    wall: Callable[[], float]
    plainly: Encoded

    def object(self, obj: Object, *, kept: bool = True) -> bytes:
        return self._rows(self._row(obj, kept=kept), {"resourceVersion": obj.metadata.resource_version})

    def items(self, objects: Sequence[Object]) -> bytes:
        return b",".join(map(self._row, objects))

    def page(self, kind: Kind, page: Page, items: bytes) -> bytes:
        return self._rows(items, list_meta(page))

    def bookmark(self, kind: Kind, meta: Json) -> bytes:
        return self._rows(b"", meta)

    def _rows(self, items: bytes, meta: Json) -> bytes:
        head = _typed("Table", self.version, metadata=meta, columnDefinitions=_columns(self.kind))
        return msgspec.json.encode(head)[:-1] + b',"rows":[' + items + b"]}"

    def _row(self, obj: Object, *, kept: bool = True) -> bytes:
        """Nothing but the age is other for another watcher, or at another time."""
        key = (obj.metadata.uid, obj.metadata.resource_version, self.include, self.version)
        row = self.plainly.rows.get(key) if kept else None
        if row is None:
            row = self._around_age(obj)
            if kept and obj.metadata.resource_version:
                self.plainly.rows.keep(key, row, sum(map(len, row)))
        before, after = row
        data = self.plainly.object(obj, kept=kept) + b"}" if self.include == "Object" else b""
        return before + msgspec.json.encode(age(obj.metadata.creation_timestamp, self.wall())) + after + data

    def _around_age(self, obj: Object) -> tuple[bytes, bytes]:
        told = plain(obj)
        shown = [cell(told, column) or NOTHING for column in self.kind.columns]
        before = b'{"cells":' + msgspec.json.encode([obj.metadata.name, *shown])[:-1] + b","
        match self.include:
            case "None":
                return before, b"]}"
            case "Metadata":
                return before, b'],"object":' + partial(obj, self.version) + b"}"
            case "Object":
                return before, b'],"object":'


_: tuple[type[Form], ...] = (Partial, Table)


def partial(obj: Object, version: str) -> bytes:
    head = msgspec.json.encode(_typed(PARTIAL, version))[:-1]
    return head + b',"metadata":' + encode(obj.metadata) + b"}"


def age(created: datetime | UnsetType, wall: float) -> str:
    """As Kubernetes spells it: two units while they matter, one when they do not."""
    if not created:
        return "<unknown>"
    s = max(0, int(wall - created.timestamp()))
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
