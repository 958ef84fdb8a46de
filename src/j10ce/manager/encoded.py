"""Objects as JSON, kept: a get, a list and every watcher of one revision share the same bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, Protocol

import msgspec

from j10ce.manager import query
from j10ce.manager.verbs import Page
from j10ce.model.catalogue import Kind
from j10ce.model.kinds import API_VERSION, Object
from j10ce.model.schema import encode

MOST: Final = 20_000


class Form(Protocol):
    """How objects are shown to a client."""

    def object(self, obj: Object, /) -> bytes: ...
    def page(self, kind: Kind, page: Page, /) -> bytes: ...
    def bookmark(self, kind: Kind, meta: dict[str, Any], /) -> bytes:
        """The object of a watch's event that tells no change, only where the watch stands."""
        ...


class Encoded:
    """Objects as they are."""

    def __init__(self) -> None:
        # A plain dict is slow to tell its oldest entry when many before it are gone.
        self._kept: OrderedDict[tuple[str, str], bytes] = OrderedDict()

    def object(self, obj: Object) -> bytes:
        revision = (obj.metadata.uid, obj.metadata.resource_version)
        if not revision[1]:
            return encode(obj)  # it was never stored
        data = self._kept.get(revision)
        if data is None:
            data = encode(obj)
            if len(self._kept) >= MOST:
                self._kept.popitem(last=False)
            self._kept[revision] = data
        return data

    def page(self, kind: Kind, page: Page) -> bytes:
        head = {"kind": f"{kind.name}List", "apiVersion": API_VERSION, "metadata": list_meta(page)}
        items = b",".join(map(self.object, page.items))
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
