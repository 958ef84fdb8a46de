"""A proxy in front of one etcd that loses what a test wants lost: a request or an answer; or it comes late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, NamedTuple

import grpc
import grpc.aio

from j10ce.store.etcd.proto import etcd_pb2 as pb
from j10ce.store.etcd.wire import TXN, WATCH, Keyspace

MARK = Keyspace("").mark  # written with every batch
Fate = Literal["pass", "lose request", "lose answer", "delay"]
Judge = Callable[[str, bytes], Fate]
Context = grpc.aio.ServicerContext


def always(fate: Fate) -> Judge:
    return lambda path, body: fate


def writes(path: str, body: bytes) -> Sequence[pb.RequestOp]:
    """Of a batch; of any other request nothing."""
    parts = pb.TxnRequest.FromString(body).success if path == TXN.path else ()
    return parts if any(op.request_put.key.endswith(MARK) for op in parts) else ()


class Late(NamedTuple):
    path: str
    body: bytes


class Proxy(grpc.GenericRpcHandler):  # type: ignore[misc]
    """`judge` decides the fate of every request by its path and body; `late` holds those that were delayed."""

    def __init__(self, upstream: str) -> None:
        self._up = grpc.aio.insecure_channel(upstream)
        self._open: set[grpc.aio.Call] = set()
        self.judge = always("pass")
        self.meanwhile: Callable[[], Awaitable[object]] | None = None  # happens before the next batch goes on its way
        self.late: list[Late] = []
        self.lost = asyncio.Event()
        self.address = ""

    async def release(self) -> list[pb.TxnResponse]:
        """Carry the delayed requests out; etcd's answers to them."""
        return [pb.TxnResponse.FromString(await self._up.unary_unary(path)(body)) for path, body in self._taken()]

    def lose(self, fate: Fate, *, then: Fate = "pass", apart: bool = False) -> None:
        """The next batch of writes, or, `apart`, one with a condition per object. `then`: the fate of what follows."""

        def judge(path: str, body: bytes) -> Fate:
            parts = writes(path, body)
            if not parts or (apart and not any(op.HasField("request_txn") for op in parts)):
                return "pass"
            self.judge = always(then)
            return fate

        self.judge = judge

    def cut(self) -> None:
        """Break every call that is under way."""
        for call in tuple(self._open):
            call.cancel()

    async def close(self) -> None:
        self.cut()
        await self._up.close()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        async def answer(body: bytes, context: Context) -> bytes:
            return await self._answer(details.method, body, context)

        async def answers(body: bytes, context: Context) -> AsyncIterator[bytes]:
            async for answer in self._answers(details.method, body, context):
                yield answer

        if details.method == WATCH.path:
            return grpc.unary_stream_rpc_method_handler(answers)
        return grpc.unary_unary_rpc_method_handler(answer)

    async def _answer(self, path: str, body: bytes, context: Context) -> bytes:
        if self.meanwhile and writes(path, body):
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        fate = self.judge(path, body)
        if fate == "delay":
            self.late.append(Late(path, body))
        if fate in ("lose request", "delay"):
            return await self._silence(context)
        try:
            answer: bytes = await self._up.unary_unary(path)(body)
        except grpc.aio.AioRpcError as e:
            return await context.abort(e.code(), e.details() or "")
        return await self._silence(context) if fate == "lose answer" else answer

    async def _answers(self, path: str, body: bytes, context: Context) -> AsyncIterator[bytes]:
        if self.judge(path, body) != "pass":
            await self._silence(context)
        call = self._up.unary_stream(path)(body)
        self._open.add(call)
        try:
            async for answer in call:
                yield answer
        except asyncio.CancelledError:
            await self._silence(context)
        finally:
            self._open.discard(call)
            call.cancel()

    async def _silence(self, context: Context) -> Any:
        """As of a connection that broke."""
        self.lost.set()
        await context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")

    def _taken(self) -> list[Late]:
        taken, self.late = self.late, []
        return taken


@asynccontextmanager
async def proxied(upstream: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(upstream)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((proxy,))
    proxy.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield proxy
    finally:
        await server.stop(None)
        await proxy.close()
