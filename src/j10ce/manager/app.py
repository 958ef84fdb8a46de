"""The HTTP application: access first, then the routes, with every failure answered as a Status."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from j10ce.errors import NotFound, QosError, cut
from j10ce.http.status import Refusal
from j10ce.manager.access.audit import Audit
from j10ce.manager.access.auth import OPEN_PATHS, PINGS, READING, Access, source
from j10ce.manager.access.enrolment import Enrolment
from j10ce.manager.access.gate import Gate, Passage, gate_of
from j10ce.manager.access.roles import DISCOVERY, METRICS, enter
from j10ce.manager.access.tokens import Ticket
from j10ce.manager.api.rest import ResourceRoutes
from j10ce.manager.asgi.requests import BASE, LARGE, headers, json, not_allowed
from j10ce.manager.asgi.status import answer
from j10ce.manager.documents.view import View
from j10ce.manager.fairness.large import Large, RequestBody
from j10ce.manager.openapi import discovery
from j10ce.manager.openapi import document as openapi
from j10ce.manager.openapi.serve import ApiDocuments
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.model.kinds import GROUP

METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"]
OBJECTS: Final = f"{BASE}/"
PERHAPS_BESIDE: Final = re.compile("/(?:nodecredentials|placements)(?:/|$)")


def build_app(
    access: Access, resources: ResourceRoutes, view: View, metrics: Metrics, audit: Audit, beside: Sequence[Route] = ()
) -> ASGIApp:
    """`beside` are routes of their own, such as `place`."""

    def ready() -> Response:
        if not view.complete or not access.keyring.synced.is_set():
            raise Refusal(503, "objects are still being read")
        return PlainTextResponse("ok\n")

    metrics.audit_lost.set_function(lambda: audit.lost)
    enrolment = Enrolment(access.keyring)
    routes = [
        Route(BASE + "/nodecredentials", enrolment.handle_issue, methods=METHODS),
        Route(BASE + "/nodecredentials/{node}", enrolment.handle_show, methods=METHODS),
        *beside,
        Route(BASE + "/{path:path}", resources.route, methods=METHODS),
        *(fixed(path, lambda: PlainTextResponse("ok\n")) for path in ("/healthz", "/livez", *PINGS)),
        fixed("/readyz", ready),
        fixed("/metrics", metrics.render, METRICS),
        document("/version", discovery.version(), ""),
        Route("/api", discovery.core, methods=METHODS),
        Route("/apis", discovery.groups, methods=METHODS),
        document(f"/apis/{GROUP}", discovery.group()),
        document(BASE, discovery.resources()),
        document("/openapi.json", openapi.document()),
        Route("/openapi/{path:path}", ApiDocuments().handle, methods=METHODS),
    ]
    router = Router(routes, default=_nothing_there, redirect_slashes=False)
    return Entrance(ShortWay(router, resources), access, gate_of(access, audit, metrics))


class ShortWay:
    """Nearly every request is for an object of a stored kind: those do not walk the table of routes."""

    def __init__(self, router: ASGIApp, resources: ResourceRoutes) -> None:
        self._router, self._resources = router, resources

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if not path.startswith(OBJECTS) or PERHAPS_BESIDE.search(path):
            return await self._router(scope, receive, send)
        response = await self._resources.handle(Request(scope, receive, send), path[len(OBJECTS) :])
        return await response(scope, receive, send)


class Entrance:
    """The gate around the routes, as pure ASGI: one layer, no copies of the request."""

    def __init__(self, app: ASGIApp, access: Access, gate: Gate) -> None:
        self._app, self._access, self._gate, self._large = app, access, gate, access.rooms.large

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"only HTTP is served, not {scope['type']}")
        exchange = Exchange(scope, receive, send, self._access, self._gate, self._large)
        try:
            await self._gate.through(exchange, partial(exchange.serve, self._app))
        finally:
            exchange.close()


class Revoked(Exception):
    """The token of an answer ended before the answer did."""


class Exchange(Passage[Response]):
    """One HTTP request: what it sends is weighed as it arrives, and of a long answer no piece goes to a caller whose
    token has ended."""

    __slots__ = ("_access", "_body", "_large", "_receive", "_scope", "_send")

    def __init__(self, scope: Scope, receive: Receive, send: Send, access: Access, gate: Gate, large: Large) -> None:
        self._scope, self._receive, self._send, self._access, self._large = scope, receive, send, access, large
        self._body: RequestBody | None = None
        method, path, writes = scope["method"], scope["path"], scope["method"] not in READING
        deletes, anyone = method == "DELETE", path in OPEN_PATHS
        super().__init__(gate, method, path, source(scope), writes=writes, deletes=deletes, anyone=anyone)

    async def identify(self) -> Ticket | None:
        ticket = self._access.check(self._scope)
        if ticket is None:
            await self._access.limits.passer_by(self.act.source)
        elif known := self._scope.get("state", {}).get("known"):
            known(ticket.caller)
        return ticket

    async def serve(self, app: ASGIApp) -> None:
        weighed = self.limited and self.writes
        try:
            await app(self._scope, self.receive if weighed else self._receive, self.send)
        except Revoked:
            return  # its answer was ended where that was noticed

    def refusal(self, error: QosError) -> Response:
        return answer(error)

    async def refuse(self, refusal: Response) -> None:
        self.meter.answered()
        await refusal(self._scope, self._receive, self._send)

    async def receive(self) -> Message:
        caller = self.act.caller
        if self._body is None:
            self._body = RequestBody(self._large, caller, headers(self._scope).get(b"content-length", b""))
        await self._body.room()
        message = await self._receive()
        if body := message.get("body"):
            self._body.heard(len(body))
            self._access.limits.received(caller, len(body))
        if message["type"] == "http.request" and not message.get("more_body"):
            await self.meter.begin()
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.meter.answered()
            size = _large_size(message.get("headers", ())) if self.limited else 0
            self.begin(message["status"], size=size)
        elif message.get("more_body") and not await self.goes_on():
            await self._send({"type": "http.response.body", "body": b""})
            raise Revoked
        await self._send(message)

    def close(self) -> None:
        if self._body is not None:
            self._body.close()
        self.release()


def _large_size(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """Of an answer that its connection does not take at once; 0 for others."""
    for name, value in headers:
        if name == b"content-length":
            return size if (size := int(value)) > LARGE else 0
    return 0


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
    raise NotFound(f"there is no {cut(scope['path'])}")
