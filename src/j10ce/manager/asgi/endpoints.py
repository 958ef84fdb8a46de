"""Ways into the manager beside its API, for callers that Kubernetes sends: each guards itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from time import perf_counter
from typing import Final, Protocol, TypeAlias

from starlette.types import ASGIApp, Receive, Scope, Send

from j10ce.errors import QosError
from j10ce.manager.asgi.status import Refusal, answer

SMALL: Final = 64 << 10
CLOSE: Final = {"connection": "close"}  # the rest of the body is not read
OTHER: Final = "other"  # whatever a stranger may write must not become a series of its own
Answered: TypeAlias = Callable[[str, str, int, float], None]  # door, verb, code, seconds


class Door(Protocol):
    @property
    def verbs(self) -> Collection[str]: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises QosError before anything was sent."""
        ...


class Doors:
    """Paths that begin with a door's prefix go to it, all others to `app`. `answered` hears of each call of a door."""

    def __init__(self, app: ASGIApp, doors: Mapping[str, Door], answered: Answered) -> None:
        self._app, self._doors, self._answered = app, doors, answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope.get("path", "")
        for prefix, door in self._doors.items():
            if path.startswith(prefix):
                return await self._enter(prefix, door, scope, receive, send)
        return await self._app(scope, receive, send)

    async def _enter(self, prefix: str, door: Door, scope: Scope, receive: Receive, send: Send) -> None:
        began, code, verb = perf_counter(), 500, scope["path"].removeprefix(prefix)
        try:
            await door(scope, receive, send)
            code = 200
        except QosError as e:
            told = answer(e)
            code = told.status_code
            await told(scope, receive, send)
        finally:
            known = verb if verb in door.verbs else OTHER
            self._answered(prefix.strip("/"), known, code, perf_counter() - began)


class Bodies:
    """What is posted at a door. A body has at most so many bytes, and so have all that are on their way: beyond that
    small ones still find room, so that whoever sends much, or never ends, keeps nobody else out."""

    def __init__(self, most: int, together: int = sys.maxsize) -> None:
        self._most, self._together = most, together
        self._held = 0

    async def posted(self, scope: Scope, receive: Receive) -> bytes:
        """The body of a POST; raises Refusal."""
        if scope["method"] != "POST":
            told = f"{scope['method']} is not possible here; use POST"
            raise Refusal(405, "MethodNotAllowed", told, {"allow": "POST"})
        body, more = bytearray(), True
        try:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "BadRequest", "the connection broke in the middle of the body")
                piece, more = message.get("body", b""), message.get("more_body", False)
                self._held += len(piece)
                body += piece
                self._check(len(body))
        finally:
            self._held -= len(body)
        return bytes(body)

    def _check(self, size: int) -> None:
        if size > self._most:
            raise Refusal(413, "RequestEntityTooLarge", f"the body is larger than {self._most} bytes", CLOSE)
        if size > SMALL and self._held > self._together:
            raise Refusal(429, "TooManyRequests", "too much is being sent here at once; try again", CLOSE)


async def reply(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
