"""Opening the gRPC half, where it is asked for: its packages are an extra, and a manager without them starts, too."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import structlog

from j10ce.errors import Denied, Finding, Invalid, Unsupported
from j10ce.manager.access.enrolment import Enrolment
from j10ce.manager.access.security import Defence
from j10ce.manager.api.agent_proxy import AgentProxy
from j10ce.manager.api.place import Placements
from j10ce.manager.api.verbs import Verbs
from j10ce.manager.config import Config
from j10ce.manager.documents.view import View
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.manager.telemetry.trace import Tracer

if TYPE_CHECKING:
    from j10ce.manager.grpc.server import GrpcServer

log = structlog.get_logger()


class Served(NamedTuple):
    """What the API is made of, whoever carries it."""

    verbs: Verbs
    view: View
    agent: AgentProxy
    placements: Placements


def open_grpc(
    config: Config, served: Served, defence: Defence, metrics: Metrics, tracer: Tracer, stop: asyncio.Event
) -> GrpcServer | None:
    """A server that listens on --grpc-listen and --grpc-mtls-listen, to be run; None without these flags.

    Raises Unsupported where the packages are missing, Invalid or Denied for an address that cannot be served.
    """
    if not config.grpc_listen and not config.grpc_mtls_listen:
        return None
    try:
        from j10ce.manager.grpc.actions import Actions
        from j10ce.manager.grpc.gate import Door
        from j10ce.manager.grpc.server import GrpcServer
    except ImportError as e:
        raise Unsupported("--grpc-listen", needs=f"the packages of j10ce-qos[fleet]: there is no {e.name}") from None
    actions = Actions(served.placements, Enrolment(defence.keyring), served.view, served.agent, served.verbs.lines)
    server = GrpcServer(served.verbs, actions, Door(defence.access, defence.audit, metrics, tracer), stop)
    _listen(server, config)
    return server


def _listen(server: GrpcServer, config: Config) -> None:
    from j10ce.manager.grpc.certificate import Certificate

    pair = (config.tls_cert, config.tls_key) if config.tls_cert and config.tls_key else None
    if config.grpc_listen:
        host = _host("--grpc-listen", config.grpc_listen)
        bound = server.listen(config.grpc_listen, Certificate(*pair) if pair else None)
        log.info("grpc.start", address=f"{host}:{bound}", tls=pair is not None)
    if config.grpc_mtls_listen:
        host = _host("--grpc-mtls-listen", config.grpc_mtls_listen)
        if pair is None or config.client_ca is None:
            raise Denied("--grpc-mtls-listen needs certificates: give --tls-cert, --tls-key and --client-ca")
        bound = server.listen(config.grpc_mtls_listen, Certificate(*pair, config.client_ca))
        log.info("grpc.start", address=f"{host}:{bound}", tls=True, certificates=True)


def _host(flag: str, address: str) -> str:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise Invalid([Finding(flag, address, "not address:port", "such as 127.0.0.1:7444")], "argument")
    return host
