"""Uvicorn's HTTP protocol with bounds on what a peer may keep it waiting for and make it remember.

Uvicorn itself limits only how long a connection may rest between two requests.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from j10ce.manager.tls import certified
from j10ce.manager.tokens import Ticket

MOST_HEADERS: Final = 64 * 1024
MOST_HELD: Final = 64 * 1024
ARRIVAL_S: Final = 30.0  # for all of a request, and for the first byte of a connection


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection whose request takes too long to arrive, or whose headers do not end."""

    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _in_head = _arriving = True
    _begun = False
    _certified: Ticket | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Joined(transport, self.loop))  # type: ignore[arg-type]
        if (tls := transport.get_extra_info("ssl_object")) is not None:
            self._certified = certified(tls.getpeercert())
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        self._begun = False
        super().data_received(data)
        if not self._arriving:
            self._arrived()
        elif self._begun:
            self._expect()
        if self._in_head and self._head_bytes > MOST_HEADERS:
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = self._arriving = self._begun = True
        self._head_bytes = 0
        if self._certified is not None:
            self.scope.setdefault("state", {})["certified"] = self._certified

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._arriving = False
        super().on_message_complete()

    def _expect(self) -> None:
        self._arrived()
        self._deadline = self.loop.call_later(ARRIVAL_S, self.transport.close)

    def _arrived(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Joined:
    """A transport whose writes of one turn of the event loop leave together: a head and its body are one packet."""

    __slots__ = ("_held", "_loop", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self.is_closing = transport.is_closing
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._leave)
        self._held += data
        if len(self._held) >= MOST_HELD:  # the transport says when it is too much
            self._leave()

    def close(self) -> None:
        self._leave()
        self._transport.close()

    def _leave(self) -> None:
        if self._held and not self.is_closing():
            self._transport.write(self._held)
        self._held = b""
