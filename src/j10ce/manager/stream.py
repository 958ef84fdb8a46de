"""A watch as an HTTP response: JSON lines until the client leaves, its time is over, or the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec
from starlette.types import Receive, Scope, Send

from j10ce.errors import Compacted
from j10ce.manager import failure
from j10ce.manager.encoded import Encoded, bookmark, line
from j10ce.manager.query import Query
from j10ce.manager.view import View
from j10ce.store.store import Event

BOOKMARK_S: Final = 15.0
SETTLE_S: Final = 0.02  # changes that come together make one document
HEADERS: Final = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


class Stream:
    """An ASGI response that sends what `lines` yields.

    `stop` is set when the server ends; a stream then ends between two lines, and its client comes back elsewhere.
    """

    def __init__(self, lines: AsyncIterator[bytes], stop: asyncio.Event, timeout_s: float) -> None:
        self._lines, self._stop, self._timeout_s = lines, stop, timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self._send(send))
            others = [group.create_task(self._stop.wait()), group.create_task(_gone(receive))]
            await asyncio.wait([sending, *others], timeout=self._timeout_s, return_when=asyncio.FIRST_COMPLETED)
            for task in (sending, *others):
                task.cancel()
        if not others[1].done() or others[1].cancelled():
            await send({"type": "http.response.body", "body": b""})

    async def _send(self, send: Send) -> None:
        async for text in self._lines:
            await send({"type": "http.response.body", "body": text, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def object_lines(
    kind: str, first: tuple[Event, ...], events: AsyncIterator[Event], query: Query, encoded: Encoded, since: str
) -> AsyncIterator[bytes]:
    """`first` is the state at the beginning, for a watch that did not say from where."""
    for event in first:
        yield encoded.event(event)
    at = since
    while True:
        try:
            async with asyncio.timeout(BOOKMARK_S):
                event = await anext(events)
        except TimeoutError:
            if query.bookmarks:
                yield bookmark(kind, at)
            continue
        except StopAsyncIteration:
            return
        except Compacted as e:
            yield line("ERROR", msgspec.json.encode(failure.status(e)))
            return
        at = event.revision
        if (shown := seen_through(query, event)) is not None:
            yield encoded.event(shown)


def seen_through(query: Query, event: Event) -> Event | None:
    """The change as a watcher with a selector sees it: an object may come into view, and leave it, by an edit.

    Where the state before is not known it counts as in view: a client that never saw the object ignores its end.
    """
    now = query.selects(event.object)
    before = event.old is None or query.selects(event.old)
    match event.type:
        case "MODIFIED" if now and not before:
            return event._replace(type="ADDED")
        case "MODIFIED" if before and not now:
            return event._replace(type="DELETED")
        case _:
            return event if now else None


async def document_lines(view: View, node: str, known: str) -> AsyncIterator[bytes]:
    """The node's document whenever its hash moves away from `known`, a bookmark when nothing did for a while."""
    held = known
    while True:
        epoch = view.wishes.epoch
        name, data = await view.document(node)
        if name != held:
            yield line("MODIFIED" if held else "ADDED", data)
            held = name
        try:
            async with asyncio.timeout(BOOKMARK_S):
                await view.wishes.moved(epoch)
            await asyncio.sleep(SETTLE_S)
        except TimeoutError:
            yield line("BOOKMARK", msgspec.json.encode({"hash": held}))
