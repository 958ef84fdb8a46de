"""Workloads are not stored: what this host runs is its agent's knowledge, asked for over the agent's socket."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import h11

from j10ce.errors import Unreachable
from j10ce.manager.asgi.status import Refusal
from j10ce.model.catalogue import Kind
from j10ce.model.kinds import Object
from j10ce.model.schema import convert, parse_plain
from j10ce.model.stored import Listing, key_of

ANSWER_S: Final = 10.0


class AgentProxy:
    """An agent may be newer than this manager: what it tells beyond our knowledge is left out."""

    def __init__(self, socket: Path | None) -> None:
        self._socket = socket

    async def object(self, path: str, kind: Kind) -> Object:
        """One object of the agent; raises what the agent refused it with, or Unreachable."""
        return convert(await self._get(path), kind.struct, [])  # type: ignore[return-value]

    async def list(self, path: str, kind: Kind) -> Listing:
        told = await self._get(path)
        items: tuple[Object, ...] = tuple(convert(item, kind.struct, []) for item in told["items"])  # type: ignore[misc]
        return Listing(tuple(sorted(items, key=key_of)), told.get("metadata", {}).get("resourceVersion", ""))

    async def _get(self, path: str) -> Any:
        if self._socket is None:
            raise Unreachable("this manager has no agent beside it; ask the agents of the hosts")
        try:
            async with asyncio.timeout(ANSWER_S):
                code, body = await _ask(self._socket, path)
        except TimeoutError:
            raise Unreachable(f"the agent at {self._socket} did not answer within {ANSWER_S:g} s") from None
        except (OSError, h11.RemoteProtocolError) as e:
            raise Unreachable(f"the agent at {self._socket} does not answer: {e}") from None
        told = parse_plain(body)
        if code >= 400:
            raise Refusal(code, told.get("reason", "Unknown"), told.get("message", f"the agent answered {code}"))
        return told


async def _ask(socket: Path, path: str) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_unix_connection(socket)
    try:
        connection = h11.Connection(h11.CLIENT)
        headers = [("Host", "localhost"), ("Connection", "close")]
        writer.write(connection.send(h11.Request(method="GET", target=path, headers=headers)) or b"")
        code, body = 0, bytearray()
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                connection.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Response):
                code = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.ConnectionClosed):
                raise ConnectionResetError("it closed the connection")
        return code, bytes(body)
    finally:
        writer.close()
