"""Access, limits, traces, metrics and audit around every call, as the Gate is around every request of the REST half."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import grpc
import structlog

from j10ce.errors import QosError
from j10ce.manager import failure
from j10ce.manager.audit import Audit
from j10ce.manager.auth import Access
from j10ce.manager.failure import Refusal
from j10ce.manager.grpc_certificate import certified_by
from j10ce.manager.grpc_failure import refuse
from j10ce.manager.identity import Act, acting
from j10ce.manager.metrics import Metrics
from j10ce.manager.tokens import Ticket
from j10ce.manager.trace import Span, Tracer, Unrecorded
from j10ce.store.revise import Key

log = structlog.get_logger()
Context = grpc.aio.ServicerContext[Any, Any]
T = TypeVar("T")
UNTRACED: Final = ("/Get", "/List", "/Watch", "Status", "reflection")


class Door:
    def __init__(self, access: Access, audit: Audit, metrics: Metrics, tracer: Tracer) -> None:
        self.access, self._audit, self._metrics, self._tracer = access, audit, metrics, tracer

    async def through(self, context: Context, path: str, answer: Callable[[Ticket], Awaitable[T]]) -> T:
        """What `answer` gives to a caller that we know; every failure ends the call as a rich status."""
        began, act = time.perf_counter(), Act(source=address(context.peer()))
        with acting(act), self._traced(context, path) as span:
            outcome = await self._outcome(context, act, path, answer)
            code: int = failure.status(outcome)["code"] if isinstance(outcome, QosError) else 200
            span.note("http.response.status_code", code)
        self._metrics.answered("gRPC", code, None if path.endswith("/Watch") else time.perf_counter() - began)
        self._audit.record(act, code, str(outcome) if code >= 400 else "", method="gRPC", path=path)
        if isinstance(outcome, QosError):
            return await refuse(context, outcome, Key(act.kind, act.namespace, act.name))
        return outcome

    async def _outcome(
        self, context: Context, act: Act, path: str, answer: Callable[[Ticket], Awaitable[T]]
    ) -> T | QosError:
        try:
            shown = next(iter((context.auth_context() or {}).get("x509_pem_cert", ())), None)
            certified = certified_by(shown) if shown else None
            ticket = self.access.authenticate(first(context, "authorization").encode(), act.source, certified)
            act.caller, act.proof = ticket.caller, ticket.digest
            return await answer(ticket)
        except QosError as e:
            return e
        except Exception as e:
            log.exception("call.fail", path=path)
            return QosError(f"internal error: {type(e).__name__}")

    def _traced(self, context: Context, path: str) -> AbstractContextManager[Span]:
        """As over REST: what changes something, and what its caller traces."""
        caller = first(context, "traceparent")
        if caller or not path.endswith(UNTRACED):
            return self._tracer.request(path, caller, {"rpc.system": "grpc", "rpc.method": path})
        return nullcontext(Unrecorded())

    def check_again(self, ticket: Ticket) -> None:
        """Before every event of a watch: its token may have ended before the watch did."""
        if not self.access.keyring.holds(ticket):
            raise Refusal(401, "Unauthorized", "the token of this watch has ended")


def first(context: Context, name: str) -> str:
    """The first value of that name in the caller's metadata; empty when there is none."""
    values = (value for key, value in context.invocation_metadata() or () if key == name)
    return str(next(values, ""))


def address(peer: str) -> str:
    """127.0.0.1 of `ipv4:127.0.0.1:5000`, ::1 of `ipv6:%5B::1%5D:5000`."""
    scheme, _, rest = peer.partition(":")
    return unquote(rest).rpartition(":")[0].strip("[]") if scheme in ("ipv4", "ipv6") else peer
