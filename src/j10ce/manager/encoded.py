"""Objects as JSON, kept: a get, a list and every watcher of one revision share the same bytes."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from j10ce.manager import query
from j10ce.manager.verbs import Page
from j10ce.model.catalogue import Kind
from j10ce.model.kinds import API_VERSION, Object
from j10ce.model.schema import encode
from j10ce.store.store import Event

MOST: Final = 20_000


class Encoded:
    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], bytes] = {}

    def object(self, obj: Object) -> bytes:
        revision = (obj.metadata.uid, obj.metadata.resource_version)
        data = self._kept.get(revision)
        if data is None:
            data = encode(obj)
            if len(self._kept) >= MOST:
                del self._kept[next(iter(self._kept))]
            self._kept[revision] = data
        return data

    def page(self, kind: Kind, page: Page) -> bytes:
        meta: dict[str, Any] = {"resourceVersion": page.revision}
        if page.rest:
            meta |= {"continue": query.encode(page.rest), "remainingItemCount": page.remaining}
        head = {"kind": f"{kind.name}List", "apiVersion": API_VERSION, "metadata": meta}
        items = b",".join(map(self.object, page.items))
        return msgspec.json.encode(head)[:-1] + b',"items":[' + items + b"]}"

    def event(self, event: Event) -> bytes:
        return line(event.type, self.object(event.object))


def line(type_: str, data: bytes) -> bytes:
    return b'{"type":"' + type_.encode() + b'","object":' + data + b"}\n"


def bookmark(kind: str, revision: str) -> bytes:
    mark = {"kind": kind, "apiVersion": API_VERSION, "metadata": {"resourceVersion": revision}}
    return line("BOOKMARK", msgspec.json.encode(mark))
