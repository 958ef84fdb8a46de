"""j10ce-qos-scheduler: the composition root of the scheduler."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, Final, TypeVar

import structlog
import uvloop

from j10ce import __version__
from j10ce.daemon import logs
from j10ce.daemon.clock import SystemClock
from j10ce.errors import Invalid, QosError, Unavailable
from j10ce.http.retry import pauses
from j10ce.kube.access import KubeAccess, read_access
from j10ce.kube.client import KubeClient
from j10ce.kube.events import Recorder
from j10ce.scheduler.process import options
from j10ce.scheduler.process.clock import SteadyWall
from j10ce.scheduler.process.cluster import kinds
from j10ce.scheduler.process.compose import Composed, composed
from j10ce.scheduler.process.departures import DepartureLog
from j10ce.scheduler.process.history import HistoryKeeper
from j10ce.scheduler.process.options import NAME, Options
from j10ce.scheduler.process.page import bind
from j10ce.scheduler.process.process import SchedulerProcess
from j10ce.scheduler.reading.owners import Owners
from j10ce.scheduler.reading.pods import PodReader
from j10ce.store.elector import Alone
from j10ce.store.kube.elector import kube_elector
from j10ce.store.kube.store import KubeStore

log = structlog.get_logger()
T = TypeVar("T")
COLLECT: Final = (50_000, 20, 50)  # facts are many and live long: to look through them costs more than they leave
KEPT_CHANGES: Final = 4096  # of a kind, until the core has taken them in


def main(argv: Sequence[str] | None = None) -> int:
    chosen = options.read(argv)
    gc.set_threshold(*COLLECT)
    gc.freeze()
    logs.configure(chosen.log_level, logs.JSON if chosen.log_format == "json" else None)
    try:
        uvloop.run(serve(chosen))
    except QosError as e:
        print(f"{NAME}: {e}", file=sys.stderr)  # noqa: T201
        return 3 if isinstance(e, Invalid) else 1
    return 0


async def serve(chosen: Options) -> None:
    """Run until SIGTERM or SIGINT."""
    stopped = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stopped.set)
    wall = SteadyWall(SystemClock())
    parts = composed(chosen.config)
    if chosen.qos_log is not None:
        parts.accounts.listen(DepartureLog(chosen.qos_log).departed)
    page = bind(chosen.listen, "--listen", loopback=True)
    health = bind(chosen.health_listen, "--health-listen", loopback=False) if chosen.health_listen else None
    access = read_access(chosen.store, os.environ, wall=wall)
    log.info("scheduler.start", page=chosen.listen, identity=chosen.identity, version=__version__, pid=os.getpid())
    if (versions := await unless(stopped, versions_of(access))) is not None:
        for what, why in kinds.missing(versions).items():
            log.info("kind.skip", kind=what, reason=why)
        owners = Owners()
        following = kinds.kinds(versions, owners, PodReader(owners.top))
        store = KubeStore(access, wall, kept=KEPT_CHANGES, kinds=following)
        try:
            await process(chosen, parts, store, owners, wall, stopped).run(page, health)
        finally:
            await store.close()
    log.info("scheduler.stop")


def process(
    chosen: Options, parts: Composed, store: KubeStore, owners: Owners, wall: SteadyWall, stopped: asyncio.Event
) -> SchedulerProcess:
    election = parts.settings.election
    lease = chosen.lease or election.resource_name or NAME
    elects = election.leader_elect if chosen.leader_elect is None else chosen.leader_elect
    elector = kube_elector(store.client, chosen.identity, wall, name=lease)
    return SchedulerProcess(
        store,
        parts.scheduler,
        owners,
        elector if elects else Alone(chosen.identity),
        Recorder(store.client, NAME, chosen.identity, wall),
        HistoryKeeper(store.client, parts.accounts, wall),
        wall,
        stopped,
    )


async def unless(stopped: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` returns; None where it was stopped before."""
    async with asyncio.TaskGroup() as group:
        working, stopping = group.create_task(work), group.create_task(stopped.wait())
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        for task in (working, stopping):
            task.cancel()
    return None if working.cancelled() else working.result()


async def versions_of(access: KubeAccess) -> Collection[str]:
    """What the API server serves; waits for one that is away."""
    client, tries = KubeClient(access), pauses(first_s=0.5, most_s=10.0)
    try:
        while True:
            try:
                return await kinds.served(client)
            except Unavailable as e:
                log.warning("api.away", error=str(e))
                await asyncio.sleep(next(tries))
    finally:
        await client.close()


if __name__ == "__main__":
    sys.exit(main())
