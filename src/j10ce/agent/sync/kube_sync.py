"""The agent's side of a Kubernetes control plane: it watches our kinds, renders its own node document, and reports.

A kind that is not served, or objects that are all gone without their deletion having been seen, are a control plane
that was lost, not one that is obeyed: what was last known good stays in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, Final, TypeVar

import structlog
from msgspec.structs import replace

from j10ce.agent.sync.reporter import Contact, ControlPlane, Reporter, ReportingNode
from j10ce.agent.sync.servers import Backoff
from j10ce.agent.sync.sync import lost, uids
from j10ce.http.client import Client
from j10ce.kube.light import APPLY, KubeApi
from j10ce.model import kinds
from j10ce.model.kinds import Condition, Hold, Meta, MinimalReservationPolicy, NodeQoS, NodeStrategy, Policy, QoSProfile
from j10ce.model.kube import native
from j10ce.model.quantity import Quantity
from j10ce.model.stored import Key
from j10ce.policy.document.document import NodeDocument, render
from j10ce.policy.document.unrecorded import Unrecorded
from j10ce.policy.lifetime import revision_key
from j10ce.policy.profiles import builtin
from j10ce.store.mirror import Mirror

log = structlog.get_logger()
KINDS: Final = ("QoSProfile", "MinimalReservationPolicy", "NodeStrategy", "Hold", "PolicyRevision", "NodeQoS", "Node")
FIELD_MANAGER: Final = "j10ce-agent"
SETTLE_S: Final = 0.05  # changes that come together are rendered once
O = TypeVar("O")  # noqa: E741


class KubeSync:
    """Follows every kind that a node document is rendered from, and reports."""

    def __init__(
        self,
        api: KubeApi,
        name: str,
        node: ReportingNode,
        known: NodeDocument | None = None,
        lend: Callable[[Mapping[str, Quantity]], None] = lambda _: None,
    ) -> None:
        """`lend` hears what may be lent here, by resource: batch-cpu, mid-memory, …"""
        self._api, self._name, self._node, self._lend = api, name, node, lend
        self._known = known or NodeDocument(node=name)
        self._mirrors = {kind: Mirror(api, kind) for kind in KINDS}
        self._unrecorded = Unrecorded(self._recorded)
        self._moved = asyncio.Event()
        self._reporter = Reporter(name, node)
        self._pushing = Client(api.peer)
        self._report = Contact("report")
        self._refused = ""  # why what was watched is not obeyed

    @property
    def changed(self) -> asyncio.Event:
        return self._reporter.changed

    @property
    def error(self) -> str:
        troubles = dict.fromkeys((*self._api.troubles.values(), self._report.trouble, self._refused))
        return "; ".join(filter(None, troubles))

    def server(self) -> str:
        return self._api.peer.url + (f", lost: {self.error}" if self.error else "")

    def conditions(self) -> tuple[Condition, ...]:
        conditions = self._reporter.holds.conditions()
        if not self._refused:
            return conditions
        lost = Condition(type="PoliciesObeyed", status="False", reason="ControlPlaneLost", message=self._refused)
        return (*conditions, lost)

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for each in self._mirrors.values():
                    tasks.create_task(self._follow(each))
                tasks.create_task(self._render())
                tasks.create_task(self._push())
        finally:
            await self._pushing.close()
            await self._api.close()

    # ------------------------------------------------------------------ what is obeyed

    async def _follow(self, each: Mirror) -> None:
        async for event in each.changes():
            self._unrecorded.take(event)
            self._moved.set()

    def _recorded(self, policy: Policy) -> bool:
        return revision_key(policy) in self._mirrors["PolicyRevision"].held

    async def _render(self) -> None:
        for each in self._mirrors.values():
            await each.synced.wait()
        while True:
            self._moved.clear()
            self._lend(self._own().status.overcommit)
            await self._take(self._document())
            await self._moved.wait()
            await asyncio.sleep(SETTLE_S)

    def _document(self) -> NodeDocument:
        profiles = self._held("QoSProfile", QoSProfile) or builtin()  # the manager is yet to store them
        policies = self._held("MinimalReservationPolicy", MinimalReservationPolicy)
        strategies = self._held("NodeStrategy", NodeStrategy)
        every: tuple[Policy, ...] = (*profiles, *policies, *strategies)
        before = chain.from_iterable(map(self._unrecorded.before, every))
        return render(
            self._own(),
            profiles=profiles,
            policies=policies,
            strategies=strategies,
            holds=self._held("Hold", Hold),
            revisions=(*self._held("PolicyRevision", kinds.PolicyRevision), *before),
        )

    def _own(self) -> NodeQoS:
        """With the labels of the Node itself; those of the NodeQoS go before them."""
        own = next(iter(self._held("NodeQoS", NodeQoS)), NodeQoS(metadata=Meta(name=self._name)))
        labels = next((n.metadata.labels for n in self._held("Node", native.Node)), {})
        return replace(own, metadata=replace(own.metadata, labels={**labels, **own.metadata.labels}))

    def _held(self, kind: str, struct: type[O]) -> list[O]:
        held: Mapping[Key, object] = self._mirrors[kind].held
        return [obj for obj in held.values() if isinstance(obj, struct)]

    async def _take(self, document: NodeDocument) -> None:
        if document.hash == self._known.hash:
            self._refused = ""
            return
        if problem := self._lost(document):
            if problem != self._refused:
                log.error("document.refused", error=problem)
            self._refused = problem
            return
        self._refused, self._known = "", document
        self._api.deleted.clear()
        await self._node.obey(document)

    def _lost(self, fresh: NodeDocument) -> str:
        """Deletions that were watched are obeyed, whatever is left; others only while something is left."""
        before = uids(self._known)
        watched = bool(before) and before - uids(fresh) <= self._api.deleted
        problem = "" if watched else lost(self._known, fresh)
        return f"{problem}; the control plane has lost its objects" if problem else ""

    # ------------------------------------------------------------------ what is reported

    async def _push(self) -> None:
        backoff = Backoff()
        while True:
            try:
                await self._reporter.push(self, self._pushing, self._known.holds)
            except Exception as e:  # whatever the control plane answers: the floors do not end with it
                self._report.lost(self._api.peer.url, e)
                await backoff.wait(e)
                continue
            if self._report.answered(self._api.peer.url):
                self._reporter.holds.try_again()
            backoff.reset()
            await self._reporter.until_due()

    async def put_status(self, path: str, body: dict[str, Any]) -> None:
        await self._api.ask("PATCH", f"{path}?fieldManager={FIELD_MANAGER}&force=true", body, content=APPLY)

    async def create(self, path: str, body: dict[str, Any]) -> None:
        await self._api.ask("POST", f"{path}?fieldManager={FIELD_MANAGER}", body | {"spec": {}})


_: type[ControlPlane] = KubeSync
