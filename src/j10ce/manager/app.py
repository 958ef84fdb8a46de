"""The HTTP application: access first, then the routes, with every failure answered as a Status."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from j10ce.errors import NotFound, QosError
from j10ce.manager import discovery, openapi
from j10ce.manager.auth import Access
from j10ce.manager.failure import Refusal, answer
from j10ce.manager.http import BASE, json, not_allowed
from j10ce.manager.metrics import Metrics
from j10ce.manager.rest import Resources
from j10ce.manager.view import View
from j10ce.model.kinds import GROUP

log = structlog.get_logger()
METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"]
Handler = Callable[[Request], Awaitable[Response]]


def build_app(access: Access, resources: Resources, view: View, metrics: Metrics) -> ASGIApp:
    def ready() -> Response:
        if not view.complete:
            raise Refusal(503, "ServiceUnavailable", "objects are still being read")
        return PlainTextResponse("ok\n")

    routes = [
        Route(BASE + "/{path:path}", resources.handle, methods=METHODS),
        _fixed("/healthz", lambda: PlainTextResponse("ok\n")),
        _fixed("/readyz", ready),
        _fixed("/metrics", metrics.render),
        _document("/version", discovery.version()),
        _document("/api", discovery.api()),
        _document("/apis", discovery.group_list()),
        _document(f"/apis/{GROUP}", discovery.group()),
        _document(BASE, discovery.resources()),
        _document("/openapi.json", openapi.document()),
    ]
    return Gate(Router(routes, default=_nothing_there, redirect_slashes=False), access, metrics)


class Gate:
    """Pure ASGI around the routes: one layer, no copies of the request."""

    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics) -> None:
        self._app, self._access, self._metrics = app, access, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"only HTTP is served, not {scope['type']}")
        began = time.perf_counter()
        told = Told(send)
        try:
            self._access.check(scope["path"], scope["headers"])
            await self._app(scope, receive, told)
        except QosError as e:
            await answer(e)(scope, receive, told)
        except Exception as e:
            log.exception("request.fail", method=scope["method"], path=scope["path"])
            if told.code:
                raise
            await answer(QosError(f"internal error: {type(e).__name__}"))(scope, receive, told)
        took_s = None if told.streamed else time.perf_counter() - began
        self._metrics.answered(scope["method"] if scope["method"] in METHODS else "other", told.code, took_s)


class Told:
    """Notes what was sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.code = 0
        self.streamed = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.code = message["status"]
        elif message.get("more_body"):
            self.streamed = True
        await self._send(message)


def _fixed(path: str, make: Callable[[], Response]) -> Route:
    async def handle(request: Request) -> Response:
        if request.method != "GET":
            raise not_allowed(request, ("GET",))
        return make()

    return Route(path, handle, methods=METHODS)


def _document(path: str, content: dict[str, Any]) -> Route:
    data = msgspec.json.encode(content)
    return _fixed(path, lambda: json(data))


async def _nothing_there(scope: Scope, receive: Receive, send: Send) -> None:
    raise NotFound(f"there is no {scope['path']}")
