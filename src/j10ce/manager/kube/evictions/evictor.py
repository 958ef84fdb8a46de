"""Checks the evictions that agents ask for, asks the API server, and tells the pods.

A node speaks of its own pods alone, never of tier system, and is heard while it reports and its strategy says
`enforce`. Disruption budgets are the API server's to heed: what it does not allow now stays asked for until the agent
withdraws it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

import structlog
from msgspec import UNSET

from j10ce.errors import Conflict, Later, NotFound, StoreError
from j10ce.kube.client import KubeClient
from j10ce.kube.events import Subject
from j10ce.manager.documents.view import View
from j10ce.manager.kube.cluster_feed import Occupants
from j10ce.manager.kube.evictions.queue import EvictionQueue, Requested
from j10ce.manager.kube.narrator import subject_of
from j10ce.model.kinds import EvictionRequest, NodeQoS, Tier
from j10ce.model.kube.pod import Pod
from j10ce.model.parts.strategy import EVICTIONS_PER_MINUTE
from j10ce.model.stored import Happening

log = structlog.get_logger()
LOOK_S: Final = 1.0
SILENT_S: Final = 60.0  # a request of a node that has been silent for longer is not obeyed
Tell = Callable[[Subject, Happening], None]


class Evictor:
    def __init__(
        self, client: KubeClient, view: View, occupants: Occupants, wall: Callable[[], float], tell: Tell
    ) -> None:
        self._client, self._view, self._occupants, self._wall, self._tell = client, view, occupants, wall, tell
        self._queue = EvictionQueue()

    async def run(self) -> None:
        """For ever."""
        await self._view.ready()
        await self._occupants.ready()
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Once: what is due is asked for."""
        for request in self._queue.due(self._requests(), self._wall(), self._per_minute):
            await self._evict(request)

    def _requests(self) -> Iterator[Requested]:
        for node in self._view.nodes():
            if node.status.node.evictions and self._heard(node):
                for asked in node.status.node.evictions:
                    if self._pod(node.metadata.name, asked) is not None:
                        yield Requested(node.metadata.name, asked.namespace, asked.name, asked.uid, asked.why)

    def _heard(self, node: NodeQoS) -> bool:
        beat = node.status.node.heartbeat
        fresh = beat is not UNSET and abs(self._wall() - beat.timestamp()) < SILENT_S
        return fresh and self._view.documents.strategy(node.metadata.name).strategy.eviction.mode == "enforce"

    def _pod(self, node: str, asked: EvictionRequest) -> Pod | None:
        """The pod that is meant; None where there is none, it is ending, or the node has no say in it."""
        pod = self._occupants.pod(asked.namespace, asked.name)
        if pod is None or pod.metadata.uid != asked.uid or pod.spec.node_name != node:
            return None
        ending = pod.ended or pod.metadata.deletion_timestamp is not None
        system = self._occupants.choice(pod).tier is Tier.SYSTEM
        return None if ending or system else pod

    def _per_minute(self, node: str) -> int:
        said = self._view.documents.strategy(node).strategy.eviction.per_minute
        return EVICTIONS_PER_MINUTE if said is UNSET else said

    async def _evict(self, request: Requested) -> None:
        pod = self._occupants.pod(request.namespace, request.name)
        try:
            await self._client.evict(request.namespace, request.name, request.uid)
        except (NotFound, Conflict):  # gone meanwhile
            return
        except StoreError as e:
            budget = isinstance(e, Later)
            if self._queue.refused(request, self._wall()) and budget and pod is not None:
                text = f"{request.node} wants it to leave ({request.why}); a disruption budget does not allow it now"
                self._tell(subject_of(pod), Happening("Warning", "EvictionPending", text))
            log.info("evict.later", pod=f"{request.namespace}/{request.name}", node=request.node, error=str(e))
            return
        self._queue.granted(request, self._wall())
        log.info("evict.done", pod=f"{request.namespace}/{request.name}", node=request.node, why=request.why)
        if pod is not None:
            self._tell(subject_of(pod), Happening("Warning", "EvictedForQoS", f"{request.node}: {request.why}"))
