"""One replica of the scheduler put together: what it follows, what it decides while it leads, what it answers."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from j10ce.http.server import listen
from j10ce.kube.events import Recorder
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.process.cluster.faults import Faults
from j10ce.scheduler.process.cluster.feed import ClusterFeed, Followed, sizes
from j10ce.scheduler.process.deciding import Deciding
from j10ce.scheduler.process.hands import Hands
from j10ce.scheduler.process.history import HistoryKeeper
from j10ce.scheduler.process.metrics import SchedulerMetrics
from j10ce.scheduler.process.page import Page, Shown
from j10ce.scheduler.reading.owners import Owners
from j10ce.store.elector import Alone, ClaimElector
from j10ce.store.kube.elector import KubeClaim
from j10ce.store.kube.store import KubeStore

log = structlog.get_logger()
EVENT_WRITERS: Final = 8


class SchedulerProcess:
    def __init__(
        self,
        store: KubeStore,
        scheduler: Scheduler,
        owners: Owners,
        elector: ClaimElector[KubeClaim] | Alone,
        recorder: Recorder,
        history: HistoryKeeper,
        wall: Callable[[], float],
        stopped: asyncio.Event,
    ) -> None:
        self._scheduler, self._elector, self._recorder, self._history = scheduler, elector, recorder, history
        self.metrics = SchedulerMetrics()
        self.metrics.watch(self._queues, lambda: elector.leader)
        self._deciding = Deciding(scheduler, wall, self.metrics)
        self._hands = Hands(store.client, self._deciding, self._leads, recorder.tell_of, self.metrics)
        faults = Faults(history.accounts, recorder.tell_of, self._leads)
        followed = Followed(self._deciding.moved.ring, faults.seen, (self._hands.forget, faults.gone))
        self._feed = ClusterFeed(store, store.kinds, scheduler, owners, wall, followed)
        self.stopped = stopped

    def page(self) -> Page:
        return Page(Shown(self._history.table, self._history.data, self._problem, self._role, self.metrics))

    async def run(self, page: socket.socket, health: socket.socket | None) -> None:
        """Until `stopped`: leadership is handed over at once, and bindings that are on their way end."""
        await self._history.read()
        shown = self.page()
        async with asyncio.TaskGroup() as group:
            always = [group.create_task(self._feed.run()), group.create_task(listen(page, shown))]
            if health is not None:
                always.append(group.create_task(listen(health, shown.health)))
            always += [group.create_task(self._recorder.run()) for _ in range(EVENT_WRITERS)]
            always.append(group.create_task(self._history.follow(self._feed.ready, self._feed.uids)))
            leading = group.create_task(self._elector.lead(self._lead))
            await self.stopped.wait()
            leading.cancel()
            await asyncio.wait([leading])
            for task in always:
                task.cancel()

    async def _lead(self) -> None:
        await self._history.ready.wait()
        gc.collect()
        gc.freeze()  # what was read first stays for long: nobody looks through it again
        log.info("scheduler.lead", nodes=int(self._scheduler.book.alive.sum()), pods=len(self._scheduler.book.pods))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._hands.run())
            group.create_task(self._history.keep())
            group.create_task(self._deciding.run(self._hands))

    def _leads(self) -> bool:
        return self._elector.certain

    def _queues(self) -> Mapping[str, int]:
        return sizes(Counter(pending.place for pending in self._scheduler.pending()))

    def _problem(self) -> str:
        unread = self._feed.unread
        return f"still being read: {', '.join(unread)}" if unread else ""

    def _role(self) -> str:
        return "leader" if self._elector.leader else f"follower of {self._elector.holder or 'nobody yet'}"
