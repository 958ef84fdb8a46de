"""The seam of tracing: from a request at the API through the store to the node that carried it out.

Without a collector nothing is traced and nothing is imported. Worth a span is what changes something: a read, or the
report that every node sends every ten seconds, is traced only when its caller asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from j10ce.errors import Unsupported
from j10ce.model.kinds import AppliedChange

HEADER: Final = b"traceparent"
READS: Final = ("GET", "HEAD", "OPTIONS", "TRACE")
ENVIRONMENT: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class Span(Protocol):
    """One step, while it goes on."""

    @property
    def trace(self) -> str:
        """W3C trace context of the step, for those who come after it; empty when it is not recorded."""
        ...

    def note(self, name: str, value: str | int) -> None: ...


class Tracer(Protocol):
    def request(self, name: str, caller: str, facts: Mapping[str, str]) -> AbstractContextManager[Span]:
        """Around a request; `caller` is the trace context that it came with, or empty. An error ends it as failed."""
        ...

    def step(self, name: str, facts: Mapping[str, str]) -> AbstractContextManager[Span]:
        """Around a part of the step that this task is in; outside of any it is not recorded."""
        ...

    def applied(self, node: str, change: AppliedChange) -> None:
        """A node has carried out what a request asked for."""
        ...

    def close(self) -> None:
        """Send what is not sent yet."""
        ...


class UnrecordedSpan:
    trace = ""

    def note(self, name: str, value: str | int) -> None:
        """Nobody asks."""


UNRECORDED: Final = nullcontext(UnrecordedSpan())


class Silent:
    """Traces nothing."""

    def request(self, name: str, caller: str, facts: Mapping[str, str]) -> AbstractContextManager[Span]:
        return UNRECORDED

    def step(self, name: str, facts: Mapping[str, str]) -> AbstractContextManager[Span]:
        return UNRECORDED

    def applied(self, node: str, change: AppliedChange) -> None:
        """Nobody asks."""

    def close(self) -> None:
        """There is nothing to send."""


_: Tracer = Silent()


def open_tracer(endpoint: str, identity: str, environ: Mapping[str, str] = os.environ) -> Tracer:
    """`endpoint` is an OTLP/HTTP collector such as http://127.0.0.1:4318; the OTEL_* variables name one as well."""
    named = endpoint or any(environ.get(name) for name in ENVIRONMENT)
    if not named or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return Silent()
    try:
        from j10ce.manager.telemetry.otel import OtelTracer
    except ImportError:
        raise Unsupported("tracing", needs="the extra otel: pip install 'j10ce-qos[otel]'") from None
    return OtelTracer(endpoint, identity)


def traced(app: ASGIApp, tracer: Tracer) -> ASGIApp:
    """Costs nothing where nothing is traced."""
    return app if isinstance(tracer, Silent) else Traced(app, tracer)


class Traced:
    """An ASGI application whose requests are traced."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        self._app, self._tracer = app, tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = next((v.decode("latin-1") for k, v in scope.get("headers", ()) if k == HEADER), "")
        if scope["type"] != "http" or not (caller or worthwhile(scope["method"], scope["path"])):
            await self._app(scope, receive, send)
            return
        method, path = scope["method"], scope["path"]
        with self._tracer.request(
            titled(method, path), caller, {"http.request.method": method, "url.path": path}
        ) as span:

            async def send_noting_status(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.note("http.response.status_code", message["status"])
                await send(message)

            with structlog.contextvars.bound_contextvars(**({"trace": span.trace[3:35]} if span.trace else {})):
                await self._app(scope, receive, send_noting_status)


def worthwhile(method: str, path: str) -> bool:
    return method not in READS and not path.endswith("/status")


def titled(method: str, path: str) -> str:
    """A name that all requests of one sort share: no names of objects in it."""
    steps = path.strip("/").split("/")
    rest = steps[3:] if steps[:1] == ["apis"] else steps
    if rest[:1] == ["namespaces"]:
        rest = rest[2:]
    return f"{method} {rest[0] if rest else path}"
