"""The HTTP application: access first, then the routes, with every failure answered as a Status."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from j10ce.errors import NotFound, QosError, cut
from j10ce.manager.access.audit import Audit
from j10ce.manager.access.auth import OPEN_PATHS, PINGS, READING, Access, source
from j10ce.manager.access.enrolment import Enrolment
from j10ce.manager.access.roles import DISCOVERY, METRICS, enter
from j10ce.manager.access.tokens import Ticket
from j10ce.manager.api.rest import Resources
from j10ce.manager.asgi.requests import BASE, LARGE, headers, json, not_allowed
from j10ce.manager.asgi.status import CUT_OFF, Refusal, answer
from j10ce.manager.documents.view import View
from j10ce.manager.fairness.growth import growth, possible_growth
from j10ce.manager.fairness.large import Body, Large
from j10ce.manager.fairness.metered import Meter, Metered
from j10ce.manager.fairness.rate_limits import share_of
from j10ce.manager.identity import Act, acting
from j10ce.manager.openapi import discovery
from j10ce.manager.openapi import document as openapi
from j10ce.manager.openapi.serve import Documents
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.model.kinds import GROUP

log = structlog.get_logger()
METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"]
TOO_MANY: Final = 429
MUCH_S: Final = 0.01  # of the event loop, for a watch that is not over
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
        *(fixed(path, lambda: PlainTextResponse("ok\n")) for path in ("/healthz", "/livez", *PINGS)),
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
        self._large = Large()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"only HTTP is served, not {scope['type']}")
        began, act = time.perf_counter(), Act(source=source(scope), announce=self._audit.intend)
        told = Told(send, act, scope, self._access, self._audit, self._large)
        with acting(act):
            try:
                await Metered(self._serve(scope, receive, told), told.meter)
            finally:
                told.close()
        took_s = None if told.streamed else time.perf_counter() - began
        self._metrics.answered(scope["method"] if scope["method"] in METHODS else "other", told.code, took_s)

    async def _serve(self, scope: Scope, receive: Receive, told: Told) -> None:
        # The failure is gone by then, and with it all that its frames held: a refusal that waits keeps no body.
        failed = await self._tried(scope, receive, told)
        if failed is None:
            return
        if failed.status_code == TOO_MANY:
            await self._access.limits.hold_back()
        await failed(scope, receive, told)

    async def _tried(self, scope: Scope, receive: Receive, told: Told) -> Response | None:
        """The answer to what failed."""
        try:
            await told.recognised(self._access.check(scope))
            await self._app(scope, partial(told.hear, receive) if told.limited and told.writes else receive, told)
            return None
        except QosError as e:
            told.problem = str(e)
            return answer(e)
        except Exception as e:
            if told.revoked:
                return None
            log.exception("request.fail", method=scope["method"], path=scope["path"])
            if told.code:
                raise
            told.problem = f"internal error: {type(e).__name__}"
            return answer(QosError(told.problem))


class Revoked(Exception):
    """The token of a watch ended before the watch did."""


class Told:
    """Notes what is sent, and lets nothing through that nobody allowed: no answer of a route that asked for no right,
    no watch beyond the caller's share, no line of a watch whose token has ended meanwhile.

    The audit log hears of an answer before the client does, and of a write that never came to an answer."""

    def __init__(self, send: Send, act: Act, scope: Scope, access: Access, audit: Audit, large: Large) -> None:
        self._send, self._act, self._scope, self._access, self._audit = send, act, scope, access, audit
        self._large = large
        self._ticket: Ticket | None = None
        self._body: Body | None = None
        self._size = 0
        self.code = 0
        self.problem = ""
        self.writes = scope["method"] not in READING
        self.meter = Meter(access.limits, act, self.writes)
        self.streamed = self.revoked = self._watching = self._counted = False
        self.limited = False  # whether the caller keeps to a share

    async def recognised(self, ticket: Ticket | None) -> None:
        if ticket is None:
            await self._access.limits.passer_by(self._act.source)
            return
        self._ticket = ticket
        self._act.recognised(ticket.caller, ticket.name, ticket.digest)
        if known := self._scope.get("state", {}).get("known"):
            known(ticket.caller)
        if share_of(ticket.caller, writes=self.writes) is None:
            return
        self.limited = True
        self._access.limits.open_answer(ticket.caller, writes=self.writes)
        self._counted = True
        if self.writes and self._scope["method"] != "DELETE":
            self._access.limits.may_store(ticket.caller)
        await self.meter.turn()

    async def hear(self, receive: Receive) -> Message:
        if self._body is None:
            self._body = Body(self._large, self._act.caller, headers(self._scope).get(b"content-length", b""))
        await self._body.room()
        message = await receive()
        if body := message.get("body"):
            self._body.heard(len(body))
            self._access.limits.received(self._act.caller, len(body))
        if message["type"] == "http.request" and not message.get("more_body"):
            await self.meter.begin()
        return message

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.meter.answered()
            self._begin(message["status"], message.get("headers", ()))
        elif message.get("more_body"):
            self.streamed = self._watching
            if self.meter.took_s > MUCH_S and self._watching:
                await self.meter.rest()
            elif self.meter.took_s > MUCH_S:
                self.meter.pay()
            if self._ticket is not None and not self._access.keyring.holds(self._ticket):
                self.revoked = True
                await self._send({"type": "http.response.body", "body": b""})
                raise Revoked
        await self._send(message)

    def _begin(self, code: int, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        if code < 400 and not self._act.verb and self._scope["path"] not in OPEN_PATHS:
            raise RuntimeError("this route asks for no right: call roles.enter first")
        if code < 400 and self._act.verb == "watch":
            self._access.limits.open_watch(self._act.caller)
            self._watching = True
            if self._counted:
                self._release()
        elif code < 400 and self._counted and not self.writes:
            self._hold(headers)
        self.code = code
        self._audit.record(self._act, code, self.problem, method=self._scope["method"], path=self._scope["path"])
        if not self.limited:
            return
        if code < 400 and self.writes and not self._act.dry:
            self._access.limits.stored(self._act.caller, growth(self._act))
        elif code == CUT_OFF:
            self._access.limits.stored(self._act.caller, possible_growth(self._act))

    def _hold(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        size = next((int(value) for name, value in headers if name == b"content-length"), 0)
        if size > LARGE:
            self._access.limits.size_answer(self._act.caller, size, writes=self.writes)
            self._size = size

    def _release(self) -> None:
        self._counted = False
        self._access.limits.close_answer(self._act.caller, self._size, writes=self.writes)

    def close(self) -> None:
        if self._body is not None:
            self._body.close()
        if self._counted:
            self._release()
        self.meter.settle()
        if self._watching:
            self._access.limits.close_watch(self._act.caller)
        if not self.code and self._act.announced:
            self._begin(CUT_OFF)


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
