"""Follows the cluster into the core: on every replica, whoever leads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from j10ce.model.stored import Event, Key
from j10ce.scheduler.book.facts import OwnerFacts, PodFacts
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.process.cluster.kinds import FIRST, Held
from j10ce.scheduler.process.cluster.promises import LOOK_S, Promises
from j10ce.scheduler.reading.owners import Owners
from j10ce.store.mirror import Mirror, MirrorSource

TOGETHER: Final = 200  # objects looked at before others have a turn


class Followed(NamedTuple):
    """Who hears of changes beside the core."""

    moved: Callable[[], None]
    seen: Callable[[PodFacts], None]  # after the core
    gone: Sequence[Callable[[str], None]]  # the uid of a pod


class ClusterFeed:
    def __init__(
        self,
        source: MirrorSource,
        kinds: Sequence[str],
        scheduler: Scheduler,
        owners: Owners,
        wall: Callable[[], float],
        followed: Followed,
    ) -> None:
        self._scheduler, self._owners, self._wall, self._followed = scheduler, owners, wall, followed
        self._promises = Promises(scheduler, wall)
        self._mirrors = {kind: Mirror(source, kind) for kind in kinds}

    @property
    def unread(self) -> Sequence[str]:
        """Kinds of which the first listing is not there yet."""
        return [kind for kind, mirror in self._mirrors.items() if not mirror.synced.is_set()]

    def uids(self) -> set[str]:
        """Of all pods that are there, whoever schedules them."""
        held: Mapping[Key, Any] = self._mirrors["Pod"].held
        return {pod.fact.uid for pod in held.values()}

    async def ready(self) -> None:
        for mirror in self._mirrors.values():
            await mirror.synced.wait()

    async def run(self) -> None:
        """For ever. Pods are read once their owners are."""
        async with asyncio.TaskGroup() as group:
            for kind in self._mirrors:
                group.create_task(self._follow(kind))
            group.create_task(self._expire())

    async def _follow(self, kind: str) -> None:
        if kind == "Pod":
            for first in FIRST:
                await self._mirrors[first].synced.wait()
        count = 0
        async for event in self._mirrors[kind].changes():
            self._take(kind, event)
            self._followed.moved()
            count += 1
            if count % TOGETHER == 0:
                await asyncio.sleep(0)

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self._promises.expire()

    def _take(self, kind: str, event: Event) -> None:
        held: Any = event.object
        gone, now = event.type == "DELETED", self._wall()
        if not isinstance(held, Held):
            self._promises.take(held, gone=gone)
            return
        match kind:
            case "Pod":
                self._pod(held, now, gone=gone)
            case "Node" if gone:
                self._scheduler.remove_node(held.metadata.name, now)
            case "Node":
                self._scheduler.put_node(held.fact, now)
            case _:
                self._fact(held, now, gone=gone)

    def _pod(self, held: Held, now: float, *, gone: bool) -> None:
        if gone:
            for gone_from in self._followed.gone:
                gone_from(held.fact.uid)
            self._scheduler.remove_pod(held.fact.uid, now)
        else:
            self._scheduler.put_pod(held.fact, now)
            self._followed.seen(held.fact)

    def _fact(self, held: Held, now: float, *, gone: bool) -> None:
        if gone and isinstance(held.fact, OwnerFacts):
            self._owners.remove(held.kind, held.metadata.namespace, held.metadata.name)
        if gone:
            self._scheduler.remove_fact(held.fact, now)
        else:
            self._scheduler.put_fact(held.fact, now)


def sizes(places: Mapping[str, int]) -> Mapping[str, int]:
    """Pending pods by queue, as metrics name them."""
    return {place.replace("-", ""): count for place, count in places.items()}
