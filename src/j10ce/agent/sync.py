"""The agent's side of the control plane: watch the node document, push the report and local holds.

A control plane that is away, empty or says 404 is lost, not obeyed: what was last known good stays in force.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import structlog

from j10ce.agent import client
from j10ce.agent.client import Peer
from j10ce.errors import Conflict, Denied, Invalid, NotFound, Unreachable
from j10ce.model import schema
from j10ce.model.kinds import API_VERSION, Hold, NodeReport
from j10ce.policy.document import FORMAT, NodeDocument

log = structlog.get_logger()
BASE: Final = f"/apis/{API_VERSION}"
QUIET_S: Final = 90.0  # the manager sends a bookmark at least every 30 s
FIRST_BACKOFF_S: Final = 0.5
LONGEST_BACKOFF_S: Final = 30.0
PUSH_S: Final = 10.0
SHORTEST_GAP_S: Final = 1.0


class Node(Protocol):
    """The agent as the control plane sees it."""

    async def obey(self, document: NodeDocument) -> None: ...
    def node_report(self) -> NodeReport | None: ...
    def local_holds(self) -> tuple[tuple[Hold, ...], frozenset[str]]:
        """(made on this host, names of those that ended on this host)"""
        ...


class Sync:
    """Two tasks: one follows the document, one pushes."""

    def __init__(self, peer: Peer, name: str, node: Node, known: NodeDocument | None = None) -> None:
        """`known` is the document in force."""
        self.connected = False
        self.error = "not connected yet"
        self.changed = asyncio.Event()  # something worth pushing at once
        self._peer, self._name, self._node = peer, name, node
        self._known = known or NodeDocument(node=name)
        self._pushed: dict[str, str] = {}  # local holds that the control plane has: name to namespace
        self._withdrawn: set[str] = set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._forever(self._follow))
            tasks.create_task(self._forever(self._push))

    async def _forever(self, work: Callable[[Backoff], Awaitable[None]]) -> None:
        """Whatever ends the connection: say it once, wait, try again."""
        backoff = Backoff()
        while True:
            try:
                await work(backoff)
            except Exception as e:  # whatever the control plane answers: the floors do not end with it
                if self.connected or self.error != str(e):
                    log.warning("server.lost", server=self._peer.url, error=str(e))
                self.connected, self.error = False, str(e)
                await backoff.wait()

    async def _follow(self, backoff: Backoff) -> None:
        """One watch, from its first event to its end."""
        path = f"{BASE}/nodedocuments/{self._name}?watch=1"
        async for event in client.lines(self._peer, path, quiet_s=QUIET_S):
            if not self.connected:
                log.info("server.found", server=self._peer.url)
            self.connected, self.error = True, ""
            backoff.reset()
            await self._take(event)
        raise Unreachable("the watch ended")

    async def _take(self, event: Any) -> None:
        """A deletion of the document is a control plane that lost its data; profiles never all disappear at once."""
        if not isinstance(event, dict) or event.get("type") not in ("ADDED", "MODIFIED"):
            return
        try:
            document = schema.convert(event["object"], NodeDocument)
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

    async def _push(self, backoff: Backoff) -> None:
        """The report every ten seconds and on change; local holds once each."""
        await self._push_report()
        await self._push_holds()
        backoff.reset()
        await asyncio.sleep(SHORTEST_GAP_S)
        try:
            async with asyncio.timeout(PUSH_S - SHORTEST_GAP_S):
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
            await client.call(self._peer, "PUT", path, body)
        except NotFound:
            await client.call(self._peer, "POST", f"{BASE}/nodeqoses", node)
            await client.call(self._peer, "PUT", path, body)

    async def _push_holds(self) -> None:
        holds, released = self._node.local_holds()
        for hold in holds:
            name, namespace = hold.metadata.name, hold.metadata.namespace
            if name not in self._pushed:
                await self._tell("POST", f"{BASE}/namespaces/{namespace}/holds", schema.plain(hold))
                self._pushed[name] = namespace
        for name in released - self._withdrawn:
            namespace = self._pushed.get(name) or await self._namespace_of(name)
            if namespace:
                await self._tell("DELETE", f"{BASE}/namespaces/{namespace}/holds/{name}")
            self._withdrawn.add(name)

    async def _namespace_of(self, hold: str) -> str:
        listed = await client.call(self._peer, "GET", f"{BASE}/holds")
        return next((o["metadata"]["namespace"] for o in listed["items"] if o["metadata"]["name"] == hold), "")

    async def _tell(self, method: str, path: str, body: object = None) -> None:
        """What the control plane knows already, or has forgotten, is as it should be."""
        try:
            await client.call(self._peer, method, path, body)
        except (Conflict, NotFound):
            log.debug("hold.known", path=path)
        except Denied as e:
            log.error("hold.refused", path=path, error=str(e))


def lost(known: NodeDocument, fresh: NodeDocument) -> str:
    """Why `fresh` tells of lost data rather than of deletions; empty when it does not.

    A manager that starts without its database has built-in profiles again, under other uids, and no policies.
    """
    if not fresh.profiles and not fresh.policies:
        return "it is empty"
    before, after = _uids(known), _uids(fresh)
    if known.policies and not fresh.policies and before and not before & after:
        return f"all {len(known.policies)} reservations are gone, and so is every object known so far"
    return ""


def _uids(document: NodeDocument) -> set[str]:
    return ({p.metadata.uid for p in document.profiles} | {p.metadata.uid for p in document.policies}) - {""}


class Backoff:
    """Doubling waits with jitter: a thousand agents do not come back in the same second."""

    def __init__(self) -> None:
        self._next_s = FIRST_BACKOFF_S

    async def wait(self) -> None:
        await asyncio.sleep(self._next_s * random.uniform(0.5, 1.0))  # noqa: S311
        self._next_s = min(self._next_s * 2, LONGEST_BACKOFF_S)

    def reset(self) -> None:
        self._next_s = FIRST_BACKOFF_S
