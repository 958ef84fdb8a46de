"""The agent's side of the control plane: watch the node document, push the report and local holds.

A control plane that is away, empty or says 404 is lost, not obeyed: what was last known good stays in force.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog

from j10ce.agent.sync.reporter import BASE, Contact, ControlPlane, Reporter, ReportingNode
from j10ce.agent.sync.servers import Backoff, Servers
from j10ce.errors import Invalid, Unreachable
from j10ce.http import client
from j10ce.http.client import Client, Peer
from j10ce.model import schema
from j10ce.model.kinds import Condition, Policy
from j10ce.policy.document.change import NodeChange, changed
from j10ce.policy.document.document import FORMAT, FORMATS, NodeDocument

log = structlog.get_logger()
QUIET_S: Final = 90.0  # the manager sends a bookmark at least every 30 s
WATCH_S: Final = (1800, 3600)  # a watch ends by itself somewhere in between, and the agent goes home


class Sync:
    """Two tasks: one follows the document, one pushes."""

    def __init__(self, peer: Peer, name: str, node: ReportingNode, known: NodeDocument | None = None) -> None:
        """`peer.url` may list several managers. `known` is the document in force."""
        self._servers, self._name, self._node = Servers(peer, name), name, node
        self._known = known or NodeDocument(node=name)
        self._reporter = Reporter(name, node)
        self._pushing = Client(self._servers.current)
        self._in_parts = True  # whether changes of the document may come without what stays
        self._watch, self._report = Contact("watch", "not connected yet"), Contact("report")

    @property
    def changed(self) -> asyncio.Event:
        return self._reporter.changed

    @property
    def error(self) -> str:
        return "; ".join(filter(None, (self._watch.trouble, self._report.trouble)))

    def server(self) -> str:
        return self._servers.current.url + (f", lost: {self.error}" if self.error else "")

    def conditions(self) -> tuple[Condition, ...]:
        return self._reporter.holds.conditions()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._forever(self._watch, self._follow))
                tasks.create_task(self._forever(self._report, self._push))
        finally:
            await self._pushing.close()

    async def _forever(self, contact: Contact, work: Callable[[Peer, Backoff], Awaitable[None]]) -> None:
        """Whatever ends the connection: say it once, wait, try the next manager."""
        backoff = Backoff()
        while True:
            peer = self._servers.current
            try:
                await work(peer, backoff)
            except Exception as e:  # whatever the control plane answers: the floors do not end with it
                contact.lost(peer.url, e)
                self._servers.leave(peer)
                await backoff.wait(e)

    async def _follow(self, peer: Peer, backoff: Backoff) -> None:
        """One watch, from its first event to its end; one that lasted as long as was asked for did not fail."""
        begun, ends_s = asyncio.get_running_loop().time(), random.randint(*WATCH_S)  # noqa: S311
        path = f"{BASE}/nodedocuments/{self._name}?watch=1&hash={self._known.hash}&timeoutSeconds={ends_s}"
        path += f"&format={FORMAT}" + ("&changes=1" if self._in_parts else "")
        async with client.watch(peer, path, quiet_s=QUIET_S) as events:
            self._answered(self._watch, peer)
            async for event in events:
                backoff.reset()  # not before: one that takes calls and falls over is not called ever faster
                await self._take(event)
        if asyncio.get_running_loop().time() - begun < ends_s:
            raise Unreachable("the watch ended")
        self._servers.go_home()

    def _answered(self, contact: Contact, peer: Peer) -> None:
        if contact.answered(peer.url):
            self._reporter.holds.try_again()

    async def _take(self, event: Any) -> None:
        """A deletion of the document is a control plane that lost its data; profiles never all disappear at once."""
        if not isinstance(event, dict) or event.get("type") not in ("ADDED", "MODIFIED", "CHANGED"):
            return
        try:
            document = self._read(event["type"], event["object"])
        except (Invalid, KeyError) as e:
            log.error("document.refused", error=str(e))
            return
        if document.format not in FORMATS:
            log.error("document.refused", error=f"format {document.format}, this agent reads {FORMAT}")
        elif problem := lost(self._known, document):
            log.error("document.refused", error=f"{problem}; the control plane has lost its objects")
        else:
            self._known = document
            await self._node.obey(document)

    def _read(self, type_: str, body: object) -> NodeDocument:
        """Raises Invalid; Unreachable for a change that does not fit: the next watch brings whole documents."""
        if type_ != "CHANGED":
            return schema.convert_ours(body, NodeDocument)
        document = changed(self._known, schema.convert_ours(body, NodeChange))
        if document is None:
            self._in_parts = False
            raise Unreachable("a change of the document does not fit the one that is held")
        return document

    async def _push(self, peer: Peer, backoff: Backoff) -> None:
        if self._pushing.peer != peer:
            await self._pushing.close()
            self._pushing = Client(peer)
        while peer == self._servers.current:
            await self._reporter.push(self, self._pushing, self._known.holds)
            self._answered(self._report, peer)
            backoff.reset()
            await self._reporter.until_due()

    async def put_status(self, path: str, body: dict[str, Any]) -> None:
        """A replacement, not a patch: a patch would keep what the report leaves out, such as a list that is empty."""
        await self._pushing.call("PUT", path, body)

    async def create(self, path: str, body: dict[str, Any]) -> None:
        await self._pushing.call("POST", path, body)


def lost(known: NodeDocument, fresh: NodeDocument) -> str:
    """Why `fresh` is a sign of lost data rather than of deletions; empty when it does not.

    A manager that starts without its database has built-in profiles again, under other uids, and no policies.
    """
    if not fresh.profiles and not fresh.policies:
        return "it is empty"
    before, after = uids(known), uids(fresh)
    if known.policies and not fresh.policies and before and not before & after:
        return f"all {len(known.policies)} reservations are gone, and so is every object known so far"
    return ""


def uids(document: NodeDocument) -> set[str]:
    """Of its policies, profiles and strategies, as far as they have some."""
    every: tuple[Policy, ...] = (*document.profiles, *document.policies, *document.strategies)
    return {p.metadata.uid for p in every} - {""}


_: type[ControlPlane] = Sync
