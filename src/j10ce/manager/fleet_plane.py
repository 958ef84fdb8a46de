"""One manager put together: what it serves at any time, and what it does while it leads."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Callable, Iterable
from functools import partial

from prometheus_client.metrics_core import GaugeMetricFamily
from starlette.routing import Route

from j10ce.manager.access.own_writes import AuditedStore, whoever_asks
from j10ce.manager.access.security import Defence
from j10ce.manager.api.agent_proxy import AgentProxy
from j10ce.manager.api.place import Placements
from j10ce.manager.api.rest import Resources
from j10ce.manager.api.verbs import Verbs
from j10ce.manager.app import build_app
from j10ce.manager.config import Config
from j10ce.manager.documents import fleet_metrics
from j10ce.manager.documents.view import View
from j10ce.manager.grpc.opening import Served, open_grpc
from j10ce.manager.keepers.overcommit_file import StrategyFile
from j10ce.manager.keepers.run import keep_all, persist
from j10ce.manager.server import Server, announce
from j10ce.manager.telemetry.health import Health
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.manager.telemetry.observed_store import ObservedStore
from j10ce.manager.telemetry.trace import Tracer, traced
from j10ce.model.kinds import QoSProfile
from j10ce.policy.profiles import builtin
from j10ce.policy.validation.validate import validate
from j10ce.store.elector import Elector
from j10ce.store.store import Forgiving, Store

Wall = Callable[[], float]


class ControlPlane:
    """Leader and follower alike serve reads, watches and writes: a write is a compare-and-swap in the store."""

    def __init__(self, config: Config, store: Store, elector: Elector, token: str, wall: Wall, tracer: Tracer) -> None:
        self._config, self._elector, self._token, self._wall, self._tracer = config, elector, token, wall, tracer
        self._stop = asyncio.Event()
        self._wanted = {profile.metadata.name for profile in builtin()}
        metrics = Metrics()
        if isinstance(store, Forgiving):
            metrics.also(partial(_left_out, store))
        self._store = store = ObservedStore(store, metrics, tracer)
        self._view = View(store)
        self._strategies = StrategyFile(config.overcommit)
        self._defence = Defence(config.guarding(token), store, wall, time.monotonic)
        self._health = Health(store, elector, self._complete, metrics)
        metrics.also(partial(fleet_metrics.families, self._view))
        metrics.watchers.set_function(lambda: float(self._defence.access.limits.watches))
        mirrors = {**self._view.mirrors, "Credential": self._defence.keyring.objects}
        told = AuditedStore(store, self._defence.audit, whoever_asks)
        self._verbs = Verbs(store, validate, wall, mirrors, told, self._view.documents.weights.check)
        self._placements = Placements(store, self._view, wall, told=told)
        agent = AgentProxy(config.agent_socket)
        resources = Resources(self._verbs, self._view, agent, self._stop)
        app = build_app(self._defence.access, resources, self._view, metrics, self._defence.audit, self._beside())
        self._server = Server(traced(app, tracer), self._defence.tls)
        served = Served(self._verbs, self._view, agent, self._placements)
        self._grpc = open_grpc(config, served, self._defence, metrics, tracer, self._stop)

    def stop(self) -> None:
        self._stop.set()

    async def run(self, listener: socket.socket) -> None:
        """Serve until `stop`; leadership is handed over at once, and what is under way is finished."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._defence.reload)
        async with asyncio.TaskGroup() as group:
            always = [
                group.create_task(persist(self._view.run)),
                group.create_task(persist(self._defence.run)),
                group.create_task(self._health.run()),
                group.create_task(self._strategies.run()),
            ]
            leading = group.create_task(persist(self._lead))
            serving = group.create_task(self._server.serve(sockets=[listener]))
            ready = group.create_task(self._ready(listener))
            if self._grpc is not None:
                group.create_task(self._grpc.run(self._known))
            await asyncio.wait([serving, group.create_task(self._stop.wait())], return_when=asyncio.FIRST_COMPLETED)
            leading.cancel()
            ready.cancel()
            self._stop.set()
            self._server.should_exit = True
            await serving
            for task in always:
                task.cancel()

    async def _lead(self) -> None:
        limit, strategies = self._config.namespace_limit, self._strategies
        keep = partial(keep_all, AuditedStore(self._store, self._defence.audit), self._view, self._wall, self._tracer)
        await self._elector.lead(partial(keep, namespace_limit=limit, strategies=strategies))

    async def _ready(self, listener: socket.socket) -> None:
        await self._known()
        announce(self._config, listener, self._token, secure=self._defence.tls is not None)

    async def _known(self) -> None:
        """Returns once there is everything that answers are made of, whoever leads."""
        await self._view.ready()
        await self._defence.keyring.synced.wait()
        while not self._complete():
            await self._view.objects.moved(self._view.objects.epoch)

    def _complete(self) -> bool:
        """Everything is read, and the built-in profiles are there: a document without them would be refused."""
        if not self._view.complete or not self._defence.keyring.synced.is_set():
            return False
        there = {profile.metadata.name for profile in self._view.all(QoSProfile)}
        return self._wanted <= there

    def _beside(self) -> list[Route]:
        return [self._health.route(), *self._placements.routes()]


def _left_out(store: Forgiving) -> Iterable[GaugeMetricFamily]:
    return fleet_metrics.unreadable(store.unreadable())
