"""The HTTP server of the manager: its socket, uvicorn, and telling others that it is there."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog
import uvicorn

from j10ce import __version__
from j10ce.errors import Denied, Finding, Invalid
from j10ce.manager.defence import check
from j10ce.manager.private import write_kubeconfig
from j10ce.manager.protocol import BoundedProtocol
from j10ce.manager.settings import Config

log = structlog.get_logger()
BACKLOG: Final = 1024
KEEP_ALIVE_S: Final = 75  # agents report every ten seconds over one connection
DRAIN_S: Final = 5  # for what is under way when the manager stops


class Server(uvicorn.Server):
    """Uvicorn without its own ideas about signals and logs."""

    def __init__(self, app: object, tls: ssl.SSLContext | None) -> None:
        super().__init__(
            uvicorn.Config(
                app,  # type: ignore[arg-type]
                loop="none",
                http=BoundedProtocol,
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
    host = host.removeprefix("[").removesuffix("]")
    try:
        family, kind, *_, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as e:
        raise Denied(f"cannot listen on {config.listen}: {e.strerror or e}") from None
    return bound


def announce(config: Config, listener: socket.socket, token: str) -> None:
    """To whoever waits for us: the kubeconfig, the log, and the parent or systemd."""
    host, _, _ = config.listen.rpartition(":")
    server = f"{'https' if config.tls_cert else 'http'}://{host}:{listener.getsockname()[1]}"
    if config.kubeconfig and token:
        write_kubeconfig(config.kubeconfig, server, token, ca=config.tls_cert)
    log.info("manager.start", server=server, identity=config.identity, version=__version__, pid=os.getpid())
    if where := os.environ.get("NOTIFY_SOCKET", ""):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(b"READY=1", where.replace("@", "\0", 1) if where.startswith("@") else where)
