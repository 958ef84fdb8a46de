"""Accepting connections over TLS: one is in the crowd from when it is accepted, and not only after its handshake."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from j10ce.manager.fairness.crowd import Crowd
from j10ce.manager.fairness.rate_limits import network

log = structlog.get_logger()
RETRY_S: Final = 1.0  # after the machine had no descriptor left


class Handshake:
    """A connection that has not said who it is."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def turn_away(self) -> None:
        with suppress(OSError):  # it left by itself
            self._sock.shutdown(socket.SHUT_RDWR)


class Handshakes:
    """What asyncio's server does, with a place in the crowd for everyone who shakes hands."""

    def __init__(
        self, protocol: Callable[[], asyncio.Protocol], tls: ssl.SSLContext, crowd: Crowd, patience: float
    ) -> None:
        self._protocol, self._tls, self._crowd, self._patience = protocol, tls, crowd, patience
        self._accepting: asyncio.Task[None] | None = None
        self._shaking: set[asyncio.Task[None]] = set()

    def listen(self, bound: socket.socket, backlog: int) -> None:
        bound.setblocking(False)
        bound.listen(backlog)
        self._accepting = asyncio.get_running_loop().create_task(self._accept(bound))

    def close(self) -> None:
        for task in (self._accepting, *self._shaking):
            if task is not None:
                task.cancel()

    async def wait_closed(self) -> None:
        left = [task for task in (self._accepting, *self._shaking) if task is not None]
        await asyncio.gather(*left, return_exceptions=True)

    async def _accept(self, bound: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, peer = await loop.sock_accept(bound)
            except ConnectionAbortedError:
                continue
            except OSError as e:
                log.warning("accept.fail", error=str(e))
                await asyncio.sleep(RETRY_S)
                continue
            task = loop.create_task(self._shake(sock, network(peer[0])))
            self._shaking.add(task)
            task.add_done_callback(self._shaking.discard)

    async def _shake(self, sock: socket.socket, source: str) -> None:
        one = Handshake(sock)
        self._crowd.enter(one, source)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol, sock, ssl=self._tls, ssl_handshake_timeout=self._patience
            )
        except OSError as e:  # no TLS, no certificate that we know, too slow, or turned away
            log.debug("handshake.fail", source=source, error=str(e))
        finally:
            self._crowd.leave(one)
