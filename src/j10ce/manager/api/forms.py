"""Objects as clients ask for them: JSON as it is, which a get, a list and every watcher of one revision share, and what
kubectl prints, tables of cells and bare metadata."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import UnsetType

from j10ce.http.status import Refusal
from j10ce.manager.api import query
from j10ce.manager.api.verbs import Page
from j10ce.manager.asgi.requests import LARGE
from j10ce.model.catalogue import Column, Kind
from j10ce.model.kinds import API_VERSION, Object
from j10ce.model.schema import encode, plain
from j10ce.model.text.cells import cell
from j10ce.model.text.words import aged

MOST: Final = 20_000
MOST_BYTES: Final = 16 << 20  # of all that is kept: what one caller can make of it is bounded by this
MOST_ROWS: Final = 8 << 20  # likewise, of rows of tables and of bare metadata
META_GROUP: Final = "meta.k8s.io"
PARTIAL: Final = "PartialObjectMetadata"
NOTHING: Final = "<none>"
COMMA, END = b",", b"]}"
Json = dict[str, Any]
Row = tuple[bytes, bytes]  # what stands before and after an age
Include = Literal["None", "Metadata", "Object"]
T = TypeVar("T")


class Form(Protocol):
    """How objects are shown to a client."""

    def parts(self, obj: Object, /, *, kept: bool = True) -> list[bytes]:
        """An object, in parts: what is large of it is shared by whoever asks for the same.

        Unless it is `kept`, it is no state that was stored under its revision.
        """
        ...

    def items(self, objects: Sequence[Object], /) -> list[bytes]:
        """Members of a page, each after a comma, in parts that whoever asks for the same shares: an answer that nobody
        reads keeps little that is its own."""
        ...

    def page(self, kind: Kind, page: Page, /) -> tuple[bytes, bytes]:
        """What stands before and after the members."""
        ...

    def bookmark(self, kind: Kind, meta: dict[str, Any], /) -> bytes:
        """The object of a watch's event that tells no change, only where the watch stands."""
        ...


def whole(form: Form, obj: Object, *, kept: bool = True) -> bytes:
    return b"".join(form.parts(obj, kept=kept))


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
                return TableForm(kind, version, _include(include), wall, plainly)
            case "partialobjectmetadata" | "partialobjectmetadatalist" if known:
                return Partial(version, plainly)
    raise Refusal(406, "only application/json is spoken here, also as=Table and as=" + PARTIAL)


def _include(text: str) -> Include:
    match text or "Metadata":
        case ("None" | "Metadata" | "Object") as known:
            return known
        case _:
            raise Refusal(400, f"includeObject={text!r} is not known; use None, Metadata or Object")


class Kept(Generic[T]):
    """What was made of objects, by their revision; the oldest goes first.

    What is large has a quarter of the room: one large object that changes again and again fills no more than that.
    """

    def __init__(self, most_bytes: int) -> None:
        self._small, self._large = Shelf[T](most_bytes), Shelf[T](most_bytes // 4)

    def get(self, key: tuple[str, ...]) -> T | None:
        made = self._small.get(key)
        return self._large.get(key) if made is None else made

    def keep(self, key: tuple[str, ...], made: T, size: int) -> None:
        (self._large if size > LARGE else self._small).keep(key, made, size)


class Shelf(Generic[T]):
    """So many bytes, and so many entries."""

    def __init__(self, most_bytes: int) -> None:
        # A plain dict is slow to tell its oldest entry when many before it are gone.
        self._made: OrderedDict[tuple[str, ...], tuple[T, int]] = OrderedDict()
        self._bytes, self._most_bytes = 0, most_bytes

    def get(self, key: tuple[str, ...]) -> T | None:
        kept = self._made.get(key)
        return None if kept is None else kept[0]

    def keep(self, key: tuple[str, ...], made: T, size: int) -> None:
        self._made[key] = (made, size)
        self._bytes += size
        while self._bytes > self._most_bytes or len(self._made) > MOST:
            self._bytes -= self._made.popitem(last=False)[1][1]


class Encoded:
    """Objects as they are."""

    def __init__(self) -> None:
        self._kept = Kept[bytes](MOST_BYTES)
        self._rows = Kept[Row](MOST_ROWS)

    def object(self, obj: Object, *, kept: bool = True) -> bytes:
        revision = (obj.metadata.uid, obj.metadata.resource_version)
        if not kept or not revision[1]:
            return encode(obj)  # it was never stored
        data = self._kept.get(revision)
        if data is None:
            data = encode(obj)
            self._kept.keep(revision, data, len(data))
        return data

    def parts(self, obj: Object, *, kept: bool = True) -> list[bytes]:
        return [self.object(obj, kept=kept)]

    def items(self, objects: Sequence[Object]) -> list[bytes]:
        return [part for obj in objects for part in (COMMA, self.object(obj))]

    def page(self, kind: Kind, page: Page) -> tuple[bytes, bytes]:
        head = {"kind": f"{kind.name}List", "apiVersion": API_VERSION, "metadata": list_meta(page)}
        return msgspec.json.encode(head)[:-1] + b',"items":[', END

    def row(self, obj: Object, form: tuple[str, str], make: Callable[[Object], Row]) -> Row:
        """For other forms: what was made of a stored revision."""
        key = (obj.metadata.uid, obj.metadata.resource_version, *form)
        row = self._rows.get(key)
        if row is None:
            row = make(obj)
            if obj.metadata.resource_version:
                self._rows.keep(key, row, sum(map(len, row)))
        return row

    def bookmark(self, kind: Kind, meta: dict[str, Any]) -> bytes:
        return msgspec.json.encode({"kind": kind.name, "apiVersion": API_VERSION, "metadata": meta})


class Partial(NamedTuple):
    """Metadata and nothing else."""

    version: str
    plainly: Encoded

    def object(self, obj: Object, *, kept: bool = True) -> bytes:
        if not kept:
            return partial(obj, self.version)
        return self.plainly.row(obj, (PARTIAL, self.version), lambda obj: (partial(obj, self.version), b""))[0]

    def parts(self, obj: Object, *, kept: bool = True) -> list[bytes]:
        return [self.object(obj, kept=kept)]

    def items(self, objects: Sequence[Object]) -> list[bytes]:
        return [part for obj in objects for part in (COMMA, self.object(obj))]

    def page(self, kind: Kind, page: Page) -> tuple[bytes, bytes]:
        head = _typed(f"{PARTIAL}List", self.version, metadata=list_meta(page))
        return msgspec.json.encode(head)[:-1] + b',"items":[', END

    def bookmark(self, kind: Kind, meta: Json) -> bytes:
        return msgspec.json.encode(_typed(PARTIAL, self.version, metadata=meta))


class TableForm(NamedTuple):
    """One row per object, with the columns of its kind and its age."""

    kind: Kind
    version: str
    include: Include
    wall: Callable[[], float]
    plainly: Encoded

    def parts(self, obj: Object, *, kept: bool = True) -> list[bytes]:
        before, after = self._around({"resourceVersion": obj.metadata.resource_version})
        return [before, *self._row(obj, kept=kept), after]

    def items(self, objects: Sequence[Object]) -> list[bytes]:
        return [part for obj in objects for part in (COMMA, *self._row(obj))]

    def page(self, kind: Kind, page: Page) -> tuple[bytes, bytes]:
        return self._around(list_meta(page))

    def bookmark(self, kind: Kind, meta: Json) -> bytes:
        return b"".join(self._around(meta))

    def _around(self, meta: Json) -> tuple[bytes, bytes]:
        head = _typed("Table", self.version, metadata=meta, columnDefinitions=_columns(self.kind))
        return msgspec.json.encode(head)[:-1] + b',"rows":[', END

    def _row(self, obj: Object, *, kept: bool = True) -> tuple[bytes, ...]:
        """Nothing but the age is other for another watcher, or at another time."""
        form = (self.include, self.version)
        before, after = self.plainly.row(obj, form, self._around_age) if kept else self._around_age(obj)
        aged = msgspec.json.encode(age(obj.metadata.creation_timestamp, self.wall()))
        if self.include != "Object":
            return before, aged, after
        return before, aged, after, self.plainly.object(obj, kept=kept), b"}"

    def _around_age(self, obj: Object) -> Row:
        data = plain(obj)
        shown = [cell(data, column) or NOTHING for column in self.kind.columns]
        before = b'{"cells":' + msgspec.json.encode([obj.metadata.name, *shown])[:-1] + b","
        match self.include:
            case "None":
                return before, b"]}"
            case "Metadata":
                return before, b'],"object":' + partial(obj, self.version) + b"}"
            case "Object":
                return before, b'],"object":'


_: tuple[type[Form], ...] = (Encoded, Partial, TableForm)


def partial(obj: Object, version: str) -> bytes:
    head = msgspec.json.encode(_typed(PARTIAL, version))[:-1]
    return head + b',"metadata":' + encode(obj.metadata) + b"}"


def age(created: datetime | UnsetType, wall: float) -> str:
    return aged(int(wall - created.timestamp())) if created else "<unknown>"


def _columns(kind: Kind) -> list[Json]:
    name = _column(Column("Name", "metadata.name")) | {"format": "name"}
    return [name, *map(_column, kind.columns), _column(Column("Age", "metadata.creationTimestamp"))]


def _column(column: Column) -> Json:
    kind = {"name": column.name.capitalize(), "type": "string", "format": "", "priority": int(column.wide)}
    return kind | {"description": column.path}


def _typed(kind: str, version: str, **content: Any) -> Json:
    return {"kind": kind, "apiVersion": version, **content}


def list_meta(page: Page) -> Json:
    meta: Json = {"resourceVersion": page.revision}
    if page.rest:
        meta |= {"continue": query.encode(page.rest), "remainingItemCount": page.remaining}
    return meta


def line(type_: str, data: bytes) -> bytes:
    return b'{"type":"' + type_.encode() + b'","object":' + data + b"}\n"
