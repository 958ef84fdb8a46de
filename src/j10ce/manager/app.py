"""The HTTP application: access first, then the routes, with every failure answered as a Status."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from j10ce.errors import NotFound, QosError
from j10ce.manager import discovery, openapi
from j10ce.manager.audit import Audit
from j10ce.manager.auth import OPEN_PATHS, Access, source
from j10ce.manager.enrolment import Enrolment
from j10ce.manager.failure import Refusal, answer
from j10ce.manager.http import BASE, json, not_allowed
from j10ce.manager.identity import Act, acting
from j10ce.manager.metrics import Metrics
from j10ce.manager.openapi_serve import Documents
from j10ce.manager.rest import Resources
from j10ce.manager.roles import DISCOVERY, METRICS, enter
from j10ce.manager.tokens import Ticket
from j10ce.manager.view import View
from j10ce.model.kinds import GROUP

log = structlog.get_logger()
METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"]
OBJECTS: Final = f"{BASE}/"
PERHAPS_BESIDE: Final = re.compile("/(?:nodecredentials|placements)(?:/|$)")
Handler = Callable[[Request], Awaitable[Response]]


def build_app(
    access: Access, resources: Resources, view: View, metrics: Metrics, audit: Audit, beside: Sequence[Route] = ()
) -> ASGIApp:
    """`beside` are routes of their own, such as `place`."""

    def ready() -> Response:
        if not view.complete or not access.keyring.synced.is_set():
            raise Refusal(503, "ServiceUnavailable", "objects are still being read")
        return PlainTextResponse("ok\n")

    metrics.audit_lost.set_function(lambda: audit.lost)
    enrolment = Enrolment(access.keyring)
    routes = [
        Route(BASE + "/nodecredentials", enrolment.handle_issue, methods=METHODS),
        Route(BASE + "/nodecredentials/{node}", enrolment.handle_show, methods=METHODS),
        *beside,
        Route(BASE + "/{path:path}", resources.route, methods=METHODS),
        fixed("/healthz", lambda: PlainTextResponse("ok\n")),
        fixed("/readyz", ready),
        fixed("/metrics", metrics.render, METRICS),
        document("/version", discovery.version(), ""),
        Route("/api", discovery.core, methods=METHODS),
        Route("/apis", discovery.groups, methods=METHODS),
        document(f"/apis/{GROUP}", discovery.group()),
        document(BASE, discovery.resources()),
        document("/openapi.json", openapi.document()),
        Route("/openapi/{path:path}", Documents().handle, methods=METHODS),
    ]
    router = Router(routes, default=_nothing_there, redirect_slashes=False)
    return Gate(ShortWay(router, resources), access, metrics, audit)


class ShortWay:
    """Nearly every request is for an object of a stored kind: those do not walk the table of routes."""

    def __init__(self, router: ASGIApp, resources: Resources) -> None:
        self._router, self._resources = router, resources

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if not path.startswith(OBJECTS) or PERHAPS_BESIDE.search(path):
            return await self._router(scope, receive, send)
        response = await self._resources.handle(Request(scope, receive, send), path[len(OBJECTS) :])
        return await response(scope, receive, send)


class Gate:
    """Pure ASGI around the routes: one layer, no copies of the request."""

    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics, audit: Audit) -> None:
        self._app, self._access, self._metrics, self._audit = app, access, metrics, audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"only HTTP is served, not {scope['type']}")
        began, act = time.perf_counter(), Act(source=source(scope))
        told = Told(send, act, scope, self._access, self._audit)
        with acting(act):
            try:
                await self._serve(scope, receive, told)
            finally:
                told.close()
        took_s = None if told.streamed else time.perf_counter() - began
        self._metrics.answered(scope["method"] if scope["method"] in METHODS else "other", told.code, took_s)

    async def _serve(self, scope: Scope, receive: Receive, told: Told) -> None:
        try:
            told.recognised(self._access.check(scope))
            await self._app(scope, receive, told)
        except QosError as e:
            told.problem = str(e)
            await answer(e)(scope, receive, told)
        except Exception as e:
            if told.revoked:
                return
            log.exception("request.fail", method=scope["method"], path=scope["path"])
            if told.code:
                raise
            told.problem = f"internal error: {type(e).__name__}"
            await answer(QosError(told.problem))(scope, receive, told)


class Revoked(Exception):
    """The token of a watch ended before the watch did."""


class Told:
    """Notes what is sent, and lets nothing through that nobody allowed: no answer of a route that asked for no right,
    no watch beyond the caller's share, no line of a watch whose token has ended meanwhile.

    The audit log hears of an answer before the client does."""

    def __init__(self, send: Send, act: Act, scope: Scope, access: Access, audit: Audit) -> None:
        self._send, self._act, self._scope, self._access, self._audit = send, act, scope, access, audit
        self._ticket: Ticket | None = None
        self.code = 0
        self.problem = ""
        self.streamed = self.revoked = self._watching = False

    def recognised(self, ticket: Ticket | None) -> None:
        if ticket is not None:
            self._ticket = ticket
            self._act.caller, self._act.proof = ticket.caller, ticket.digest

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begin(message["status"])
        elif message.get("more_body"):
            self.streamed = True
            if self._ticket is not None and not self._access.keyring.holds(self._ticket):
                self.revoked = True
                await self._send({"type": "http.response.body", "body": b""})
                raise Revoked
        await self._send(message)

    def _begin(self, code: int) -> None:
        if code < 400 and not self._act.verb and self._scope["path"] not in OPEN_PATHS:
            raise RuntimeError("this route asks for no right: call roles.enter first")
        if code < 400 and self._act.verb == "watch":
            self._access.limits.open_watch(self._act.caller)
            self._watching = True
        self.code = code
        self._audit.record(self._act, code, self.problem, method=self._scope["method"], path=self._scope["path"])

    def close(self) -> None:
        if self._watching:
            self._access.limits.close_watch(self._act.caller)


def fixed(path: str, make: Callable[[], Response], kind: str = "") -> Route:
    """`kind`: what the caller must be allowed to get; nothing for what anyone may."""

    async def handle(request: Request) -> Response:
        if kind:
            enter("get", kind)
        if request.method != "GET":
            raise not_allowed(request, ("GET",))
        return make()

    return Route(path, handle, methods=METHODS)


def document(path: str, content: dict[str, Any], kind: str = DISCOVERY) -> Route:
    data = msgspec.json.encode(content)
    return fixed(path, lambda: json(data), kind)


async def _nothing_there(scope: Scope, receive: Receive, send: Send) -> None:
    raise NotFound(f"there is no {scope['path']}")
