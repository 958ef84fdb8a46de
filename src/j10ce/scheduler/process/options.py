"""The command line of the scheduler."""

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

DEBUG_LISTEN: Final = "127.0.0.1:10000"
NAME: Final = "j10ce-qos-scheduler"  # of the Lease, of the process, and of the profile that runs without a file
DEBUG_FROM: Final = 4  # --v as Kubernetes counts it: from here on every decision is of interest


class Options(NamedTuple):
    store: str
    config: Path | None = None
    listen: str = DEBUG_LISTEN
    health_listen: str = ""
    leader_elect: bool | None = None  # as the file says
    lease: str = ""
    identity: str = ""
    qos_log: Path | None = None
    log_format: str = "console"
    log_level: str = "info"


def read(argv: Sequence[str] | None = None) -> Options:
    made = parser()
    options = made.parse_args(argv)
    if bool(options.store) == bool(options.kubeconfig):
        made.error("say where the API server is: --store kube: (inside a pod), kube:///FILE, or --kubeconfig FILE")
    store = options.store or f"kube://{options.kubeconfig.absolute()}"
    if not store.startswith("kube:"):
        made.error(f"--store {store}: pods are scheduled on Kubernetes alone; on fleets of hosts use j10ce-qos place")
    level = options.log_level or ("debug" if options.v >= DEBUG_FROM else "info")
    return Options(
        store,
        options.config,
        options.listen,
        options.health_listen,
        options.leader_elect,
        options.lease,
        options.identity,
        options.qos_log,
        options.log_format,
        level,
    )


def parser() -> argparse.ArgumentParser:
    made = OptionParser(NAME, description="Schedules pods by the quality of service that they were promised.")
    made.add_argument("--version", action="version", version=__version__)
    made.add_argument("--store", default="", help="kube: inside a pod, or kube:///path/to/kubeconfig[?context=…]")
    made.add_argument("--kubeconfig", type=Path, help="the same as --store kube:///FILE")
    made.add_argument(
        "--config", type=Path, metavar="FILE",
        help=f"KubeSchedulerConfiguration; without one there is one profile, {NAME}",
    )  # fmt: skip
    made.add_argument(
        "--listen", default=DEBUG_LISTEN, metavar="ADDRESS:PORT",
        help="debug page, health and metrics, on loopback only (default: %(default)s)",
    )  # fmt: skip
    made.add_argument(
        "--health-listen", default="", metavar="ADDRESS:PORT", help="/healthz and /readyz for probes from elsewhere"
    )
    made.add_argument(
        "--leader-elect",
        type=truth,
        metavar="true|false",
        help="overrides leaderElection of the file (default: true)",
    )
    made.add_argument(
        "--lease",
        default="",
        metavar="NAME",
        help=f"Lease by which replicas elect a leader; overrides the file (default: {NAME})",
    )
    made.add_argument(
        "--identity", default=f"{socket.gethostname()}-{os.getpid()}", help="name of this replica in the election"
    )
    made.add_argument(
        "--qos-log", type=Path, metavar="FILE", help="one CSV line for every pod that ends; appended to, mode 0600"
    )
    made.add_argument(
        "--v", "-v", type=int, default=0, metavar="LEVEL", help="verbosity as in kube-scheduler; 4 and more: debug"
    )
    made.add_argument("--log-format", choices=("console", "json"), default="console")
    made.add_argument("--log-level", choices=LEVELS, default="", help="overrides --v")
    return made


def truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r}: write true or false")
    return text == "true"
