"""Objects as JSON, kept: a get, a list and every watcher of one revision share the same bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from j10ce.manager.api import query
from j10ce.manager.api.verbs import Page
from j10ce.model.catalogue import Kind
from j10ce.model.kinds import API_VERSION, Object
from j10ce.model.schema import encode

MOST: Final = 20_000
MOST_BYTES: Final = 16 << 20  # of all that is kept: what one caller can make of it is bounded by this
MOST_ROWS: Final = 8 << 20  # likewise, of rows of tables and of bare metadata
T = TypeVar("T")


class Form(Protocol):
    """How objects are shown to a client."""

    def object(self, obj: Object, /, *, kept: bool = True) -> bytes:
        """Unless it is `kept`, it is no state that was stored under its revision."""
        ...

    def items(self, objects: Sequence[Object], /) -> bytes:
        """Members of a page, with commas between them."""
        ...

    def page(self, kind: Kind, page: Page, items: bytes, /) -> bytes: ...
    def bookmark(self, kind: Kind, meta: dict[str, Any], /) -> bytes:
        """The object of a watch's event that tells no change, only where the watch stands."""
        ...


class Kept(Generic[T]):
    """What was made of objects, by their revision; the oldest goes first."""

    def __init__(self, most_bytes: int) -> None:
        # A plain dict is slow to tell its oldest entry when many before it are gone.
        self._made: OrderedDict[tuple[str, ...], tuple[T, int]] = OrderedDict()
        self._bytes, self._most_bytes = 0, most_bytes

    def get(self, key: tuple[str, ...]) -> T | None:
        found = self._made.get(key)
        return None if found is None else found[0]

    def keep(self, key: tuple[str, ...], made: T, size: int) -> None:
        self._made[key] = (made, size)
        self._bytes += size
        while self._bytes > self._most_bytes or len(self._made) > MOST:
            self._bytes -= self._made.popitem(last=False)[1][1]


class Encoded:
    """Objects as they are."""

    def __init__(self) -> None:
        self._kept = Kept[bytes](MOST_BYTES)
        self.rows = Kept[tuple[bytes, bytes]](MOST_ROWS)  # for other forms: what stands before and after an age

    def object(self, obj: Object, *, kept: bool = True) -> bytes:
        revision = (obj.metadata.uid, obj.metadata.resource_version)
        if not kept or not revision[1]:
            return encode(obj)  # it was never stored
        data = self._kept.get(revision)
        if data is None:
            data = encode(obj)
            self._kept.keep(revision, data, len(data))
        return data

    def items(self, objects: Sequence[Object]) -> bytes:
        return b",".join(map(self.object, objects))

    def page(self, kind: Kind, page: Page, items: bytes) -> bytes:
        head = {"kind": f"{kind.name}List", "apiVersion": API_VERSION, "metadata": list_meta(page)}
        return msgspec.json.encode(head)[:-1] + b',"items":[' + items + b"]}"

    def bookmark(self, kind: Kind, meta: dict[str, Any]) -> bytes:
        return msgspec.json.encode({"kind": kind.name, "apiVersion": API_VERSION, "metadata": meta})


_: type[Form] = Encoded


def list_meta(page: Page) -> dict[str, Any]:
    meta: dict[str, Any] = {"resourceVersion": page.revision}
    if page.rest:
        meta |= {"continue": query.encode(page.rest), "remainingItemCount": page.remaining}
    return meta


def line(type_: str, data: bytes) -> bytes:
    return b'{"type":"' + type_.encode() + b'","object":' + data + b"}\n"
