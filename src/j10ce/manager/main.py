"""j10ce-qos-controller-manager: the composition root of the control plane."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import structlog
import uvloop

from j10ce.daemon.descriptors import raise_descriptor_limit
from j10ce.daemon.secret_files import read_token
from j10ce.errors import QosError
from j10ce.manager import config as settings
from j10ce.manager import logs
from j10ce.manager.config import Config
from j10ce.manager.fleet_plane import ControlPlane
from j10ce.manager.server import listen
from j10ce.manager.telemetry.trace import Tracer, open_tracer
from j10ce.model.schema import prime
from j10ce.store.schemes import elector_for, open_store
from j10ce.store.store import Store

if TYPE_CHECKING:
    from j10ce.manager.kube_plane import KubePlane

log = structlog.get_logger()
SWITCH_S: Final = 0.0005  # the store's writer takes the interpreter once per statement; it must not wait 5 ms each time
# Objects of the store are many and live long: looking through them at Python's own pace takes a fifth of the CPU.
COLLECT: Final = (20_000, 20, 10)
wall: Callable[[], float] = time.time  # noqa: TID251  the process's one wall clock


def main(argv: Sequence[str] | None = None) -> int:
    config = settings.read(argv)
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*COLLECT)
    gc.freeze()  # modules stay for good
    raise_descriptor_limit()  # every agent keeps two connections open
    logs.configure(config.log_format, config.log_level)
    try:
        uvloop.run(serve(config))
    except QosError as e:
        print(f"j10ce-qos-controller-manager: {e}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


async def serve(config: Config) -> None:
    """Run until SIGTERM or SIGINT; everything acknowledged is on disk when it returns."""
    listener = listen(config)
    tracer = open_tracer(config.otel_endpoint, config.identity)
    store = open_store(config.store, wall)
    try:
        plane = compose(config, store, tracer)
        prime()
        for signum in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(signum, plane.stop)
        await plane.run(listener)
    finally:
        await store.close()
        await asyncio.to_thread(tracer.close)
        log.info("manager.stop")


def compose(config: Config, store: Store, tracer: Tracer) -> ControlPlane | KubePlane:
    elector = elector_for(store, config.identity)
    if config.kubernetes:
        from j10ce.manager import kube_plane  # its HTTP client is heavy, and of an extra

        return kube_plane.KubePlane(config, store, elector, wall, tracer)
    token = read_token(config.token_file) if config.token_file else ""
    return ControlPlane(config, store, elector, token, wall, tracer)


if __name__ == "__main__":
    sys.exit(main())
