"""One call of someone who is known: its message, which is read after that, its answers, and what they cost.

Every call is registered as one of streams, also where there is one message each way: on the wire they are alike, and
gRPC hands over the others only after it has read their message, of whomever, for as long as that takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from j10ce.errors import Finding, Malformed, Unreachable
from j10ce.http.status import Refusal
from j10ce.manager.access.gate import Passage
from j10ce.manager.asgi.requests import most_bytes
from j10ce.manager.connection import ARRIVAL_S, STALL_S
from j10ce.manager.fairness.rate_limits import Limits
from j10ce.manager.grpc.codec import serialised

Context = grpc.aio.ServicerContext[Any, Any]
M = TypeVar("M", bound=Message)
MOST_ANSWER: Final = 64 * 1024 * 1024  # bytes of one message: a longer list is asked for in pages
LEAST_PER_S: Final = 64 * 1024  # of an answer, after STALL_S, that its reader takes


class Visit(NamedTuple):
    context: Context
    passage: Passage[Any]
    limits: Limits

    async def read(self, request: type[M]) -> M:
        """The message; raises Refusal 408, 413 or 429, or Malformed."""
        message = await self.read_next(request)
        if message is None:
            raise Malformed([Finding("", None, "there is none", f"send a {request.__name__}")], "message")
        return message

    async def read_next(self, request: type[M]) -> M | None:
        """None where there is no more."""
        data = await arrived(self.context, ARRIVAL_S)
        if data is None:
            return None
        caller = self.passage.act.caller
        if len(data) > most_bytes(caller):
            raise Refusal(413, f"the message is larger than {most_bytes(caller)} bytes")
        self.limits.received(caller, len(data))
        await self.passage.meter.begin()
        return parsed(request, data)

    async def tell(self, message: Message | None) -> None:
        """One of many answers, or none; raises Refusal 401 where the caller's token has ended before the watch did."""
        if not await self.passage.goes_on():
            raise Refusal(401, "the token of this watch has ended")
        if message is not None:
            await send(self.context, message)


async def arrived(context: Context, patience_s: float) -> bytes | None:
    """The bytes of a message, None where no more is sent; raises Refusal 408."""
    try:
        async with asyncio.timeout(patience_s):
            data = await context.read()
    except TimeoutError:
        raise Refusal(408, f"the message of this call did not arrive in {patience_s:g} s") from None
    return None if data is grpc.aio.EOF else data


def parsed(request: type[M], data: bytes) -> M:
    try:
        return request.FromString(data)
    except DecodeError:
        raise Malformed([Finding("", None, f"not a {request.__name__}")], "message") from None


async def send(context: Context, message: Message) -> None:
    """Raises Unreachable where nobody reads it."""
    patience_s = STALL_S + message.ByteSize() / LEAST_PER_S
    try:
        async with asyncio.timeout(patience_s):
            await context.write(message)
    except TimeoutError:
        raise Unreachable(f"nobody read this answer for {patience_s:.0f} s") from None


def handler(handle: Callable[[Context], Awaitable[None]], read: Callable[[bytes], Any] | None = None) -> Any:
    """Whatever the call is, its handler begins before any message is read."""

    async def handled(_: Any, context: Context) -> None:
        await handle(context)

    return grpc.stream_stream_rpc_method_handler(handled, read, serialised)


def checked_size(message: Message) -> int:
    """Of the answer to a read; raises Refusal 413. A write is answered whatever its size: it is done."""
    size = message.ByteSize()
    if size > MOST_ANSWER:
        text = f"the answer has {size} bytes, and at most {MOST_ANSWER} are sent at once: ask for pages with limit"
        raise Refusal(413, text)
    return size
