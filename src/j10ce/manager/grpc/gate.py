"""The gate for gRPC calls: who asks is read from their metadata and certificate, a refusal is a rich status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from google.protobuf.message import Message
from grpc import StatusCode

from j10ce.errors import QosError, Unreachable
from j10ce.manager.access.audit import Audit
from j10ce.manager.access.auth import Access
from j10ce.manager.access.gate import Gate, Passage, gate_of
from j10ce.manager.access.tokens import Ticket
from j10ce.manager.grpc.certificate import certified_by
from j10ce.manager.grpc.codec import serialised
from j10ce.manager.grpc.status import Abort, abort_of, refuse
from j10ce.manager.grpc.visit import Context, M, Visit, checked_size, handler, send
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.manager.telemetry.trace import UNRECORDED, Span, Tracer
from j10ce.model.stored import Key

T = TypeVar("T")
METHOD: Final = "gRPC"  # as metrics and the audit log call it
TIRESOME: Final = "too many attempts without a valid token from your address"
COPIES: Final = 2  # of an answer that nobody has read: ours, and one of gRPC's core
WATCHES: Final = ("/Watch", "reflection")
READING: Final = ("/Get", "/List", *WATCHES)
UNTRACED: Final = (*READING, "Status")


class Door:
    def __init__(self, access: Access, audit: Audit, metrics: Metrics, tracer: Tracer) -> None:
        self.access, self._tracer = access, tracer
        self._gate = gate_of(access, audit, metrics)

    def source(self, context: Context) -> str:
        """The address a call came from."""
        return address(context.peer())

    async def through(self, context: Context, path: str, answer: Callable[[Visit], Awaitable[T]]) -> T:
        """What `answer` gives to a caller that we know; every failure ends the call as a rich status."""
        if self._is_tiresome(context):
            await context.abort(StatusCode.RESOURCE_EXHAUSTED, TIRESOME)
        call = GatedCall(self._gate, context, self.access, path)
        with self._traced(context, path) as span:
            done = await self._gate.through(call, partial(call.answered, answer))
            span.note("http.response.status_code", call.code)
        if call.refused is not None:
            await context.abort(*call.refused)
        return done  # type: ignore[return-value]  # None is what some answers are

    def _is_tiresome(self, context: Context) -> bool:
        """Whether a stranger asked too often: it gets 429 before anything is made for its call. Calls that are begun
        and given up by the thousand have no other bound than what each of them costs us."""
        if not self.access.limits.is_tired_of(self.source(context)):
            return False
        shown = (context.auth_context() or {}).get("x509_pem_cert")
        return not shown and not self.access.knows(first(context, "authorization").encode())

    def unary(self, path: str, request: type[M], answer: Callable[[M], Awaitable[Message | bytes]]) -> Any:
        """A call of one message and one answer."""

        async def answered(visit: Visit) -> bytes:
            """As bytes: the message itself takes several times as much, for as long as nobody reads the answer."""
            message = await answer(await visit.read(request))
            size = 0 if visit.passage.writes else checked_size(message)
            visit.passage.begin(200, size=COPIES * size)
            return serialised(message)

        async def handle(context: Context) -> None:
            data = await self.through(context, path, answered)
            try:
                await send(context, data)
            except Unreachable as e:
                await refuse(context, e)

        return handler(handle)

    def watch(self, path: str, answer: Callable[[Visit], Awaitable[None]]) -> Any:
        """A call of one message and many answers, which `answer` reads and sends."""

        async def handle(context: Context) -> None:
            await self.through(context, path, answer)

        return handler(handle)

    def _traced(self, context: Context, path: str) -> AbstractContextManager[Span]:
        """As over REST: what changes something, and what its caller traces."""
        caller = first(context, "traceparent")
        if caller or not path.endswith(UNTRACED):
            return self._tracer.request(path, caller, {"rpc.system": "grpc", "rpc.method": path})
        return UNRECORDED


class GatedCall(Passage[Abort]):
    """One gRPC call."""

    def __init__(self, gate: Gate, context: Context, access: Access, path: str) -> None:
        self._context, self._access = context, access
        self.refused: Abort | None = None
        writes, deletes, watches = not path.endswith(READING), path.endswith("/Delete"), path.endswith(WATCHES)
        source = address(context.peer())
        super().__init__(gate, METHOD, path, source, writes=writes, deletes=deletes, watches=watches)
        # An answer that nobody reads stays its caller's until the call is over.
        context.add_done_callback(lambda _: self.release())  # type: ignore[arg-type]  # its stub asks for a class

    async def identify(self) -> Ticket:
        shown = next(iter((self._context.auth_context() or {}).get("x509_pem_cert", ())), None)
        certified = certified_by(shown) if shown else None
        given = first(self._context, "authorization").encode()
        return self._access.authenticate(given, self.act.source, certified, writes=self.writes)

    async def answered(self, answer: Callable[[Visit], Awaitable[T]]) -> T:
        return await answer(Visit(self._context, self, self._access.limits, self._access.rooms))

    def refusal(self, error: QosError) -> Abort:
        return abort_of(error, Key(self.act.kind, self.act.namespace, self.act.name))

    async def refuse(self, refusal: Abort) -> None:
        """The call is aborted when all else is over: an abort is raised, and a refusal is no fault of ours to trace."""
        self.refused = refusal


def first(context: Context, name: str) -> str:
    """The first value of that name in the caller's metadata; empty when there is none."""
    values = (value for key, value in context.invocation_metadata() or () if key == name)
    return str(next(values, ""))


def address(peer: str) -> str:
    """127.0.0.1 of `ipv4:127.0.0.1:5000`, ::1 of `ipv6:%5B::1%5D:5000`."""
    scheme, _, rest = peer.partition(":")
    return unquote(rest).rpartition(":")[0].strip("[]") if scheme in ("ipv4", "ipv6") else peer
