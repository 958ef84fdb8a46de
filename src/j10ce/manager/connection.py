"""Uvicorn's HTTP protocol with bounds on what a peer may keep it waiting for and make it remember.

Uvicorn itself limits only how long a connection may rest between two requests.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from j10ce.manager.access.tls import certified
from j10ce.manager.access.tokens import Ticket
from j10ce.manager.fairness.crowd import Crowd
from j10ce.manager.fairness.rate_limits import network
from j10ce.manager.identity import Caller

MOST_HEAD: Final = 16 * 1024  # bytes of a request that are not its body: the parser keeps what it has not understood
MOST_HEADERS: Final = 100
MOST_AHEAD: Final = 8  # requests of one connection that wait for the answer to the one before them
PIECE: Final = 16 * 1024  # of what arrived, that is looked at before we look whether it is too much
MOST_HELD: Final = 64 * 1024
ARRIVAL_S: Final = 30.0  # for all of a request, and for the first byte of a connection
STALL_S: Final = 30.0  # in which the reader of an answer takes at least LEAST_READ of what waits for it
LEAST_READ: Final = 16 * 1024


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection whose request takes too long to arrive, whose headers do not end, whose requests do not wait
    for answers, or whose reader does not read; refuses a request of many headers, or of more than one host."""

    crowd = Crowd()
    _deadline: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _head_bytes = _piece = 0  # in a row, and of what is being looked at
    _arriving = True
    _begun = False
    _certified: Ticket | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Joined(transport, self.loop))  # type: ignore[arg-type]
        if (tls := transport.get_extra_info("ssl_object")) is not None:
            self._certified = certified(tls.getpeercert())
        self.crowd.enter(self, network(self.client[0] if self.client else ""))
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        self._flowing()
        self.crowd.leave(self)
        super().connection_lost(exc)

    def turn_away(self) -> None:
        self.transport.abort()

    def known(self, caller: Caller) -> None:
        self.crowd.known(self, caller)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._flowing()
        super().resume_writing()

    def _watch_reader(self, waiting: int) -> None:
        self._flowing()
        self._stalled = self.loop.call_later(STALL_S, self._look_at_reader, waiting)

    def _look_at_reader(self, before: int) -> None:
        waiting = self.transport.get_write_buffer_size()
        if waiting > before - LEAST_READ:
            self.transport.abort()
        else:
            self._watch_reader(waiting)

    def _flowing(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def data_received(self, data: bytes) -> None:
        """In pieces: the parser makes whatever is in one of them before anybody can tell it to stop."""
        for at in range(0, len(data), PIECE):
            self._take(data if len(data) <= PIECE else data[at : at + PIECE])
            if self.transport.is_closing():
                return

    def _take(self, data: bytes) -> None:
        self._piece = len(data)
        self._head_bytes += self._piece
        self._begun = False
        super().data_received(data)
        if not self._arriving:
            self._arrived()
        elif self._begun:
            self._expect()
        if self._arriving and self._head_bytes > MOST_HEAD:
            self.transport.close()

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MOST_AHEAD:
            self.transport.abort()  # an answer would be taken for that to another request
            raise ValueError("too many requests that do not wait for answers")
        super().on_message_begin()
        self._arriving = self._begun = True
        self._head_bytes = self._piece  # its head is in there
        state = self.scope.setdefault("state", {})
        state["known"] = self.known
        if self._certified is not None:
            state["certified"] = self._certified

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) >= MOST_HEADERS:
            raise ValueError("too many headers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._check_host()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._arriving = False
        super().on_message_complete()

    def _check_host(self) -> None:
        """RFC 9112, 3.2: one host, and the same in the target. What is raised here is answered with 400."""
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            raise ValueError("not one Host")
        if not self.url.startswith(b"/"):
            asked = self.url.partition(b"://")[2].partition(b"/")[0]
            if hosts and asked.lower() != hosts[0].strip().lower():
                raise ValueError("another Host than the target's")

    def _expect(self) -> None:
        self._arrived()
        self._deadline = self.loop.call_later(ARRIVAL_S, self.transport.close)

    def _arrived(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Joined:
    """A transport whose writes of one turn of the event loop leave together: a head and its body are one packet.

    A large body leaves as it is: joined with its head it would stand in memory twice for as long as nobody reads it.
    """

    __slots__ = ("_held", "_loop", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self.is_closing = transport.is_closing
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if len(data) >= MOST_HELD:  # the transport says when it is too much
            self._leave()
            self._send(data)
            return
        if not self._held:
            self._loop.call_soon(self._leave)
        self._held += data
        if len(self._held) >= MOST_HELD:
            self._leave()

    def close(self) -> None:
        self._leave()
        self._transport.close()

    def _leave(self) -> None:
        if self._held:
            self._send(self._held)
        self._held = b""

    def _send(self, data: bytes) -> None:
        if not self.is_closing():
            self._transport.write(data)
