"""The command line of a controller-manager."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from j10ce import __version__
from j10ce.daemon.logs import LEVELS
from j10ce.daemon.options import OptionParser
from j10ce.manager.access.security import SecurityOptions
from j10ce.manager.logs import FORMATS, Format
from j10ce.scheduler.ledger.pledge import NAMESPACE_LIMIT
from j10ce.store.schemes import FORMS

DIALECTS: Final = ("koordinator",)
KOORDINATOR_CONFIG: Final = "koordinator-system/slo-controller-config"


class Config(NamedTuple):
    store: str
    listen: str
    token_file: Path | None = None
    kubeconfig: Path | None = None
    agent_socket: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    auth: Path | None = None
    client_ca: Path | None = None
    webhook_ca: Path | None = None
    fail_closed: bool = False
    audit_log: Path | None = None
    grpc_listen: str = ""
    grpc_mtls_listen: str = ""
    advertise: str = ""
    identity: str = ""
    namespace_limit: int = NAMESPACE_LIMIT
    overcommit: Path | None = None
    dialects: tuple[str, ...] = ()
    koordinator_config: str = KOORDINATOR_CONFIG
    log_format: Format = "console"
    log_level: str = "info"
    otel_endpoint: str = ""

    @property
    def kubernetes(self) -> bool:
        """Whether a cluster keeps the objects, and knows who may do what."""
        return self.store.startswith("kube:")

    def guarding(self, token: str) -> SecurityOptions:
        return SecurityOptions(
            self.listen, token, self.auth, self.tls_cert, self.tls_key, self.client_ca, self.audit_log
        )


def read(argv: Sequence[str] | None = None) -> Config:
    made = parser()
    options = vars(made.parse_args(argv))
    config = Config(**{**options, "dialects": tuple(dict.fromkeys(options["dialects"]))})
    if config.dialects and not config.kubernetes:
        made.error("--dialect is for Kubernetes (--store kube:); for hosts, `j10ce-qos convert` makes objects of it")
    return config


def parser() -> argparse.ArgumentParser:
    made = OptionParser("j10ce-qos-controller-manager", description="The control plane of j10ce-qos.")
    made.add_argument("--version", action="version", version=__version__)
    made.add_argument("--store", required=True, help=FORMS)
    made.add_argument("--listen", default="127.0.0.1:7443", help="address:port; port 0 takes a free one")
    made.add_argument("--grpc-listen", default="", help="address:port of the gRPC API; without it there is none")
    made.add_argument(
        "--grpc-mtls-listen", default="", help="the same for clients that show a certificate of --client-ca"
    )
    made.add_argument(
        "--advertise", default="", metavar="IP:PORT", help="on Kubernetes: where schedulers find the leader's extender"
    )
    made.add_argument(
        "--identity", default=f"{socket.gethostname()}-{os.getpid()}", help="name of this manager in an election"
    )
    made.add_argument(
        "--namespace-limit", type=percent, default=NAMESPACE_LIMIT, metavar="PERCENT",
        help="share of the fleet that one namespace may reserve; 100: no limit (default: %(default)s)",
    )  # fmt: skip
    made.add_argument(
        "--overcommit", type=Path, metavar="FILE", help="rules for what nodes may lend, YAML or JSON; reread on change"
    )
    _add_dialects(made)
    _add_security(made)
    _add_telling(made)
    made.add_argument("--kubeconfig", type=Path, help="written with address and token, mode 0600")
    made.add_argument("--agent-socket", type=Path, help="socket of the agent on this host, to list its workloads")
    return made


def _add_dialects(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--dialect", dest="dialects", action="append", choices=DIALECTS, default=[],
        help="on Kubernetes: obey another system's configuration, and answer for its webhooks",
    )  # fmt: skip
    made.add_argument(
        "--koordinator-config", type=namespaced, default=KOORDINATOR_CONFIG, metavar="NAMESPACE/NAME",
        help="Koordinator's ConfigMap, with --dialect koordinator (default: %(default)s)",
    )  # fmt: skip


def namespaced(text: str) -> str:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise argparse.ArgumentTypeError(f"{text!r} names no object; write NAMESPACE/NAME")
    return text


def percent(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage; write a number from 1 to 100")
    return int(text)


def _add_security(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("access")
    group.add_argument("--token-file", type=Path, help="an admin's bearer token, mode 0600; made when missing")
    group.add_argument("--auth", type=Path, help="file of known tokens: names, roles and hashes; reread on change")
    group.add_argument("--tls-cert", type=Path, help="required beyond loopback; reread on change")
    group.add_argument("--tls-key", type=Path)
    group.add_argument("--client-ca", type=Path, help="accept client certificates of this CA: CN=name, O=j10ce:ROLE")
    group.add_argument(
        "--webhook-ca", type=Path,
        help="on Kubernetes, with --tls-cert: its CA, for the webhooks' caBundle; reread on change",
    )  # fmt: skip
    group.add_argument(
        "--fail-closed", action="store_true", help="on Kubernetes: webhooks refuse what they cannot judge"
    )
    group.add_argument("--audit-log", type=Path, help="file for every write and every refusal, as JSON lines")


def _add_telling(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("logs and traces")
    group.add_argument("--log-format", choices=FORMATS, default="console", help="key=value, or JSON lines")
    group.add_argument("--log-level", choices=LEVELS, default="info")
    group.add_argument(
        "--otel-endpoint", default="", help="OTLP/HTTP collector of traces, http://127.0.0.1:4318; or OTEL_* variables"
    )
