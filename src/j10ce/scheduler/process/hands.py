"""Carries out what was decided: bindings, evictions, nominations, and what pods are told.

Many at a time, so that the next pod is decided while the last one is being bound. Only a leader whose claim has not
expired by the clock sends anything: one that was stopped and goes on later has been replaced meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec
import structlog
from msgspec import Struct

from j10ce.errors import Conflict, Later, NotFound, QosError, Unavailable, Unsure
from j10ce.kube.client import KubeClient
from j10ce.kube.events import Subject
from j10ce.model.stored import Happening
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cycle.decisions import Bind, Decision, Defer, Evict, Nominate
from j10ce.scheduler.process.metrics import SchedulerMetrics

log = structlog.get_logger()
AT_A_TIME: Final = 64
EVICT_AGAIN_S: Final = (0.5, 1.0, 2.0, 4.0)  # after an answer that did not come
LONGEST: Final = 1024  # characters of a condition's message
NOT_LEADING: Final = "this scheduler does not lead any more"
UNSCHEDULABLE: Final = "Unschedulable"
Tell = Callable[[Subject, Happening], None]


class _Named(Struct, frozen=True, rename="camel"):
    uid: str = ""


class _Placed(Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Bound(Struct, frozen=True):
    metadata: _Named = _Named()
    spec: _Placed = _Placed()


class Reported(Protocol):
    """Who hears what became of a decision."""

    def bound(self, uid: str) -> None: ...

    def bind_failed(self, uid: str, why: str) -> None: ...

    def evict_failed(self, uid: str, why: str) -> None: ...


class Hands:
    def __init__(
        self, client: KubeClient, reported: Reported, leads: Callable[[], bool], tell: Tell, metrics: SchedulerMetrics
    ) -> None:
        self._client, self._reported, self._leads, self._tell = client, reported, leads, tell
        self._metrics = metrics
        self._waiting: asyncio.Queue[Decision] = asyncio.Queue()
        self._behind: dict[str, deque[Decision]] = {}  # by uid: what waits for something about the same pod to be done
        self._said: dict[str, str] = {}  # by uid: the condition that a pod has from us

    def take(self, decision: Decision) -> None:
        """Returns at once. What is decided about one pod is carried out in that order."""
        uid = whom(decision).uid
        if uid in self._behind:
            self._behind[uid].append(decision)
            return
        self._behind[uid] = deque()
        self._waiting.put_nowait(decision)

    def forget(self, uid: str) -> None:
        """A pod that is gone."""
        self._said.pop(uid, None)

    async def run(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_A_TIME):
                group.create_task(self._work())

    async def done(self) -> None:
        """Returns once everything that was taken is carried out or given up."""
        await self._waiting.join()

    async def _work(self) -> None:
        while True:
            decision = await self._waiting.get()
            uid = whom(decision).uid
            try:
                await self._in_turn(decision, self._behind[uid])
            finally:
                del self._behind[uid]
                self._waiting.task_done()

    async def _in_turn(self, decision: Decision, behind: deque[Decision]) -> None:
        """Why a pod waited is said no more once it is to be bound: an API server refuses that, or believes it."""
        while True:
            if not isinstance(decision, Defer | Nominate) or not any(isinstance(d, Bind) for d in behind):
                await self._carry_out(decision)
            if not behind:
                return
            decision = behind.popleft()

    async def _carry_out(self, decision: Decision) -> None:
        match decision:
            case Bind():
                await self._bind(decision)
            case Evict():
                await self._evict(decision)
            case Nominate():
                await self._nominate(decision)
            case Defer():
                await self._defer(decision)

    async def _bind(self, decision: Bind) -> None:
        pod, node = decision.pod, decision.node
        why = await self._binding(decision)
        if why:
            log.warning("bind.fail", pod=pod.key, node=node, error=why)
            self._metrics.attempt("error")
            self._reported.bind_failed(pod.uid, why)
            return
        log.debug("bind.done", pod=pod.key, node=node, why=decision.why)
        self._said.pop(pod.uid, None)
        self._metrics.attempt("scheduled")
        self._reported.bound(pod.uid)
        self._tell(about(pod), Happening("Normal", "Scheduled", f"Successfully assigned {pod.key} to {node}"))

    async def _binding(self, decision: Bind) -> str:
        """Why it failed; empty when it is there."""
        if not self._leads():
            return NOT_LEADING
        try:
            await self._client.create(f"{path_of(decision.pod)}/binding", body_of(decision))
        except Unsure as e:
            return await self._looked_up(decision, str(e))
        except QosError as e:
            return await self._looked_up(decision, str(e)) if isinstance(e, Conflict) else str(e)
        return ""

    async def _looked_up(self, decision: Bind, why: str) -> str:
        """An answer was lost, or says that the pod has a node: perhaps the one that we gave it."""
        try:
            there = msgspec.json.decode(await self._client.get(path_of(decision.pod)), type=_Bound)
        except (QosError, msgspec.MsgspecError) as e:
            return f"{why}; and its node cannot be looked up: {e}"
        ours = there.metadata.uid == decision.pod.uid and there.spec.node_name == decision.node
        return "" if ours else why

    async def _evict(self, decision: Evict) -> None:
        victim, node = decision.victim, decision.node
        why = NOT_LEADING
        if self._leads():
            why = await self._evicting(victim)
        if why:
            log.warning("evict.fail", pod=victim.key, node=node, error=why)
            self._reported.evict_failed(victim.uid, why)
            return
        self._metrics.evicted()
        log.info("evict.done", pod=victim.key, node=node, favour=decision.pod.key, why=decision.why)
        text = f"Preempted by {decision.pod.key} on node {node}: {decision.why}"
        self._tell(about(victim), Happening("Normal", "Preempted", text))

    async def _evicting(self, victim: PodFacts) -> str:
        """Why it failed; empty when it is asked to go, or gone. Where no answer comes it is asked again, which does
        no harm: perhaps it goes already, and another one would go in vain."""
        for pause_s in (*EVICT_AGAIN_S, None):
            try:
                await self._client.evict(victim.namespace, victim.name, victim.uid)
            except (NotFound, Conflict):  # gone meanwhile, or another one has its name
                return ""
            except Later as e:
                return f"a disruption budget does not allow it now: {e}"
            except (Unsure, Unavailable) as e:
                if pause_s is None:
                    return str(e)
                await asyncio.sleep(pause_s)
                if not self._leads():
                    return NOT_LEADING
            except QosError as e:
                return str(e)
            else:
                return ""
        return ""

    async def _nominate(self, decision: Nominate) -> None:
        if self._leads():
            await self._patch_status(decision.pod, {"nominatedNodeName": decision.node or None})

    async def _defer(self, decision: Defer) -> None:
        """The condition and the event, once for each reason."""
        pod, said = decision.pod, f"{decision.reason}: {decision.why}"[:LONGEST]
        self._metrics.attempt("unschedulable")
        if self._said.get(pod.uid) == said or not self._leads():
            return
        self._said[pod.uid] = said
        log.debug("pod.defer", pod=pod.key, reason=decision.reason, why=decision.why)
        reason = "SchedulingGated" if decision.reason == "SchedulingGated" else UNSCHEDULABLE
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": decision.why[:LONGEST]}
        await self._patch_status(pod, {"conditions": [condition]})
        self._tell(about(pod), Happening("Warning", decision.reason, decision.why))

    async def _patch_status(self, pod: PodFacts, status: dict[str, Any]) -> None:
        """For people and for other schedulers: what cannot be written now is not tried again."""
        body = {"metadata": {"uid": pod.uid}, "status": status}
        try:
            await self._client.patch(f"{path_of(pod)}/status", body, "strategic")
        except (NotFound, Conflict):  # gone, or another one by now
            return
        except QosError as e:
            log.warning("status.fail", pod=pod.key, error=str(e))


def whom(decision: Decision) -> PodFacts:
    """The pod that is written to."""
    return decision.victim if isinstance(decision, Evict) else decision.pod


def path_of(pod: PodFacts) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def body_of(decision: Bind) -> dict[str, Any]:
    pod = decision.pod
    meta: dict[str, Any] = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    if decision.annotations:
        meta["annotations"] = dict(decision.annotations)
    target = {"apiVersion": "v1", "kind": "Node", "name": decision.node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}


def about(pod: PodFacts) -> Subject:
    return Subject("v1", "Pod", pod.namespace, pod.name, pod.uid)
