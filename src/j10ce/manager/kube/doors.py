"""Ways into the manager beside its API, for callers that Kubernetes sends: through the same gate, by other rights."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from j10ce.errors import QosError
from j10ce.http.status import Refusal
from j10ce.manager.access.audit import Audit
from j10ce.manager.access.auth import source
from j10ce.manager.access.gate import Gate, Passage
from j10ce.manager.asgi.status import answer
from j10ce.manager.fairness.rate_limits import Limits
from j10ce.manager.telemetry.metrics import OTHER

SMALL: Final = 64 << 10
CLOSE: Final = {"connection": "close"}  # the rest of the body is not read
Answered: TypeAlias = Callable[[str, str, int, float], None]  # door, verb, code, seconds


class KubernetesDoor(Protocol):
    @property
    def verbs(self) -> Collection[str]: ...

    def check(self, scope: Scope) -> None:
        """Whether this caller may ask, and whether it may ask us; raises QosError."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises QosError before anything was sent."""
        ...


class Doors:
    """Paths that begin with a door's prefix go to it, all others to `app`. `answered` hears of each call of a door.

    Kubernetes' callers have neither tokens nor roles of ours, and nothing of theirs is stored: no share is kept for
    them, and there is nothing to audit. A refusal is a Status, whichever way it was asked.
    """

    def __init__(
        self, app: ASGIApp, doors: Mapping[str, KubernetesDoor], answered: Answered, clock: Callable[[], float]
    ) -> None:
        self._app, self._doors, self._answered = app, doors, answered
        self._gate = Gate(Limits(clock), Audit(None, clock), self._count, lambda _: True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope.get("path", "")
        prefix = next((prefix for prefix in self._doors if path.startswith(prefix)), "")
        if prefix:
            return await self._enter(prefix, scope, receive, send)
        try:
            return await self._app(scope, receive, send)
        except QosError as e:
            return await answer(e)(scope, receive, send)

    async def _enter(self, prefix: str, scope: Scope, receive: Receive, send: Send) -> None:
        door = self._doors[prefix]
        knock = Knock(self._gate, prefix, door, scope, receive, send)
        await self._gate.through(knock, partial(door, scope, receive, send))

    def _count(self, passage: Passage[Any]) -> None:
        self._answered(passage.method, passage.path, passage.code, passage.took_s or 0.0)


class Knock(Passage[Response]):
    """One call at a door; its method is the door, its path the verb."""

    def __init__(
        self, gate: Gate, prefix: str, door: KubernetesDoor, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._door, self._scope, self._receive, self._send = door, scope, receive, send
        verb = scope["path"].removeprefix(prefix)
        known = verb if verb in door.verbs else OTHER
        super().__init__(gate, prefix.strip("/"), known, source(scope), writes=False, anyone=True)

    async def identify(self) -> None:
        self._door.check(self._scope)

    def refusal(self, error: QosError) -> Response:
        return answer(error)

    async def refuse(self, refusal: Response) -> None:
        await refusal(self._scope, self._receive, self._send)


class Bodies:
    """What is posted at a door. A body has at most so many bytes, and so have all that are on their way: beyond that
    small ones still find room, so that whoever sends much, or never ends, keeps nobody else out."""

    def __init__(self, most: int, together: int = sys.maxsize) -> None:
        self._most, self._together = most, together
        self._held = 0

    async def posted(self, scope: Scope, receive: Receive) -> bytes:
        """The body of a POST; raises Refusal."""
        if scope["method"] != "POST":
            raise Refusal(405, f"{scope['method']} is not possible here; use POST", {"allow": "POST"})
        body, more = bytearray(), True
        try:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "the connection broke in the middle of the body")
                piece, more = message.get("body", b""), message.get("more_body", False)
                self._held += len(piece)
                body += piece
                self._check(len(body))
        finally:
            self._held -= len(body)
        return bytes(body)

    def _check(self, size: int) -> None:
        if size > self._most:
            raise Refusal(413, f"the body is larger than {self._most} bytes", CLOSE)
        if size > SMALL and self._held > self._together:
            raise Refusal(429, "too much is being sent here at once; try again", CLOSE)


async def reply(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
