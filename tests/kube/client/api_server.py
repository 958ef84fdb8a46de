"""A server that answers as a test wants, one answer per request: what an API server only does on a bad day."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal, NamedTuple

from j10ce.kube.access import KubeAccess
from j10ce.kube.client import KubeClient


class Reply(NamedTuple):
    status: int
    body: Any = None
    retry_after: str = ""


Script = list[Reply | Literal["hang up"]]


class ApiServer:
    """`heard` are the requests: method, path and header, in lower case, and body. Answers wait for `answering`."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.heard: list[tuple[str, str]] = []
        self.clients: list[KubeClient] = []
        self.address = ""
        self.answering = asyncio.Event()
        self.answering.set()

    def client(self, patience_s: float = 60, **access: Any) -> KubeClient:
        """Closed with the server."""
        made = KubeClient(KubeAccess(f"http://{self.address}", "the tester", **access), patience_s=patience_s)
        self.clients.append(made)
        return made

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await read_request(reader):
            head, _, body = request.decode().partition("\r\n\r\n")
            self.heard.append((head, body))
            reply = self._script.pop(0)
            await self.answering.wait()
            if reply == "hang up":
                break
            writer.write(spelled(reply))
        writer.close()


def spelled(reply: Reply) -> bytes:
    body = reply.body if isinstance(reply.body, str) else json.dumps(reply.body or {})
    after = f"Retry-After: {reply.retry_after}\r\n" if reply.retry_after else ""
    return f"HTTP/1.1 {reply.status} X\r\nContent-Length: {len(body)}\r\n{after}\r\n{body}".encode()


def status(code: int, reason: str = "", message: str = "", **details: Any) -> dict[str, Any]:
    return {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}


@asynccontextmanager
async def serving(*script: Reply | Literal["hang up"]) -> AsyncIterator[ApiServer]:
    """Everything in the script has to be asked for."""
    left: Script = list(script)
    api = ApiServer(left)
    server = await asyncio.start_server(api.serve, "127.0.0.1", 0)
    api.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield api
        assert not left
    finally:
        for client in api.clients:
            await client.close()
        server.close()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Empty when the client is gone."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
        return head + await reader.readexactly(int(length or 0))
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
