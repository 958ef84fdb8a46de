"""Workloads are not stored: what this host runs is its agent's knowledge, asked for over the agent's socket."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import h11
from starlette.responses import Response

from j10ce.errors import Unreachable
from j10ce.manager.http import json

ANSWER_S: Final = 10.0


class AgentProxy:
    def __init__(self, socket: Path | None) -> None:
        self._socket = socket

    async def get(self, path: str) -> Response:
        """The agent's own answer, refusals included; raises Unreachable."""
        if self._socket is None:
            raise Unreachable("this manager has no agent beside it; ask the agents of the hosts")
        try:
            async with asyncio.timeout(ANSWER_S):
                code, body = await _ask(self._socket, path)
        except TimeoutError:
            raise Unreachable(f"the agent at {self._socket} did not answer within {ANSWER_S:g} s") from None
        except (OSError, h11.RemoteProtocolError) as e:
            raise Unreachable(f"the agent at {self._socket} does not answer: {e}") from None
        return json(body, code)


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
