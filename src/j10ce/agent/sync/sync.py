"""The agent's side of the control plane: watch the node document, push the report and local holds.

A control plane that is away, empty or says 404 is lost, not obeyed: what was last known good stays in force.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import structlog

from j10ce.agent.sync.hold_push import Holds
from j10ce.agent.sync.servers import Backoff, Servers
from j10ce.errors import Invalid, NotFound, Unreachable
from j10ce.http import client
from j10ce.http.client import Client, Peer
from j10ce.model import schema
from j10ce.model.kinds import API_VERSION, Condition, Hold, NodeReport
from j10ce.policy.document.change import NodeChange, changed
from j10ce.policy.document.document import FORMAT, NodeDocument

log = structlog.get_logger()
BASE: Final = f"/apis/{API_VERSION}"
QUIET_S: Final = 90.0  # the manager sends a bookmark at least every 30 s
WATCH_S: Final = (1800, 3600)  # a watch ends by itself somewhere in between, and the agent goes home
PUSH_S: Final = 10.0
SHORTEST_GAP_S: Final = 1.0


class Node(Protocol):
    """The agent as the control plane sees it."""

    async def obey(self, document: NodeDocument) -> None: ...
    def node_report(self) -> NodeReport | None: ...
    def reported(self, report: NodeReport) -> None:
        """The control plane has it."""
        ...

    def local_holds(self) -> tuple[tuple[Hold, ...], frozenset[str]]:
        """(made on this host, names of those that ended on this host)"""
        ...


class Sync:
    """Two tasks: one follows the document, one pushes."""

    def __init__(self, peer: Peer, name: str, node: Node, known: NodeDocument | None = None) -> None:
        """`peer.url` may list several managers. `known` is the document in force."""
        self.changed = asyncio.Event()  # something worth pushing at once
        self._servers, self._name, self._node = Servers(peer, name), name, node
        self._known = known or NodeDocument(node=name)
        self._pushing = Client(self._servers.current)
        self._in_parts = True  # whether changes of the document may come without what stays
        self._holds = Holds(name)
        self._troubles = {"watch": "not connected yet", "report": ""}

    @property
    def connected(self) -> bool:
        return not self.error

    @property
    def error(self) -> str:
        return "; ".join(filter(None, self._troubles.values()))

    def told(self) -> str:
        """For `status`: the address in use, and what is wrong with it."""
        return self._servers.current.url + (f", lost: {self.error}" if self.error else "")

    def conditions(self) -> tuple[Condition, ...]:
        """What the control plane would not take."""
        return self._holds.conditions()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._forever("watch", self._follow))
                tasks.create_task(self._forever("report", self._push))
        finally:
            await self._pushing.close()

    async def _forever(self, what: str, work: Callable[[Peer, Backoff], Awaitable[None]]) -> None:
        """Whatever ends the connection: say it once, wait, try the next manager."""
        backoff = Backoff()
        while True:
            peer = self._servers.current
            try:
                await work(peer, backoff)
            except Exception as e:  # whatever the control plane answers: the floors do not end with it
                if self._troubles[what] != str(e):
                    log.warning("server.lost", server=peer.url, what=what, error=str(e))
                self._troubles[what] = str(e)
                self._servers.leave(peer)
                await backoff.wait(e)

    async def _follow(self, peer: Peer, backoff: Backoff) -> None:
        """One watch, from its first event to its end; one that lasted as long as was asked for did not fail."""
        begun, ends_s = asyncio.get_running_loop().time(), random.randint(*WATCH_S)  # noqa: S311
        path = f"{BASE}/nodedocuments/{self._name}?watch=1&hash={self._known.hash}&timeoutSeconds={ends_s}"
        path += "&changes=1" if self._in_parts else ""
        async with client.watch(peer, path, quiet_s=QUIET_S) as events:
            self._found("watch", peer)
            async for event in events:
                backoff.reset()  # not before: one that takes calls and falls over is not called ever faster
                await self._take(event)
        if asyncio.get_running_loop().time() - begun < ends_s:
            raise Unreachable("the watch ended")
        self._servers.go_home()

    def _found(self, what: str, peer: Peer) -> None:
        if self._troubles[what]:
            log.info("server.found", server=peer.url, what=what)
            self._holds.try_again()
        self._troubles[what] = ""

    async def _take(self, event: Any) -> None:
        """A deletion of the document is a control plane that lost its data; profiles never all disappear at once."""
        if not isinstance(event, dict) or event.get("type") not in ("ADDED", "MODIFIED", "CHANGED"):
            return
        try:
            document = self._read(event["type"], event["object"])
        except (Invalid, KeyError) as e:
            log.error("document.refused", error=str(e))
            return
        if document.format not in (FORMAT, FORMAT - 1):
            log.error("document.refused", error=f"format {document.format}, this agent reads {FORMAT}")
        elif problem := lost(self._known, document):
            log.error("document.refused", error=f"{problem}; the control plane has lost its objects")
        else:
            self._known = document
            await self._node.obey(document)

    def _read(self, type_: str, told: object) -> NodeDocument:
        """Raises Invalid; Unreachable for a change that does not fit: the next watch brings whole documents."""
        if type_ != "CHANGED":
            return schema.convert_ours(told, NodeDocument)
        document = changed(self._known, schema.convert_ours(told, NodeChange))
        if document is None:
            self._in_parts = False
            raise Unreachable("a change of the document does not fit the one that is held")
        return document

    async def _push(self, peer: Peer, backoff: Backoff) -> None:
        """The report about every ten seconds and on change; local holds once each."""
        if self._pushing.peer != peer:
            await self._pushing.close()
            self._pushing = Client(peer)
        while peer == self._servers.current:
            await self._push_report()
            holds, released = self._node.local_holds()
            await self._holds.push(self._pushing, holds, released, self._known.holds)
            self._found("report", peer)
            backoff.reset()
            await asyncio.sleep(SHORTEST_GAP_S)
            try:
                # By chance a little more or less: agents that came back together drift apart.
                async with asyncio.timeout((PUSH_S - SHORTEST_GAP_S) * random.uniform(0.8, 1.2)):  # noqa: S311
                    await self.changed.wait()
            except TimeoutError:
                pass
            self.changed.clear()

    async def _push_report(self) -> None:
        report = self._node.node_report()
        if report is None:
            return
        node = {"apiVersion": API_VERSION, "kind": "NodeQoS", "metadata": {"name": self._name}}
        # A replacement, not a patch: a patch would keep what the report leaves out, such as a list that is empty again.
        path, body = f"{BASE}/nodeqoses/{self._name}/status", node | {"status": {"node": schema.plain(report)}}
        try:
            await self._pushing.call("PUT", path, body)
        except NotFound:
            await self._pushing.call("POST", f"{BASE}/nodeqoses", node)
            await self._pushing.call("PUT", path, body)
        self._node.reported(report)


def lost(known: NodeDocument, fresh: NodeDocument) -> str:
    """Why `fresh` tells of lost data rather than of deletions; empty when it does not.

    A manager that starts without its database has built-in profiles again, under other uids, and no policies.
    """
    if not fresh.profiles and not fresh.policies:
        return "it is empty"
    before, after = uids(known), uids(fresh)
    if known.policies and not fresh.policies and before and not before & after:
        return f"all {len(known.policies)} reservations are gone, and so is every object known so far"
    return ""


def uids(document: NodeDocument) -> set[str]:
    """Of its policies and profiles, as far as they have some."""
    return ({p.metadata.uid for p in document.profiles} | {p.metadata.uid for p in document.policies}) - {""}
