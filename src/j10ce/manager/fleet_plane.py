"""A manager of many hosts put together: what it serves at any time, and what it does while it leads."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from functools import partial

from j10ce.manager.access.own_writes import AuditedStore, whoever_asks
from j10ce.manager.access.security import Defence
from j10ce.manager.api.agent_proxy import AgentProxy
from j10ce.manager.api.place import Placements
from j10ce.manager.api.rest import ResourceRoutes
from j10ce.manager.api.verbs import Verbs
from j10ce.manager.app import build_app
from j10ce.manager.config import Config
from j10ce.manager.grpc.opening import Served, open_grpc
from j10ce.manager.keepers.run import HOSTS, persist
from j10ce.manager.plane import Foundation, Plane, Wall
from j10ce.manager.server import Server
from j10ce.manager.telemetry.trace import Tracer, traced
from j10ce.policy.validation.validate import validate
from j10ce.store.elector import Elector
from j10ce.store.store import Store


class ControlPlane:
    """Leader and follower alike serve reads, watches and writes: a write is a compare-and-swap in the store."""

    def __init__(self, config: Config, store: Store, elector: Elector, token: str, wall: Wall, tracer: Tracer) -> None:
        self._token, self._base = token, Foundation(config, store, wall, tracer)
        seen, view, metrics = self._base.store, self._base.view, self._base.metrics
        self._defence = Defence(config.guarding(token), seen, wall, time.monotonic)
        self._plane = Plane(self._base, elector, [self._defence.keyring.synced])
        metrics.watchers.set_function(lambda: float(self._defence.access.limits.watches))
        mirrors = {**view.mirrors, "Credential": self._defence.keyring.objects}
        audited = AuditedStore(seen, self._defence.audit, whoever_asks)
        verbs = Verbs(seen, validate, wall, mirrors, audited, view.documents.weights.check)
        placements, agent = Placements(seen, view, wall, audited=audited), AgentProxy(config.agent_socket)
        resources = ResourceRoutes(verbs, view, agent, self._plane.stopped)
        beside = [self._plane.health.route(), *placements.routes()]
        app = build_app(self._defence.access, resources, view, metrics, self._defence.audit, beside)
        self._server = Server(traced(app, tracer), self._defence.tls)
        served = Served(verbs, view, agent, placements)
        self._grpc = open_grpc(config, served, self._defence, metrics, tracer, self._plane.stopped)

    def stop(self) -> None:
        self._plane.stopped.set()

    async def run(self, listener: socket.socket) -> None:
        """Serve until `stop`."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._defence.reload)
        await self._plane.run(
            self._server,
            listener,
            keep=partial(self._base.keep, AuditedStore(self._base.store, self._defence.audit), HOSTS),
            always=[partial(persist, self._defence.run)],
            beside=[partial(self._grpc.run, self._plane.known)] if self._grpc else [],
            token=self._token,
            secure=self._defence.tls is not None,
        )
