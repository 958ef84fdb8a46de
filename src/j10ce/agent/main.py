"""j10ce-qos-agent: the command line and the process."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog
from msgspec.structs import replace

from j10ce import __version__
from j10ce.agent import config
from j10ce.agent.agent import Host
from j10ce.agent.build import build
from j10ce.agent.config import AgentConfig
from j10ce.agent.dialects import DIALECTS
from j10ce.daemon import logs
from j10ce.daemon.descriptors import raise_descriptor_limit
from j10ce.daemon.lock import Lock, held, holder
from j10ce.daemon.notify import notify
from j10ce.daemon.options import OptionParser
from j10ce.errors import Busy, Invalid, QosError, Unreachable
from j10ce.http import client
from j10ce.http.client import Peer
from j10ce.model.schema import prime

log = structlog.get_logger()
HANDOVER_S = 15.0


def main(argv: Sequence[str] | None = None) -> None:
    options = arguments().parse_args(argv)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to reload
    try:
        settings = read_settings(options)
        logs.configure(settings.log)
        prime()
        sys.exit(asyncio.run(serve(settings, options)))
    except Invalid as e:
        sys.exit("\n".join(("j10ce-qos-agent: invalid configuration:", *(f"  {f}" for f in e.findings))))
    except QosError as e:
        sys.exit(f"j10ce-qos-agent: {e}")


def arguments() -> argparse.ArgumentParser:
    parser = OptionParser("j10ce-qos-agent", description="Gives the workloads of this host what they were promised.")
    parser.add_argument("--config-dir", type=Path, default=config.config_folder())
    parser.add_argument(
        "--server",
        help="the control plane: http://…, https://… or unix:/path; several with commas; kube: on Kubernetes",
    )
    parser.add_argument("--token-file", help="bearer token for --server")
    parser.add_argument("--bootstrap-token-file", help="enrols this node where --token-file is missing, and writes it")
    parser.add_argument("--ca-file", help="who signed the certificates of --server; default: the system's authorities")
    parser.add_argument("--node-name", help="this node's name; default: the host's")
    parser.add_argument(
        "--dialect", action="append", choices=[*DIALECTS], help="understand another system's labels and annotations"
    )
    parser.add_argument("--unarmed", action="store_true", help="plan and explain, write nothing")
    parser.add_argument("--until-idle", action="store_true", help="revert and end with the last workload")
    parser.add_argument("--takeover", action="store_true", help="ask a running --until-idle agent to hand over")
    parser.add_argument("--version", action="version", version=__version__)
    return parser


def read_settings(options: argparse.Namespace) -> AgentConfig:
    """Those of the command line win over those of the files. Raises Invalid."""
    settings = config.load(options.config_dir)
    given: dict[str, Any] = {
        "server": options.server,
        "token_file": options.token_file,
        "bootstrap_token_file": options.bootstrap_token_file,
        "ca_file": options.ca_file,
        "node_name": options.node_name,
        "dialects": tuple(dict.fromkeys(options.dialect)) if options.dialect else None,
        "armed": False if options.unarmed else None,
    }
    made = replace(settings, **{name: value for name, value in given.items() if value is not None})
    if made.bootstrap_token_file and not made.token_file:
        return replace(made, token_file=f"{made.state_dir}/token")
    return made


async def serve(settings: AgentConfig, options: argparse.Namespace) -> int:
    """One life of the agent; the exit code."""
    lock = Lock(Path(settings.run_dir))
    mode = "until-idle" if options.until_idle else "steady"
    if options.takeover:
        await take_over(Path(settings.run_dir))
    lock.take(mode)
    raise_descriptor_limit()
    _look_at_tokens(settings.token_file, settings.bootstrap_token_file)
    address = os.environ.get("NOTIFY_SOCKET", "")
    try:
        host = build(settings, lambda: read_settings(options), until_idle=options.until_idle)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, host.stop, True, "SIGINT")
        loop.add_signal_handler(signal.SIGTERM, host.leave, "SIGTERM")
        loop.add_signal_handler(signal.SIGHUP, reload, host, address)
        return await host.run(lambda *lines: notify(address, *lines))
    finally:
        lock.drop()


def _look_at_tokens(*files: str) -> None:
    for file in filter(os.path.isfile, files):
        if os.stat(file).st_mode & 0o077:
            log.warning("token.exposed", file=file, hint="others can read it: chmod 600")


def reload(host: Host, address: str) -> None:
    """On SIGHUP. A bad configuration is logged, and the old one stays."""
    ready = host.shell.ready.is_set()  # a start that is still under way says itself when it is over
    if ready:
        notify(address, "RELOADING=1")
    try:
        host.reconfigure()
    except Invalid as e:
        log.error("config.refused", findings=[str(f) for f in e.findings])
    if ready:
        notify(address, "READY=1")


async def take_over(run_dir: Path) -> None:
    """An agent that `run` started gives way to one that stays; any other one is left alone."""
    pid, mode = holder(run_dir)
    if mode == "until-idle":
        try:
            await client.call(Peer(f"unix:{run_dir / 'agent.sock'}"), "POST", "/v1/stop", {"handover": True})
        except Unreachable:
            log.info("handover.ended", pid=pid)  # it ends by itself
    elif mode != "unknown":
        return
    for _ in range(int(HANDOVER_S / 0.05)):
        if not held(run_dir):
            return
        await asyncio.sleep(0.05)
    raise Busy(f"process {pid} did not hand over within {HANDOVER_S:g} s")


if __name__ == "__main__":
    main()
