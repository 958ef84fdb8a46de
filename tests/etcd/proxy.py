"""A proxy in front of one etcd that loses what a test wants lost: a request or an answer; or it comes late."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

Fate = Literal["pass", "lose request", "lose answer", "delay"]
Judge = Callable[[str, Any], Fate]


def always(fate: Fate) -> Judge:
    return lambda path, body: fate


class Proxy:
    """`judge` decides the fate of every request by its path and body; `late` holds those that were delayed."""

    def __init__(self, upstream: str) -> None:
        self._host, _, port = upstream.rpartition(":")
        self._port = int(port)
        self._open: set[asyncio.StreamWriter] = set()
        self.judge = always("pass")
        self.late: list[bytes] = []
        self.lost = asyncio.Event()
        self.address = ""

    async def release(self) -> list[Any]:
        """Carry the delayed requests out; etcd's answers to them."""
        return [await self._carry_out(self.late.pop(0)) for _ in self.late[:]]

    def lose(self, fate: Fate, *, then: Fate = "pass") -> None:
        """The next batch of writes; `then` is the fate of all that follows."""

        def judge(path: str, body: Any) -> Fate:
            if path != "/v3/kv/txn" or "request_txn" not in json.dumps(body):
                return "pass"
            self.judge = always(then)
            return fate

        self.judge = judge

    def cut(self) -> None:
        """Break every connection."""
        for writer in tuple(self._open):
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(self._host, self._port)
        self._open |= {writer, up_writer}
        try:
            async with asyncio.TaskGroup() as group:
                back = group.create_task(pump(up_reader, writer))
                while request := await read_request(reader):
                    fate = self.judge(*parsed(request))
                    if fate != "pass":
                        back.cancel()
                        await self._lose(fate, request)
                        break
                    up_writer.write(request)
                back.cancel()
        finally:
            self._open -= {writer, up_writer}
            writer.close()
            up_writer.close()

    async def _lose(self, fate: Fate, request: bytes) -> None:
        if fate == "lose answer":
            await self._carry_out(request)
        elif fate == "delay":
            self.late.append(request)
        self.lost.set()

    async def _carry_out(self, request: bytes) -> Any:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        writer.write(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        _, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        return json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])


@asynccontextmanager
async def proxied(upstream: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(upstream)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        await server.wait_closed()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Empty when the client is gone."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
        return head + await reader.readexactly(int(length or 0))
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def parsed(request: bytes) -> tuple[str, Any]:
    head, _, body = request.partition(b"\r\n\r\n")
    return head.split(b" ", 2)[1].decode(), json.loads(body or b"{}")
