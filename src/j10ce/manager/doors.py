"""Ways into the manager beside its API, for callers that Kubernetes sends: each guards itself."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from j10ce.errors import QosError
from j10ce.manager.failure import Refusal, answer


class Doors:
    """Paths that begin with a door's prefix go to it, all others to `app`."""

    def __init__(self, app: ASGIApp, doors: Mapping[str, ASGIApp]) -> None:
        self._app, self._doors = app, doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope.get("path", "")
        for prefix, door in self._doors.items():
            if path.startswith(prefix):
                try:
                    return await door(scope, receive, send)
                except QosError as e:
                    return await answer(e)(scope, receive, send)
        return await self._app(scope, receive, send)


async def posted(scope: Scope, receive: Receive, *, most: int) -> bytes:
    """The body of a POST; raises Refusal."""
    if scope["method"] != "POST":
        raise Refusal(405, "MethodNotAllowed", f"{scope['method']} is not possible here; use POST", {"allow": "POST"})
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "BadRequest", "the connection broke in the middle of the body")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise Refusal(
                413, "RequestEntityTooLarge", f"the body is larger than {most} bytes", {"connection": "close"}
            )
    return bytes(body)


async def reply(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
