"""The HTTP server of the manager: its socket, uvicorn, and telling others that it is there."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import structlog
import uvicorn

from j10ce import __version__
from j10ce.daemon.notify import notify
from j10ce.daemon.secret_files import write_kubeconfig
from j10ce.errors import Denied, Finding, Invalid
from j10ce.manager.access.security import check
from j10ce.manager.config import Config
from j10ce.manager.connection import BoundedProtocol
from j10ce.manager.fairness.crowd import Crowd
from j10ce.manager.fairness.handshakes import Handshakes

log = structlog.get_logger()
HANDSHAKE_S: Final = 10.0
BACKLOG: Final = 1024
KEEP_ALIVE_S: Final = 75  # agents report every ten seconds over one connection
DRAIN_S: Final = 5  # for what is under way when the manager stops


class Server(uvicorn.Server):
    """Uvicorn without its own ideas about signals and logs."""

    def __init__(self, app: object, tls: ssl.SSLContext | None) -> None:
        self._crowd = Crowd()

        class Protocol(BoundedProtocol):
            crowd = self._crowd

        super().__init__(
            uvicorn.Config(
                app,  # type: ignore[arg-type]
                loop="none",
                http=Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,  # whoever connects is the client, whatever it claims
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=DRAIN_S,
                ssl_context_factory=(lambda *_: tls) if tls else None,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Uvicorn's own, but for those who do not even say hello: they are few, and have not long."""
        await self.lifespan.startup()
        self.servers = [await self._served(bound) for bound in sockets or ()]
        self.started = True

    async def _served(self, bound: socket.socket) -> Any:
        config = self.config

        def protocol() -> asyncio.Protocol:
            made = config.http_protocol_class
            return made(config=config, server_state=self.server_state, app_state=self.lifespan.state)  # type: ignore[call-arg]

        if config.ssl is None:
            return await asyncio.get_running_loop().create_server(protocol, sock=bound, backlog=config.backlog)
        handshakes = Handshakes(protocol, config.ssl, self._crowd, HANDSHAKE_S)
        handshakes.listen(bound, config.backlog)
        return handshakes

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(config: Config) -> socket.socket:
    """The bound socket; raises Denied for an address that would carry the token in the clear."""
    host, _, port = config.listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise Invalid([Finding("--listen", config.listen, "not address:port", "such as 127.0.0.1:7443")], "argument")
    if not config.kubernetes:
        check(config.guarding(str(config.token_file or "")))
    try:
        return _bound(host.removeprefix("[").removesuffix("]"), int(port))
    except OSError as e:
        raise Denied(f"cannot listen on {config.listen}: {e.strerror or e}") from None


def _bound(host: str, port: int) -> socket.socket:
    """`::` is every address of both families, also where a machine has one of them alone."""
    if host == "::" and not socket.has_dualstack_ipv6():
        host = "0.0.0.0"  # noqa: S104  as was asked for
    family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if host == "::":
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # whatever the machine's default is
    made.bind(address)
    return made


def announce(config: Config, listener: socket.socket, token: str, *, secure: bool) -> None:
    """To whoever waits for us: the kubeconfig, the log, and the parent or systemd."""
    host, _, _ = config.listen.rpartition(":")
    server = f"{'https' if secure else 'http'}://{host}:{listener.getsockname()[1]}"
    if config.kubeconfig and token:
        write_kubeconfig(config.kubeconfig, server, token, ca=config.tls_cert)
    log.info("manager.start", server=server, identity=config.identity, version=__version__, pid=os.getpid())
    notify(os.environ.get("NOTIFY_SOCKET", ""), "READY=1")
