"""How an API server writes listings and changes, whoever carries the bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from j10ce.errors import Compacted, Unavailable, Unsure
from j10ce.http.status import status_of
from j10ce.kube.failure import failure
from j10ce.kube.resource import Resource
from j10ce.model.stored import Event, Unreadable, key_of

PAGE: Final = 500
WATCH_S: Final = (300, 600)  # the server ends a watch then; by chance, so that not all come back together
QUIET_S: Final = 150.0  # bookmarks come every minute: a watch that tells nothing for so long is dead


class ListMeta(Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = field(name="continue", default="")


class ListPage(Struct):
    metadata: ListMeta
    items: Sequence[msgspec.Raw] | None = None


class WatchLine(Struct):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


class _Versioned(Struct):
    metadata: ListMeta = ListMeta()


def page_of(text: bytes) -> ListPage:
    try:
        page = msgspec.json.decode(text, type=ListPage)
        int(page.metadata.resource_version)
    except ValueError as e:  # MsgspecError is one
        raise Unavailable(f"the API server's listing is not understood: {e}") from None
    return page


def watching(since: str) -> dict[str, str]:
    """The query of a watch."""
    return {
        "watch": "1",
        "resourceVersion": since,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(random.randint(*WATCH_S)),  # noqa: S311  chance, not a secret
    }


def line_of(text: bytes, what: str, who: str) -> WatchLine:
    """A change or a bookmark. Raises what the server objects to in the middle of a watch: Compacted, mostly."""
    try:
        line = msgspec.json.decode(text, type=WatchLine)
    except msgspec.MsgspecError as e:
        raise Unavailable(f"{what}: not understood: {e}") from None
    if line.type == "ERROR":
        status = status_of(bytes(line.object))
        refusal = failure(status.code, status, what, who)
        raise Unavailable(str(refusal)) if isinstance(refusal, Unsure) else refusal
    return line


def revision_of(line: WatchLine) -> str:
    """Where a watch that is up to date with this line goes on."""
    try:
        revision = msgspec.json.decode(line.object, type=_Versioned).metadata.resource_version
    except msgspec.MsgspecError as e:
        raise Unavailable(f"the API server's {line.type} is not understood: {e}") from None
    if not revision.isdecimal():
        raise Unavailable(f"the API server's {line.type} has no revision we can order: {revision!r}")
    return revision


def event_of(resource: Resource, line: WatchLine, revision: str) -> Event | None:
    """None for a bookmark, and for what cannot be read and could not before: to us, that does not exist.

    Raises Compacted when an object turns unreadable: whoever holds it learns from a listing that it is gone.
    """
    if line.type == "BOOKMARK" or line.type == "ERROR":
        return None
    try:
        obj = resource.read(line.object)
    except Unreadable as e:
        if e.key not in resource.unread and line.type != "ADDED":
            raise Compacted(str(e)) from None
        resource.skip(e, gone=line.type == "DELETED")
        return None
    key = key_of(obj)
    if key in resource.unread:
        resource.unread.discard(key)
        return Event("ADDED" if line.type == "MODIFIED" else line.type, obj, revision)
    return Event(line.type, obj, revision)
