"""A manager of a Kubernetes cluster put together: the same keepers as of a fleet, on CRDs.

The API server keeps the objects, knows its users and serves both; this process serves what Kubernetes asks of it:
health, metrics, the Scheduler Extender and webhooks.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from functools import partial
from typing import Final

from starlette.responses import PlainTextResponse
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from j10ce.dialects.koordinator.overrides import classed
from j10ce.errors import Denied, NotFound
from j10ce.kube.events import Recorder
from j10ce.manager.access.auth import is_loopback
from j10ce.manager.access.tls import follow_files, reload_certificate, server_context
from j10ce.manager.app import document, fixed
from j10ce.manager.asgi.requests import BASE
from j10ce.manager.config import Config
from j10ce.manager.documents import fleet_metrics
from j10ce.manager.keepers.run import Keep, Surroundings, persist
from j10ce.manager.kube import extender, webhook
from j10ce.manager.kube.cluster_feed import Occupants, as_it_is
from j10ce.manager.kube.doors import Doors, KubernetesDoor
from j10ce.manager.kube.evictions.evictor import Evictor
from j10ce.manager.kube.extender import ExtenderDoor
from j10ce.manager.kube.koordinator.admission import KoordinatorRules
from j10ce.manager.kube.koordinator.strategies import ConfigMapName, StrategyKeeper, following
from j10ce.manager.kube.leader_address import keep_address
from j10ce.manager.kube.metrics import DoorMetrics
from j10ce.manager.kube.narrator import Narrator
from j10ce.manager.kube.nodes import keep_extended, keep_owned
from j10ce.manager.kube.roster import KubeRoster
from j10ce.manager.kube.webhook import PodRules, WebhookDoor
from j10ce.manager.kube.webhook_certs import Certificates, GivenAuthority
from j10ce.manager.openapi import discovery
from j10ce.manager.plane import Foundation, Plane, Wall
from j10ce.manager.server import Server
from j10ce.manager.telemetry.trace import Tracer
from j10ce.model.kinds import QoSProfile
from j10ce.scheduler.extender.extender import Extender
from j10ce.scheduler.extender.occupancy import Occupancy
from j10ce.scheduler.extender.offers import Offers
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

    def __init__(self, config: Config, store: Store, elector: Elector, wall: Wall, tracer: Tracer) -> None:
        """Raises Denied where a given certificate cannot be used."""
        check(config)
        if not isinstance(store, KubeStore):
            raise TypeError(f"a {type(store).__name__} is no cluster")
        self._config, self._wall, self._client = config, wall, store.client
        self._base = Foundation(config, store, wall, tracer)
        self._occupancy, self._offers = Occupancy(), Offers()
        translate = classed if "koordinator" in config.dialects else as_it_is
        self._occupants = Occupants(self._base.store, self._base.view, wall, self._occupancy, self._offers, translate)
        self._events = Recorder(store.client, SERVICE, config.identity, wall)
        self._koordinator = self._dialect()
        awaited = [*self._occupants.synced, *(self._koordinator.answered if self._koordinator else ())]
        self._plane = Plane(self._base, elector, awaited, store.refused)
        if certificates := self._own_certificates():
            self._base.metrics.also(lambda: fleet_metrics.certificates(certificates.ends))
        self._certificates = certificates
        self._tls = self._certificates.context if self._certificates else tls_of(config)
        self._server = Server(self._app(elector), self._tls)

    def stop(self) -> None:
        self._plane.stopped.set()

    async def run(self, listener: socket.socket) -> None:
        """Serve until `stop`."""
        always: list[Keep] = [partial(persist, self._occupants.run), *self._keeping_certificates()]
        always += [self._koordinator.run] if self._koordinator else []
        secure = self._tls is not None
        await self._plane.run(self._server, listener, keep=self._keep, always=always, secure=secure)

    async def _keep(self) -> None:
        await self._occupants.ready()  # a fleet without pods would look empty
        store, view = self._base.store, self._base.view
        also: dict[str, Keep] = {
            "owners of nodes": lambda: keep_owned(store, view, self._occupants),
            "extended resources": lambda: keep_extended(
                self._client, view, self._occupants, theirs=self._koordinator is not None
            ),
            "evictions": Evictor(self._client, view, self._occupants, self._wall, self._events.tell_of).run,
            "events": self._events.run,
            "events of pods and nodes": Narrator(self._occupants, view, self._events.tell_of).run,
        }
        if self._koordinator:
            also["strategies of Koordinator"] = self._strategies().run
        if self._config.advertise:
            where = partial(keep_address, self._client, self._client.namespace, self._config.advertise)
            also["address of the extender"] = where
        roster = partial(KubeRoster, self._occupants, self._occupancy)
        around = Surroundings(roster, self._events.tell, also, LONGEST_REST_S, collects=False)
        await self._base.keep(store, around)

    def _dialect(self) -> KoordinatorRules | None:
        occupants = self._occupants
        if "koordinator" not in self._config.dialects:
            return None
        return KoordinatorRules(self._client, occupants.known_namespace, occupants.nodes, self._config_map)

    def _strategies(self) -> StrategyKeeper:
        where, nodes, tell = self._config_map, self._occupants.nodes, self._events.tell_of
        return StrategyKeeper(self._base.store, self._base.view, nodes, following(self._client, where), where, tell)

    @property
    def _config_map(self) -> ConfigMapName:
        return ConfigMapName(*self._config.koordinator_config.split("/"))

    def _own_certificates(self) -> Certificates | None:
        """Made and renewed by ourselves, unless files are given or nobody else can connect."""
        if self._config.tls_cert or is_loopback(self._config.listen):
            return None
        namespace = self._client.namespace
        hosts = (f"{SERVICE}.{namespace}.svc", f"{SERVICE}.{namespace}", f"{SERVICE}.{namespace}.svc.cluster.local")
        return Certificates(self._client, namespace, hosts, self._wall, client_ca=self._config.client_ca)

    def _keeping_certificates(self) -> list[Keep]:
        """What keeps ours, or keeps up with those that somebody else renews."""
        if self._certificates:
            return [self._certificates.run]
        config, keeping = self._config, list[Keep]()
        if self._tls and config.tls_cert and config.tls_key:
            again = partial(reload_certificate, self._tls, config.tls_cert, config.tls_key)
            keeping.append(partial(follow_files, {(config.tls_cert, config.tls_key): again}, asyncio.Event()))
        if config.webhook_ca:
            keeping.append(GivenAuthority(self._client, config.webhook_ca).run)
        return keeping

    def _profiles(self) -> list[QoSProfile] | None:
        return self._base.view.all(QoSProfile) if self._base.view.complete else None

    def _app(self, elector: Elector) -> ASGIApp:
        store, metrics = self._base.store, self._base.metrics
        routes = [
            fixed("/healthz", lambda: PlainTextResponse("ok\n")),
            self._plane.health.route(),
            fixed("/metrics", metrics.render),
            document("/version", discovery.version(), ""),
        ]
        seen, leads = DoorMetrics(metrics.registry), lambda: elector.leader
        decides = Extender(self._occupancy, self._offers)
        pods = PodRules(store, self._occupants.known_namespace, self._profiles)
        doors: dict[str, KubernetesDoor] = {
            extender.PREFIX: ExtenderDoor(self._occupants, decides, leads, time.monotonic, seen),
            webhook.PREFIX: WebhookDoor(pods, store, seen, closed=self._config.fail_closed, foreign=self._koordinator),
        }
        router = Router(routes, default=_nothing_there, redirect_slashes=False)
        return Doors(router, doors, seen.answered, time.monotonic)


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
