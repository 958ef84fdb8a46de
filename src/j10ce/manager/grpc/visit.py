"""One call of someone who is known: its message, which is read after that, its answers, and what they cost.

Every call is registered as one of streams, also where there is one message each way: on the wire they are alike, and
gRPC hands over the others only after it has read their message, of whomever, for as long as that takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from j10ce.errors import Finding, Malformed, Unreachable
from j10ce.http.status import Refusal
from j10ce.manager.access.gate import Passage
from j10ce.manager.asgi.requests import LARGE, most_bytes
from j10ce.manager.connection import ARRIVAL_S, STALL_S
from j10ce.manager.fairness.large import Rooms
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
    rooms: Rooms

    async def read(self, request: type[M]) -> M:
        """The message; raises Refusal 408, 413 or 429, or Malformed."""
        data = await self._next()
        if data is None:
            raise Malformed([Finding("", None, "there is none", f"send a {request.__name__}")], "message")
        return await self._taken(request, data, most_bytes(self.passage.act.caller))

    async def _taken(self, request: type[M], data: bytes, most: int) -> M:
        if len(data) > most:
            raise Refusal(413, f"the message is larger than {most} bytes")
        self.limits.received(self.passage.act.caller, len(data))
        await self.passage.meter.begin()
        return parsed(request, data)

    async def follow(self, request: type[M]) -> AsyncGenerator[M]:
        """All messages of a call that has many small ones, as they come; raises what `read` does."""
        caller, talking = self.passage.act.caller, self.rooms.talking
        if self.passage.limited:
            await talking.enter(caller)
        try:
            while (data := await arrived(self.context, ARRIVAL_S)) is not None:
                yield await self._taken(request, data, LARGE)
        finally:
            if self.passage.limited:
                talking.leave(caller)

    async def _next(self) -> bytes | None:
        """Few messages of one caller arrive together, and of the large ones fewer are worked on. Raises Refusal 429."""
        if not self.passage.limited:
            return await arrived(self.context, ARRIVAL_S)
        caller, (large, arriving, _) = self.passage.act.caller, self.rooms
        await arriving.enter(caller)
        try:
            data = await arrived(self.context, ARRIVAL_S)
            if data is not None and LARGE < len(data) <= most_bytes(caller):
                await large.enter(caller)
                self.passage.until_released(partial(large.leave, caller))
            return data
        finally:
            arriving.leave(caller)

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


async def send(context: Context, message: Message | bytes) -> None:
    """Raises Unreachable where nobody reads it."""
    patience_s = STALL_S + size_of(message) / LEAST_PER_S
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


def size_of(message: Message | bytes) -> int:
    return len(message) if isinstance(message, bytes) else message.ByteSize()


def checked_size(message: Message | bytes) -> int:
    """Of the answer to a read; raises Refusal 413. A write is answered whatever its size: it is done."""
    size = size_of(message)
    if size > MOST_ANSWER:
        text = f"the answer has {size} bytes, and at most {MOST_ANSWER} are sent at once: ask for pages with limit"
        raise Refusal(413, text)
    return size
