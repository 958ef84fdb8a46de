"""Opening the gRPC half, where it is asked for: its packages are an extra, and a manager without them starts, too."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from j10ce.errors import Finding, Invalid, Unsupported
from j10ce.manager.defence import Defence
from j10ce.manager.metrics import Metrics
from j10ce.manager.settings import Config
from j10ce.manager.trace import Tracer
from j10ce.manager.verbs import Verbs

if TYPE_CHECKING:
    from j10ce.manager.grpc import GrpcServer

log = structlog.get_logger()


def open_grpc(
    config: Config, verbs: Verbs, defence: Defence, metrics: Metrics, tracer: Tracer, stop: asyncio.Event
) -> GrpcServer | None:
    """A server that listens on --grpc-listen, to be run; None without that flag.

    Raises Unsupported where the packages are missing, Invalid or Denied for an address that cannot be served.
    """
    if not config.grpc_listen:
        return None
    try:
        from j10ce.manager.grpc import Certificate, GrpcServer
        from j10ce.manager.grpc_door import Door
    except ImportError as e:
        raise Unsupported("--grpc-listen", needs=f"the packages of j10ce-qos[fleet]: there is no {e.name}") from None
    host, _, port = config.grpc_listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        hint = "such as 127.0.0.1:7444"
        raise Invalid([Finding("--grpc-listen", config.grpc_listen, "not address:port", hint)], "argument")
    server = GrpcServer(verbs, Door(defence.access, defence.audit, metrics, tracer), stop)
    pair = Certificate(config.tls_cert, config.tls_key) if config.tls_cert and config.tls_key else None
    bound = server.listen(config.grpc_listen, pair)
    log.info("grpc.start", address=f"{host}:{bound}", tls=pair is not None)
    return server
