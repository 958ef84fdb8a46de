"""A manager of a Kubernetes cluster put together: the same keepers as of a fleet, on CRDs.

The API server keeps the objects, knows its users and serves both; this process serves what Kubernetes asks of it:
health, metrics, the Scheduler Extender and webhooks.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from starlette.responses import PlainTextResponse
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from j10ce.errors import Denied, NotFound, QosError
from j10ce.manager.access.auth import is_loopback
from j10ce.manager.access.tls import follow_files, reload_certificate, server_context
from j10ce.manager.app import document, fixed
from j10ce.manager.asgi.endpoints import Door, Doors
from j10ce.manager.asgi.requests import BASE
from j10ce.manager.asgi.status import answer
from j10ce.manager.config import Config
from j10ce.manager.documents import fleet_metrics
from j10ce.manager.documents.view import View
from j10ce.manager.keepers.overcommit_file import StrategyFile
from j10ce.manager.keepers.run import Keep, Surroundings, keep_all, persist
from j10ce.manager.kube import extender, webhook
from j10ce.manager.kube.cluster_feed import Occupants
from j10ce.manager.kube.events import Recorder
from j10ce.manager.kube.extender import ExtenderDoor
from j10ce.manager.kube.leader_address import keep_address
from j10ce.manager.kube.metrics import DoorMetrics
from j10ce.manager.kube.narrator import Narrator
from j10ce.manager.kube.nodes import keep_extended, keep_owned
from j10ce.manager.kube.roster import KubeRoster
from j10ce.manager.kube.webhook import WebhookDoor
from j10ce.manager.kube.webhook_certs import Certificates, GivenAuthority
from j10ce.manager.kube.webhook_pods import PodRules
from j10ce.manager.openapi import discovery
from j10ce.manager.server import Server, announce
from j10ce.manager.telemetry.health import Health
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.manager.telemetry.observed_store import ObservedStore
from j10ce.manager.telemetry.trace import Tracer
from j10ce.model.kinds import QoSProfile
from j10ce.policy.profiles import builtin
from j10ce.store.elector import Elector
from j10ce.store.kube.store import KubeStore
from j10ce.store.store import Store

LONGEST_REST_S: Final = 0.5  # pods wait for units that move; agents here ask the API server, not this process
SERVICE: Final = "j10ce-controller-manager"
ELSEWHERE: Final = (
    "objects are kept by Kubernetes: use kubectl, or j10ce-qos --kubeconfig with the cluster's own kubeconfig; "
    "tokens, enrolment and placements exist on fleets of hosts alone"
)


class KubePlane:
    """Leader and follower alike answer webhooks; the leader alone keeps status, events and nodes true."""

    def __init__(
        self, config: Config, store: Store, elector: Elector, wall: Callable[[], float], tracer: Tracer
    ) -> None:
        """Raises Denied where a given certificate cannot be used."""
        check(config)
        self._config, self._elector, self._wall, self._tracer = config, elector, wall, tracer
        if not isinstance(store, KubeStore):
            raise TypeError(f"a {type(store).__name__} is no cluster")
        self._client, self._stop = store.client, asyncio.Event()
        self._wanted = {profile.metadata.name for profile in builtin()}
        metrics = Metrics()
        self._store = ObservedStore(store, metrics, tracer)
        self._view = View(self._store)
        self._strategies = StrategyFile(config.overcommit)
        self._occupants = Occupants(self._store, self._view, wall)
        self._events = Recorder(store.client, config.identity, wall)
        self._health = Health(self._store, elector, self._complete, metrics, store.refused)
        metrics.also(partial(fleet_metrics.families, self._view))
        metrics.also(lambda: fleet_metrics.unreadable(store.unreadable()))
        if certificates := self._own_certificates():
            metrics.also(lambda: fleet_metrics.certificates(certificates.ends))
        self._certificates = certificates
        self._tls = self._certificates.context if self._certificates else tls_of(config)
        self._server = Server(self._app(metrics), self._tls)

    def stop(self) -> None:
        self._stop.set()

    async def run(self, listener: socket.socket) -> None:
        """Serve until `stop`; leadership is handed over at once, and what is under way is finished."""
        async with asyncio.TaskGroup() as group:
            always = [
                group.create_task(persist(self._view.run)),
                group.create_task(persist(self._occupants.run)),
                group.create_task(self._health.run()),
                group.create_task(self._strategies.run()),
            ]
            always += [group.create_task(keep()) for keep in self._keeping_certificates()]
            leading = group.create_task(persist(self._lead))
            serving = group.create_task(self._server.serve(sockets=[listener]))
            ready = group.create_task(self._announce(listener))
            await asyncio.wait([serving, group.create_task(self._stop.wait())], return_when=asyncio.FIRST_COMPLETED)
            leading.cancel()
            ready.cancel()
            self._stop.set()
            self._server.should_exit = True
            await serving
            for task in always:
                task.cancel()

    async def _lead(self) -> None:
        await self._elector.lead(self._keep)

    async def _keep(self) -> None:
        await self._occupants.ready()  # a fleet without pods would look empty
        also: dict[str, Keep] = {
            "owners of nodes": lambda: keep_owned(self._store, self._view, self._occupants),
            "extended resources": lambda: keep_extended(self._client, self._view, self._occupants),
            "events": self._events.run,
            "events of pods and nodes": Narrator(self._occupants, self._view, self._events.tell_of).run,
        }
        if self._config.advertise:
            where = partial(keep_address, self._client, self._client.namespace, self._config.advertise)
            also["address of the extender"] = where
        around = Surroundings(
            partial(KubeRoster, self._occupants), self._events.tell, also, LONGEST_REST_S, collects=False
        )
        keep = partial(keep_all, self._store, self._view, self._wall, self._tracer, strategies=self._strategies)
        await keep(namespace_limit=self._config.namespace_limit, around=around)

    async def _announce(self, listener: socket.socket) -> None:
        await self._view.ready()
        await self._occupants.ready()
        while not self._complete():
            await self._view.objects.moved(self._view.objects.epoch)
        announce(self._config, listener, "", secure=self._tls is not None)

    def _complete(self) -> bool:
        """Everything is read, and the built-in profiles are there: pods may name them."""
        if not self._occupants.complete:
            return False
        return self._wanted <= {profile.metadata.name for profile in self._view.all(QoSProfile)}

    def _own_certificates(self) -> Certificates | None:
        """Made and renewed by ourselves, unless files are given or nobody else can connect."""
        if self._config.tls_cert or is_loopback(self._config.listen):
            return None
        namespace = self._client.namespace
        hosts = (f"{SERVICE}.{namespace}.svc", f"{SERVICE}.{namespace}", f"{SERVICE}.{namespace}.svc.cluster.local")
        return Certificates(self._client, namespace, hosts, self._wall, client_ca=self._config.client_ca)

    def _keeping_certificates(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        """What keeps ours, or keeps up with those that somebody else renews."""
        if self._certificates:
            return [self._certificates.run]
        config, keeping = self._config, list[Callable[[], Coroutine[Any, Any, None]]]()
        if self._tls and config.tls_cert and config.tls_key:
            again = partial(reload_certificate, self._tls, config.tls_cert, config.tls_key)
            keeping.append(partial(follow_files, {(config.tls_cert, config.tls_key): again}, asyncio.Event()))
        if config.webhook_ca:
            keeping.append(GivenAuthority(self._client, config.webhook_ca).run)
        return keeping

    def _profiles(self) -> list[QoSProfile] | None:
        return self._view.all(QoSProfile) if self._view.complete else None

    def _app(self, metrics: Metrics) -> ASGIApp:
        routes = [
            fixed("/healthz", lambda: PlainTextResponse("ok\n")),
            self._health.route(),
            fixed("/metrics", metrics.render),
            document("/version", discovery.version(), ""),
        ]
        seen, leads = DoorMetrics(metrics.registry), lambda: self._elector.leader
        pods = PodRules(self._store, self._occupants.known_namespace, self._profiles)
        doors: dict[str, Door] = {
            extender.PREFIX: ExtenderDoor(self._occupants, leads, time.monotonic, seen),
            webhook.PREFIX: WebhookDoor(pods, self._store, seen, closed=self._config.fail_closed),
        }
        return Doors(Answering(Router(routes, default=_nothing_there, redirect_slashes=False)), doors, seen.answered)


class Answering:
    """Every refusal as a Status."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except QosError as e:
            await answer(e)(scope, receive, send)


def check(config: Config) -> None:
    """Raises Denied for options that do not go together."""
    if bool(config.tls_cert) != bool(config.tls_key):
        raise Denied("--tls-cert and --tls-key go together: give both")
    if config.webhook_ca and not config.tls_cert:
        raise Denied("--webhook-ca is for a certificate that you give: add --tls-cert and --tls-key, or leave it out")


def tls_of(config: Config) -> ssl.SSLContext | None:
    """By files; None where none are given. Raises Denied."""
    if config.tls_cert and config.tls_key:
        return server_context(config.tls_cert, config.tls_key, config.client_ca)
    return None


async def _nothing_there(scope: Scope, receive: Receive, send: Send) -> None:
    path: str = scope["path"]
    raise NotFound(f"there is no {path}" + (f"; {ELSEWHERE}" if path.startswith(BASE) else ""))
