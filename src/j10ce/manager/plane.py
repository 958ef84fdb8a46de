"""What managers of a fleet of hosts and of a Kubernetes cluster have in common: the parts that both are made of, and
how both run."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from j10ce.manager.config import Config
from j10ce.manager.documents import fleet_metrics
from j10ce.manager.documents.view import View
from j10ce.manager.keepers.overcommit_file import StrategyFile
from j10ce.manager.keepers.run import Keep, Surroundings, awaited, keep_all, persist
from j10ce.manager.server import Server, announce
from j10ce.manager.telemetry.health import Health
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.manager.telemetry.observed_store import ObservedStore
from j10ce.manager.telemetry.trace import Tracer
from j10ce.model.kinds import QoSProfile
from j10ce.policy.profiles import builtin
from j10ce.store.elector import Elector
from j10ce.store.store import Forgiving, Store

Wall = Callable[[], float]


class Foundation:
    """The objects in memory and what is measured of them; everything else of a manager stands on this."""

    def __init__(self, config: Config, store: Store, wall: Wall, tracer: Tracer) -> None:
        self.config, self.wall, self.tracer = config, wall, tracer
        self.metrics = Metrics()
        self.store = ObservedStore(store, self.metrics, tracer)
        self.view = View(self.store)
        self.strategies = StrategyFile(config.overcommit)
        self.metrics.also(partial(fleet_metrics.families, self.view))
        if isinstance(store, Forgiving):
            self.metrics.also(lambda: fleet_metrics.unreadable(store.unreadable()))

    async def keep(self, store: Store, around: Surroundings) -> None:
        """What a leader does, for ever; `store` is what it writes to."""
        limit, strategies = self.config.namespace_limit, self.strategies
        keep = partial(keep_all, store, self.view, self.wall, self.tracer)
        await keep(namespace_limit=limit, strategies=strategies, around=around)


class Plane:
    """`synced`: what has to be read beside the view. `refused`: what the store does not let us do beside what is seen
    on the way to it."""

    def __init__(
        self,
        base: Foundation,
        elector: Elector,
        synced: Sequence[asyncio.Event],
        refused: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._base, self._elector, self._synced = base, elector, synced
        self._wanted = {profile.metadata.name for profile in builtin()}
        self.stopped = asyncio.Event()
        self.health = Health(base.store, elector, self.complete, base.metrics, refused)

    def complete(self) -> bool:
        """Everything is read, and the built-in profiles are there: a document without them would be refused, and pods
        may name them."""
        if not self._base.view.complete or not all(event.is_set() for event in self._synced):
            return False
        return self._wanted <= {profile.metadata.name for profile in self._base.view.all(QoSProfile)}

    async def known(self) -> None:
        """Returns once there is everything that answers are made of, whoever leads."""
        view = self._base.view
        await view.ready()
        for event in self._synced:
            await event.wait()
        while not self.complete():
            await view.objects.moved(view.objects.epoch)

    async def run(
        self,
        server: Server,
        listener: socket.socket,
        *,
        keep: Keep,
        always: Iterable[Keep],
        beside: Iterable[Keep] = (),
        token: str = "",
        secure: bool,
    ) -> None:
        """Serve until `stopped`; leadership is handed over at once, and what is under way is finished.

        `keep` is done while this manager leads, `always` until the last answer is given; `beside` ends by itself.
        """
        view, base = self._base.view, self._base
        async with asyncio.TaskGroup() as group:
            running: list[Keep] = [partial(persist, view.run), self.health.run, base.strategies.run, *always]
            until_served = [group.create_task(awaited(part)) for part in running]
            leading = group.create_task(persist(lambda: self._elector.lead(keep)))
            serving = group.create_task(server.serve(sockets=[listener]))
            ready = group.create_task(self._announced(listener, token, secure=secure))
            for part in beside:
                group.create_task(awaited(part))
            stopping = group.create_task(self.stopped.wait())
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
            leading.cancel()
            ready.cancel()
            self.stopped.set()
            server.should_exit = True
            await serving
            for task in until_served:
                task.cancel()

    async def _announced(self, listener: socket.socket, token: str, *, secure: bool) -> None:
        await self.known()
        announce(self._base.config, listener, token, secure=secure)
