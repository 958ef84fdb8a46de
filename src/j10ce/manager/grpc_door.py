"""Access, limits and audit around every call, as the Gate is around every request of the REST half."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import unquote

import grpc
import structlog

from j10ce.errors import QosError
from j10ce.manager import failure
from j10ce.manager.audit import Audit
from j10ce.manager.auth import Access
from j10ce.manager.failure import Refusal
from j10ce.manager.grpc_failure import refuse
from j10ce.manager.identity import Act, acting
from j10ce.manager.tokens import Ticket
from j10ce.store.revise import Key

log = structlog.get_logger()
Context = grpc.aio.ServicerContext[Any, Any]
T = TypeVar("T")


class Door:
    def __init__(self, access: Access, audit: Audit) -> None:
        self.access, self._audit = access, audit

    async def through(self, context: Context, path: str, answer: Callable[[Ticket], Awaitable[T]]) -> T:
        """What `answer` gives to a caller that we know; every failure ends the call as a rich status."""
        act = Act(source=address(context.peer()))
        with acting(act):
            try:
                ticket = self.access.authenticate(bearer(context), act.source)
                act.caller, act.proof = ticket.caller, ticket.digest
                answered = await answer(ticket)
            except QosError as e:
                failed: QosError = e
            except Exception as e:
                log.exception("call.fail", path=path)
                failed = QosError(f"internal error: {type(e).__name__}")
            else:
                self._audit.record(act, 200, method="gRPC", path=path)
                return answered
        self._audit.record(act, failure.status(failed)["code"], str(failed), method="gRPC", path=path)
        return await refuse(context, failed, Key(act.kind, act.namespace, act.name))

    def check_again(self, ticket: Ticket) -> None:
        """Before every event of a watch: its token may have ended before the watch did."""
        if not self.access.keyring.holds(ticket):
            raise Refusal(401, "Unauthorized", "the token of this watch has ended")


def bearer(context: Context) -> bytes:
    """The `authorization` of the metadata."""
    for name, value in context.invocation_metadata() or ():
        if name == "authorization":
            return value if isinstance(value, bytes) else value.encode()
    return b""


def address(peer: str) -> str:
    """127.0.0.1 of `ipv4:127.0.0.1:5000`, ::1 of `ipv6:%5B::1%5D:5000`."""
    scheme, _, rest = peer.partition(":")
    return unquote(rest).rpartition(":")[0].strip("[]") if scheme in ("ipv4", "ipv6") else peer
