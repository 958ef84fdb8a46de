"""Access, limits, traces, metrics and audit around every call, as the Gate is around every request of the REST half."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import structlog
from google.protobuf.message import Message
from grpc import StatusCode

from j10ce.errors import QosError, Unreachable
from j10ce.manager.access.audit import Audit
from j10ce.manager.access.auth import Access
from j10ce.manager.asgi import status
from j10ce.manager.asgi.status import CUT_OFF, Refusal
from j10ce.manager.fairness.growth import growth, possible_growth
from j10ce.manager.fairness.metered import Meter, Metered
from j10ce.manager.grpc.certificate import certified_by
from j10ce.manager.grpc.status import refuse
from j10ce.manager.grpc.visit import Context, M, Opened, Visit, handler, send
from j10ce.manager.identity import Act, acting, current
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.manager.telemetry.trace import Span, Tracer, Unrecorded
from j10ce.model.stored import Key

log = structlog.get_logger()
T = TypeVar("T")
TOO_MANY: Final = 429
TIRESOME: Final = "too many attempts without a valid token from your address"
WATCHES: Final = ("/Watch", "reflection")
READING: Final = ("/Get", "/List", *WATCHES)
UNTRACED: Final = (*READING, "Status")


class Door:
    def __init__(self, access: Access, audit: Audit, metrics: Metrics, tracer: Tracer) -> None:
        self.access, self._audit, self._metrics, self._tracer = access, audit, metrics, tracer

    def source(self, context: Context) -> str:
        """The address a call came from."""
        return address(context.peer())

    async def through(self, context: Context, path: str, answer: Callable[[Visit], Awaitable[T]]) -> T:
        """What `answer` gives to a caller that we know; every failure ends the call as a rich status."""
        if self._is_tiresome(context):
            await context.abort(StatusCode.RESOURCE_EXHAUSTED, TIRESOME)
        began, act = time.perf_counter(), Act(source=self.source(context), announce=self._audit.intend)
        with acting(act), self._traced(context, path) as span:
            meter = Meter(self.access.limits, act, writes(path))
            try:
                outcome = await Metered(self._outcome(context, act, path, answer, meter), meter)
            except asyncio.CancelledError:  # its caller gave up; what it asked for may be on its way to the disk
                self._audit.record(act, CUT_OFF, method="gRPC", path=path)
                raise
            finally:
                meter.settle()
            code: int = status.status(outcome)["code"] if isinstance(outcome, QosError) else 200
            span.note("http.response.status_code", code)
        self._metrics.answered("gRPC", code, None if path.endswith(WATCHES) else time.perf_counter() - began)
        self._audit.record(act, code, str(outcome) if code >= 400 else "", method="gRPC", path=path)
        if isinstance(outcome, QosError):
            return await refuse(context, outcome, Key(act.kind, act.namespace, act.name))
        return outcome

    def _is_tiresome(self, context: Context) -> bool:
        """Whether a stranger asked too often: it is told so before anything is made for its call. Calls that are begun
        and given up by the thousand have no other bound than what each of them costs us."""
        if not self.access.limits.is_tired_of(self.source(context)):
            return False
        shown = (context.auth_context() or {}).get("x509_pem_cert")
        return not shown and not self.access.knows(first(context, "authorization").encode())

    def unary(self, path: str, request: type[M], answer: Callable[[M], Awaitable[Message]]) -> Any:
        """A call of one message and one answer."""

        async def answered(visit: Visit) -> Message:
            return await answer(await visit.read(request))

        async def handle(context: Context) -> None:
            told = await self.through(context, path, answered)
            try:
                await send(context, told)
            except Unreachable as e:
                await refuse(context, e)

        return handler(handle)

    def watch(self, path: str, answer: Callable[[Visit], Awaitable[None]]) -> Any:
        """A call of one message and many answers, which `answer` reads and sends."""

        async def handle(context: Context) -> None:
            await self.through(context, path, answer)

        return handler(handle)

    async def _outcome(
        self, context: Context, act: Act, path: str, answer: Callable[[Visit], Awaitable[T]], meter: Meter
    ) -> T | QosError:
        try:
            shown = next(iter((context.auth_context() or {}).get("x509_pem_cert", ())), None)
            certified = certified_by(shown) if shown else None
            given = first(context, "authorization").encode()
            ticket = self.access.authenticate(given, act.source, certified, writes=writes(path))
            act.recognised(ticket.caller, ticket.name, ticket.digest)
            return await self._answered(Visit(context, ticket, self.access, meter), path, answer)
        except QosError as e:
            if isinstance(e, Refusal) and e.code == TOO_MANY:
                await self.access.limits.hold_back()
            return e
        except Exception as e:
            log.exception("call.fail", path=path)
            return QosError(f"internal error: {type(e).__name__}")

    async def _answered(self, visit: Visit, path: str, answer: Callable[[Visit], Awaitable[T]]) -> T:
        """Within the caller's share of open answers; a watch is counted as one instead."""
        limits, caller, changes = self.access.limits, visit.ticket.caller, writes(path)
        if path.endswith(WATCHES):
            with limits.watch(caller):
                await visit.meter.turn()
                return await answer(visit)
        opened = Opened(limits, caller, changes)
        visit.context.add_done_callback(opened.close)  # type: ignore[arg-type]  # its stub asks for a class
        try:
            if changes and not path.endswith("/Delete"):
                limits.may_store(caller)
            await visit.meter.turn()
            done = await answer(visit)
            if changes and not current().dry:
                limits.stored(caller, growth(current()))
            if isinstance(done, Message):
                opened.weigh(done.ByteSize())
            return done
        except asyncio.CancelledError:
            limits.stored(caller, possible_growth(current()))
            raise

    def _traced(self, context: Context, path: str) -> AbstractContextManager[Span]:
        """As over REST: what changes something, and what its caller traces."""
        caller = first(context, "traceparent")
        if caller or not path.endswith(UNTRACED):
            return self._tracer.request(path, caller, {"rpc.system": "grpc", "rpc.method": path})
        return nullcontext(Unrecorded())


def writes(path: str) -> bool:
    return not path.endswith(READING)


def first(context: Context, name: str) -> str:
    """The first value of that name in the caller's metadata; empty when there is none."""
    values = (value for key, value in context.invocation_metadata() or () if key == name)
    return str(next(values, ""))


def address(peer: str) -> str:
    """127.0.0.1 of `ipv4:127.0.0.1:5000`, ::1 of `ipv6:%5B::1%5D:5000`."""
    scheme, _, rest = peer.partition(":")
    return unquote(rest).rpartition(":")[0].strip("[]") if scheme in ("ipv4", "ipv6") else peer
