"""j10ce-qos-controller-manager: the composition root of the control plane."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import structlog
import uvicorn
import uvloop

from j10ce import __version__
from j10ce.errors import Denied, Finding, Invalid, QosError, StoreError
from j10ce.manager.app import build_app
from j10ce.manager.defence import Defence, Options, check
from j10ce.manager.metrics import Metrics
from j10ce.manager.nodes import judge_nodes
from j10ce.manager.overcommit import keep_overcommit
from j10ce.manager.placements import Placements
from j10ce.manager.policies import judge_policies
from j10ce.manager.private import read_token, write_kubeconfig
from j10ce.manager.protocol import BoundedProtocol
from j10ce.manager.rest import Resources
from j10ce.manager.revisions import ensure_built_in, keep_history
from j10ce.manager.verbs import Verbs
from j10ce.manager.view import View
from j10ce.manager.workloads import AgentProxy
from j10ce.policy.profiles import builtin
from j10ce.policy.validate import validate
from j10ce.store.opening import FORMS, open_store
from j10ce.store.store import Store

log = structlog.get_logger()
RETRY_S: Final = 5.0
SWITCH_S: Final = 0.0005  # the store's writer takes the interpreter once per statement; it must not wait 5 ms each time
wall: Callable[[], float] = time.time  # noqa: TID251  the process's one wall clock


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
    audit_log: Path | None = None

    def guarding(self, token: str) -> Options:
        return Options(self.listen, token, self.auth, self.tls_cert, self.tls_key, self.client_ca, self.audit_log)


def main(argv: Sequence[str] | None = None) -> int:
    config = Config(**vars(parser().parse_args(argv)))
    sys.setswitchinterval(SWITCH_S)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    try:
        uvloop.run(serve(config))
    except QosError as e:
        print(f"j10ce-qos-controller-manager: {e}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("j10ce-qos-controller-manager", description="The control plane of j10ce-qos.")
    made.add_argument("--version", action="version", version=__version__)
    made.add_argument("--store", required=True, help=FORMS)
    made.add_argument("--listen", default="127.0.0.1:7443", help="address:port; port 0 takes a free one")
    made.add_argument("--token-file", type=Path, help="an admin's bearer token, mode 0600; made when missing")
    made.add_argument("--auth", type=Path, help="file of known tokens: names, roles and hashes; followed")
    made.add_argument("--kubeconfig", type=Path, help="written with address and token, mode 0600")
    made.add_argument("--agent-socket", type=Path, help="of the agent on this host; lists its workloads")
    made.add_argument("--tls-cert", type=Path, help="needed for every address that is not loopback")
    made.add_argument("--tls-key", type=Path)
    made.add_argument("--client-ca", type=Path, help="accept client certificates of this CA: CN=name, O=j10ce:ROLE")
    made.add_argument("--audit-log", type=Path, help="file that is told every write and every refusal, as JSON lines")
    return made


async def serve(config: Config) -> None:
    """Run until SIGTERM or SIGINT; everything acknowledged is on disk when it returns."""
    listener = listen(config)
    token = read_token(config.token_file) if config.token_file else ""
    store = open_store(config.store, wall)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    try:
        await ensure_built_in(store, builtin())
        await run(config, store, listener, token, stop)
    finally:
        await store.close()
        log.info("manager.stop")


async def run(config: Config, store: Store, listener: socket.socket, token: str, stop: asyncio.Event) -> None:
    view, metrics = View(store), Metrics()
    resources = Resources(Verbs(store, validate, wall), view, AgentProxy(config.agent_socket), stop)
    defence = Defence(config.guarding(token), store, wall, time.monotonic)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, defence.reload)
    beside = Placements(store, view, wall).routes()
    server = Server(build_app(defence.access, resources, view, metrics, defence.audit, beside), defence.tls)
    async with asyncio.TaskGroup() as group:
        keepers = [
            group.create_task(view.run()),
            group.create_task(persist(defence.run)),
            group.create_task(persist(lambda: keep_history(store, "QoSProfile"))),
            group.create_task(persist(lambda: keep_history(store, "MinimalReservationPolicy"))),
            group.create_task(persist(lambda: judge_policies(store, view, wall))),
            group.create_task(persist(lambda: judge_nodes(store, view, wall))),
            group.create_task(persist(lambda: keep_overcommit(store, view, wall))),
        ]
        serving = group.create_task(server.serve(sockets=[listener]))
        await view.ready()
        await defence.keyring.synced.wait()
        announce(config, listener, token)
        await asyncio.wait([serving, group.create_task(stop.wait())], return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        stop.set()
        await serving
        for keeper in keepers:
            keeper.cancel()


async def persist(keep: Callable[[], Awaitable[None]]) -> None:
    """A disk that is full stops the bookkeeping, not the manager: reads and watches go on."""
    while True:
        try:
            await keep()
        except* StoreError as e:
            log.error("store.fail", error=str(e.exceptions[0]))
            await asyncio.sleep(RETRY_S)


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
                backlog=1024,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=5,
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
    log.info("manager.start", server=server, store=config.store, version=__version__, pid=os.getpid())
    if where := os.environ.get("NOTIFY_SOCKET", ""):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(b"READY=1", where.replace("@", "\0", 1) if where.startswith("@") else where)


if __name__ == "__main__":
    sys.exit(main())
