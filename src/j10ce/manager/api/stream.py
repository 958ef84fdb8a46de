"""A watch as an HTTP response: JSON lines until the client leaves, its time is over, or the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Final

from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from j10ce.manager.api.query import Query
from j10ce.model.kinds import Object
from j10ce.model.stored import Event

HEADERS: Final = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


class Stream:
    """An ASGI response that sends what `lines` yields.

    `stop` is set when the server ends; a stream then ends between two lines, and its client comes back elsewhere.
    Lines are sent by the request's own task: a manager has ten thousand of these.
    """

    def __init__(self, lines: AsyncGenerator[bytes], stop: asyncio.Event, timeout_s: float) -> None:
        self._lines, self._stop, self._timeout_s = lines, stop, timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        async with asyncio.TaskGroup() as group:
            gone = group.create_task(_gone(receive))
            ends = (gone, group.create_task(self._stop.wait()))
            deadline = asyncio.timeout(self._timeout_s)
            try:
                async with deadline:
                    for end in ends:
                        end.add_done_callback(partial(cut, deadline))
                    await self._send(send)
            except TimeoutError:
                if not deadline.expired():
                    raise
            left = gone.done()
            for end in ends:
                end.cancel()
        if not left:
            await send({"type": "http.response.body", "body": b""})

    async def _send(self, send: Send) -> None:
        async with aclosing(self._lines) as lines:
            async for text in lines:
                await send({"type": "http.response.body", "body": text, "more_body": True})
                del text  # or every watcher would keep its last line until the next one


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def cut(deadline: asyncio.Timeout, end: asyncio.Task[Any]) -> None:
    """Let the time of a stream be over, unless it has ended by itself."""
    if not end.cancelled():
        with suppress(RuntimeError):
            deadline.reschedule(0)


def _last_seen(event: Event) -> Object:
    """As it was when the watcher last saw it, at the revision of the change that took it out of view."""
    last = event.old or event.object
    return replace(last, metadata=replace(last.metadata, resource_version=event.revision))


def left_view(event: Event) -> bool:
    """Whether an object ended for this watcher alone."""
    return event.type == "DELETED" and event.old is not None and event.old.metadata.resource_version == event.revision


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
            return event._replace(type="DELETED", object=_last_seen(event), old=event.object)
        case _:
            return event if now else None
