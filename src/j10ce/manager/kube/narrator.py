"""Events of pods and nodes: what agents report of them, shown where a developer or an administrator looks first.

A turn makes an event, a number does not. Whoever led before has reported what stood when this manager took over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from j10ce.kube.events import Subject
from j10ce.manager.documents.documents import Nodes
from j10ce.manager.documents.view import View
from j10ce.manager.kube.cluster_feed import Occupants
from j10ce.manager.policies.reports import falls_short
from j10ce.model.kinds import EffectiveFloor, NodeQoS, ReservationReport
from j10ce.model.kube.pod import Pod
from j10ce.model.stored import Event, Happening

LOOK_S: Final = 5.0  # between looks at pods that name a profile: it may have been made a moment before
Floor: TypeAlias = tuple[str, str, str]  # workload, resource, source
Bare: TypeAlias = tuple[str, Subject]  # a policy, and a pod that lacks its floor
Tell: TypeAlias = Callable[[Subject, Happening], None]


class Trouble(NamedTuple):
    """What is wrong on one node."""

    ready: str = ""  # status of its condition
    floors: Mapping[Floor, EffectiveFloor] = {}
    bare: Mapping[Bare, ReservationReport] = {}
    broken: Mapping[str, str] = {}  # condition of its agent that is False: why


class Narrator:
    def __init__(self, occupants: Occupants, view: View, tell: Tell) -> None:
        self._occupants, self._view, self._tell = occupants, view, tell
        self._known: dict[str, Trouble] = {}  # by node

    async def run(self) -> None:
        """For ever."""
        await self._view.ready()
        await self._occupants.ready()
        with self._view.heard(self.take):
            while True:
                await asyncio.sleep(LOOK_S)
                self.look()

    def look(self) -> None:
        """Pods that came since the last look, and name a profile that they do not get."""
        while self._occupants.named:
            pod = self._occupants.named.popleft()
            for note in self._occupants.choice(pod).notes:
                self._tell(subject_of(pod), Happening("Warning", "ProfileNotTaken", note))

    def take(self, event: Event, _: Nodes) -> None:
        node = event.object
        if not isinstance(node, NodeQoS):
            return
        name = node.metadata.name
        before, now = self._known.get(name), self._trouble(node)
        if event.type == "DELETED":
            self._known.pop(name, None)
            return
        self._known[name] = now
        if before is not None:
            for subject, happening in self._turns(name, before, now):
                self._tell(subject, happening)

    def _turns(self, node: str, before: Trouble, now: Trouble) -> Iterator[tuple[Subject, Happening]]:
        here = Subject("v1", "Node", "", node, node)  # as kubelets call it: kubectl looks for both names
        if now.ready != before.ready and before.ready:
            yield here, _readiness(now.ready)
        for kind, why in now.broken.items():
            if kind not in before.broken:
                yield here, Happening("Warning", "AgentTrouble", f"{kind} is False: {why}")
        for key, floor in now.floors.items():
            pod = self._occupants.pod(*_names(floor.workload)) if key not in before.floors else None
            if pod is not None and pod.spec.node_name == node:  # a node speaks of its own pods
                yield subject_of(pod), _short(floor)
        for bare, report in now.bare.items():
            if bare not in before.bare:
                yield bare[1], _unprotected(node, report)

    def _trouble(self, node: NodeQoS) -> Trouble:
        report = node.status.node
        return Trouble(
            next((c.status for c in node.status.conditions if c.type == "Ready"), ""),
            {(f.workload, f.resource, f.source): f for f in report.effective if falls_short(f)},
            {(r.source, pod): r for r in report.reservations for pod in self._bare(node.metadata.name, r)},
            {c.type: c.message for c in report.conditions if c.status == "False"},
        )

    def _bare(self, node: str, report: ReservationReport) -> Iterator[Subject]:
        """Pods that a node says it does not protect. One that is not known yet is looked for in its next report."""
        namespace, _ = _names(report.source.partition("/")[2])
        for name in report.unprotected_workloads:
            pod = self._occupants.pod(namespace, name)
            if pod is not None and pod.spec.node_name == node:
                yield subject_of(pod)


def subject_of(pod: Pod) -> Subject:
    meta = pod.metadata
    return Subject("v1", "Pod", meta.namespace, meta.name, meta.uid)


def _names(spelled: str) -> tuple[str, str]:
    namespace, _, name = spelled.partition("/")
    return namespace, name


def _readiness(status: str) -> Happening:
    if status == "True":
        return Happening("Normal", "AgentReporting", "its QoS agent reports")
    return Happening("Warning", "AgentSilent", "its QoS agent does not report: what it enforces is not known")


def _short(floor: EffectiveFloor) -> Happening:
    has = f"{floor.resource} {floor.effective} of the {floor.promised} that {floor.source} promises"
    return Happening("Warning", "FloorNotEffective", f"{has}: {floor.reason}")


def _unprotected(node: str, report: ReservationReport) -> Happening:
    count = f"{report.unprotected} of {report.workloads} pods of {report.source} on {node} have no floor"
    return Happening("Warning", "Unprotected", f"{count}: {report.refused}")
