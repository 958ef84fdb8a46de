"""The agent's side of a Kubernetes control plane: it watches our kinds, renders its own node document, and reports.

A kind that is not served, or objects that are all gone without their deletion having been seen, are a control plane
that was lost, not one that is obeyed: what was last known good stays in force.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Final, TypeVar

import structlog
from msgspec.structs import replace

from j10ce.agent.sync.hold_push import Holds
from j10ce.agent.sync.servers import Backoff
from j10ce.agent.sync.sync import BASE, PUSH_S, SHORTEST_GAP_S, Node, lost, uids
from j10ce.errors import NotFound
from j10ce.http.client import Client
from j10ce.kube.light import APPLY, KubeApi
from j10ce.model import kinds, schema
from j10ce.model.kinds import API_VERSION, Condition, Hold, Meta, MinimalReservationPolicy, NodeQoS, QoSProfile
from j10ce.model.kube import native
from j10ce.model.stored import Key
from j10ce.policy.document.document import NodeDocument, render
from j10ce.policy.profiles import builtin
from j10ce.store.mirror import Mirror, mirror

log = structlog.get_logger()
KINDS: Final = ("QoSProfile", "MinimalReservationPolicy", "Hold", "PolicyRevision", "NodeQoS", "Node")
FIELD_MANAGER: Final = "j10ce-agent"
SETTLE_S: Final = 0.05  # changes that come together are rendered once
O = TypeVar("O")  # noqa: E741


class KubeSync:
    """Same face as `sync.Sync`."""

    def __init__(self, api: KubeApi, name: str, node: Node, known: NodeDocument | None = None) -> None:
        self.changed = asyncio.Event()  # something worth pushing at once
        self._api, self._name, self._node = api, name, node
        self._known = known or NodeDocument(node=name)
        self._mirrors = {kind: mirror(api, kind) for kind in KINDS}
        self._moved = asyncio.Event()
        self._holds = Holds(name)
        self._pushing = Client(api.peer)
        self._trouble = ""  # of the last report
        self._refused = ""  # why what was watched is not obeyed

    @property
    def connected(self) -> bool:
        return not self.error

    @property
    def error(self) -> str:
        troubles = dict.fromkeys((*self._api.troubles.values(), self._trouble, self._refused))
        return "; ".join(filter(None, troubles))

    def told(self) -> str:
        """For `status`: the address in use, and what is wrong with it."""
        return self._api.peer.url + (f", lost: {self.error}" if self.error else "")

    def conditions(self) -> tuple[Condition, ...]:
        """What the control plane would not take, and what we would not take from it."""
        if not self._refused:
            return self._holds.conditions()
        told = Condition(type="PoliciesObeyed", status="False", reason="ControlPlaneLost", message=self._refused)
        return (*self._holds.conditions(), told)

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
        async for _ in each.changes():
            self._moved.set()

    async def _render(self) -> None:
        for each in self._mirrors.values():
            await each.synced.wait()
        while True:
            self._moved.clear()
            await self._take(self._document())
            await self._moved.wait()
            await asyncio.sleep(SETTLE_S)

    def _document(self) -> NodeDocument:
        return render(
            self._own(),
            profiles=self._held("QoSProfile", QoSProfile) or builtin(),  # the manager is yet to store them
            policies=self._held("MinimalReservationPolicy", MinimalReservationPolicy),
            holds=self._held("Hold", Hold),
            revisions=self._held("PolicyRevision", kinds.PolicyRevision),
        )

    def _own(self) -> NodeQoS:
        """With the labels of the Node itself; those of the NodeQoS go before them."""
        found = next(iter(self._held("NodeQoS", NodeQoS)), NodeQoS(metadata=Meta(name=self._name)))
        labels = next((n.metadata.labels for n in self._held("Node", native.Node)), {})
        return replace(found, metadata=replace(found.metadata, labels={**labels, **found.metadata.labels}))

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

    # ------------------------------------------------------------------ what is told

    async def _push(self) -> None:
        """The report about every ten seconds and on change; local holds once each."""
        backoff = Backoff()
        while True:
            try:
                await self._push_report()
                await self._push_holds()
                self._found()
                backoff.reset()
            except Exception as e:  # whatever the control plane answers: the floors do not end with it
                if self._trouble != str(e):
                    log.warning("server.lost", server=self._api.peer.url, what="report", error=str(e))
                self._trouble = str(e)
                await backoff.wait(e)
                continue
            await self._until_due()

    async def _until_due(self) -> None:
        await asyncio.sleep(SHORTEST_GAP_S)
        try:
            async with asyncio.timeout((PUSH_S - SHORTEST_GAP_S) * random.uniform(0.8, 1.2)):  # noqa: S311
                await self.changed.wait()
        except TimeoutError:
            pass
        self.changed.clear()

    def _found(self) -> None:
        if self._trouble:
            log.info("server.found", server=self._api.peer.url, what="report")
            self._holds.try_again()
        self._trouble = ""

    async def _push_report(self) -> None:
        """Applied: what the report leaves out goes, what others own of the status stays."""
        report = self._node.node_report()
        if report is None:
            return
        node = {"apiVersion": API_VERSION, "kind": "NodeQoS", "metadata": {"name": self._name}}
        path = f"{BASE}/nodeqoses/{self._name}/status?fieldManager={FIELD_MANAGER}&force=true"
        body = node | {"status": {"node": schema.plain(report)}}
        try:
            await self._api.ask("PATCH", path, body, content=APPLY)
        except NotFound:
            await self._api.ask("POST", f"{BASE}/nodeqoses?fieldManager={FIELD_MANAGER}", node | {"spec": {}})
            await self._api.ask("PATCH", path, body, content=APPLY)
        self._node.reported(report)

    async def _push_holds(self) -> None:
        holds, released = self._node.local_holds()
        await self._holds.push(self._pushing, holds, released, self._known.holds)
