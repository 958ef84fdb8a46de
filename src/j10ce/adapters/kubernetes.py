"""The pods of one node: what the API server tells of them, put together with the cgroups that are there.

A pod is a workload from the moment its cgroup exists until that is gone, whatever its phase. While the API server is
away the pods it listed last stay, whoever has a cgroup; those of a kubelet, or remembered from before a restart, stand
in until it answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

from j10ce.adapters.adapter import Adapter, WorkloadEvent
from j10ce.adapters.kubernetes_cgroups import PodTree
from j10ce.adapters.kubernetes_workload import cgroup_uid, in_use, running, workload
from j10ce.errors import NotFound
from j10ce.model.bounds import MOST_TEXT
from j10ce.model.kinds import EvictionRequest
from j10ce.model.knob import TargetId
from j10ce.model.knob import workload as target_of
from j10ce.model.kube.native import Namespace
from j10ce.model.kube.pod import Pod
from j10ce.model.stored import Key
from j10ce.model.workload import Handle, Workload
from j10ce.store.mirror import Mirror

SOON_S: Final = 0.02  # while a cgroup is awaited
LATER_S: Final = 1.0  # a pod that was deleted, a container that was restarted
PATIENT_S: Final = 60.0  # a pod without a cgroup for so long is not about to start
FIRST_S: Final = 5.0  # for the API server's first answer; then whoever stands in is asked
AWAY_S: Final = 10.0
MOST_REQUESTS: Final = 32  # evictions that are asked for at a time


class Cluster(Protocol):
    """What the adapter needs besides the two mirrors."""

    @property
    def lost(self) -> bool:
        """The API server does not answer, or does not let us see our pods."""
        ...

    async def stand_in(self) -> Sequence[Pod]:
        """Pods of this node by word of someone else."""
        ...


class Known(NamedTuple):
    """What a workload was made of: it is not made again from the same."""

    pod: Pod
    labels: Mapping[str, str]
    handle: Handle
    containers: Mapping[str, Handle]
    workload: Workload

    @property
    def complete(self) -> bool:
        """Every container that runs was found."""
        return all(container in self.containers for container in running(self.pod).values())


class KubernetesAdapter:
    """All of it runs on the event loop; `run` beside `workloads`."""

    def __init__(self, pods: Mirror, namespaces: Mirror, tree: PodTree, cluster: Cluster) -> None:
        self._pods, self._namespaces, self._tree, self._cluster = pods, namespaces, tree, cluster
        self._others: dict[TargetId, Pod] = {}  # while the API server is away
        self._known: dict[TargetId, Known] = {}
        self._awaited: dict[TargetId, float] = {}  # since when, without a cgroup
        self._requests: dict[TargetId, EvictionRequest] = {}  # for evictions that are wanted
        self._moved = asyncio.Event()

    async def run(self) -> None:
        """What `workloads` lives on; for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(self._pods))
            tasks.create_task(self._follow(self._namespaces))
            tasks.create_task(self._stand_in())

    async def workloads(self) -> AsyncIterator[WorkloadEvent]:
        await self._first()
        for event in self._changes():
            yield event
        yield WorkloadEvent("SYNCED", None)
        while True:
            await self._rest()
            for event in self._changes():
                yield event

    def pods(self) -> list[Pod]:
        """All that are known, to be remembered over a restart."""
        return list(self._present().values())

    async def evict(self, target: TargetId, why: str) -> None:
        """Nothing but a look: what is still wanted stands in the node's report, and the manager's leader evicts."""
        if target not in self._known:
            raise NotFound(f"{target} is no pod of this node")

    def still_wanted(self, wanted: Mapping[TargetId, str], wall: float) -> bool:
        before = self._requests
        asked = {t: before.get(t) or self._request(t, why, wall) for t, why in wanted.items() if t in self._known}
        self._requests = {t: r for t, r in asked.items() if r.uid == self._known[t].pod.metadata.uid}
        return self._requests.keys() != before.keys()

    def requests(self) -> tuple[EvictionRequest, ...]:
        """Evictions that are asked for, the oldest first, as many as a report takes."""
        return tuple(self._requests.values())[:MOST_REQUESTS]

    def _request(self, target: TargetId, why: str, wall: float) -> EvictionRequest:
        meta, now = self._known[target].pod.metadata, datetime.fromtimestamp(int(wall), UTC)
        return EvictionRequest(namespace=meta.namespace, name=meta.name, uid=meta.uid, why=why[:MOST_TEXT], since=now)

    # ------------------------------------------------------------------ who is there

    async def _follow(self, mirror: Mirror) -> None:
        async for _ in mirror.changes():
            self._moved.set()

    async def _first(self) -> None:
        try:
            async with asyncio.timeout(FIRST_S):
                await self._pods.synced.wait()
                await self._namespaces.synced.wait()
        except TimeoutError:
            await self._ask_others()

    async def _stand_in(self) -> None:
        while True:
            await asyncio.sleep(AWAY_S)
            if self._cluster.lost:
                await self._ask_others()
            elif self._others:
                self._others = {}
                self._moved.set()

    async def _ask_others(self) -> None:
        self._others = {_target(pod): pod for pod in await self._cluster.stand_in()}
        self._moved.set()

    async def _rest(self) -> None:
        now = asyncio.get_running_loop().time()
        soon = any(now - since < PATIENT_S for since in self._awaited.values())
        try:
            async with asyncio.timeout(SOON_S if soon else LATER_S):
                await self._moved.wait()
        except TimeoutError:
            pass
        self._moved.clear()

    def _present(self) -> dict[TargetId, Pod]:
        held: Mapping[Key, object] = self._pods.held
        return {**self._others, **{_target(pod): pod for pod in held.values() if isinstance(pod, Pod)}}

    # ------------------------------------------------------------------ what changed

    def _changes(self) -> Iterator[WorkloadEvent]:
        """What the ring has to hear of, so that it knows the pods that are there."""
        self._tree.look()
        now = asyncio.get_running_loop().time()
        placed = dict(self._placed(now))
        for target, old in list(self._known.items()):
            new = placed.get(target)
            if new is None or new.pod.metadata.uid != old.pod.metadata.uid:
                del self._known[target]
                yield WorkloadEvent("DELETED", old.workload)
        for target, new in placed.items():
            before = self._known.get(target)
            self._known[target] = new
            if before is None:
                yield WorkloadEvent("ADDED", new.workload)
            elif before is not new and (before.workload != new.workload or in_use(before.pod) != in_use(new.pod)):
                yield WorkloadEvent("MODIFIED", new.workload)

    def _placed(self, now: float) -> Iterator[tuple[TargetId, Known]]:
        """Every pod that has a cgroup; the others are awaited."""
        awaited: dict[TargetId, float] = {}
        for target, pod in self._present().items():
            if pod.ended:
                continue
            handle = self._tree.pod(cgroup_uid(pod))
            known = None if handle is None else self._made(target, pod, handle)
            if known is not None:
                yield target, known
            if known is None or not known.complete:
                awaited[target] = self._awaited.get(target, now)
        self._awaited = awaited

    def _made(self, target: TargetId, pod: Pod, handle: Handle) -> Known:
        before, labels = self._known.get(target), self._labels(pod.metadata.namespace)
        same = before is not None and before.pod is pod and before.labels == labels and before.handle == handle
        if before is not None and same and before.complete:
            return before
        containers = self._tree.containers(handle)
        if before is not None and same and before.containers == containers:
            return before
        return Known(pod, labels, handle, containers, workload(pod, labels, handle, containers))

    def _labels(self, namespace: str) -> Mapping[str, str]:
        held: Mapping[Key, object] = self._namespaces.held
        known = held.get(Key("Namespace", "", namespace))
        return known.metadata.labels if isinstance(known, Namespace) else {}


def _target(pod: Pod) -> TargetId:
    return target_of(pod.metadata.namespace, pod.metadata.name)


_: type[Adapter] = KubernetesAdapter
