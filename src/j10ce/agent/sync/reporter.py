"""What an agent says to its control plane, whichever it is: its report every ten seconds, local holds once each."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from typing import Any, Final, Protocol

import structlog

from j10ce.agent.sync.hold_push import Holds
from j10ce.errors import NotFound
from j10ce.http.client import Client
from j10ce.model import schema
from j10ce.model.kinds import API_VERSION, Condition, Hold, NodeReport
from j10ce.policy.document.document import NodeDocument

log = structlog.get_logger()
BASE: Final = f"/apis/{API_VERSION}"
PUSH_S: Final = 10.0
SHORTEST_GAP_S: Final = 1.0


class ReportingNode(Protocol):
    """The agent as the control plane sees it."""

    async def obey(self, document: NodeDocument) -> None: ...
    def node_report(self, conditions: tuple[Condition, ...]) -> NodeReport | None:
        """With these beside its own; None before the ring has run."""
        ...

    def reported(self, report: NodeReport) -> None:
        """The control plane has it."""
        ...

    def local_holds(self) -> tuple[tuple[Hold, ...], frozenset[str]]:
        """(made on this host, names of those that ended on this host)"""
        ...


class ControlPlane(Protocol):
    """The control plane as the agent sees it: a manager (`sync`) or Kubernetes (`kube_sync`)."""

    @property
    def changed(self) -> asyncio.Event:
        """Set by the agent when there is something worth reporting at once."""
        ...

    def server(self) -> str:
        """For `status`: the address in use, and what is wrong with it."""
        ...

    def conditions(self) -> tuple[Condition, ...]:
        """What the control plane would not take from this node, and what this node would not take from it."""
        ...

    async def run(self) -> None:
        """Until cancelled; whatever the control plane answers is no reason to end."""
        ...


class NodeObjects(Protocol):
    """How the NodeQoS of this node is written."""

    def conditions(self) -> tuple[Condition, ...]: ...

    async def put_status(self, path: str, body: dict[str, Any]) -> None:
        """What the report leaves out goes, what others own of the status stays. Raises NotFound."""
        ...

    async def create(self, path: str, body: dict[str, Any]) -> None: ...


class Contact:
    """Whether the control plane answers one kind of call: a failure is logged once, and so is its end."""

    def __init__(self, what: str, trouble: str = "") -> None:
        self.trouble = trouble
        self._what = what

    def lost(self, server: str, error: Exception) -> None:
        if self.trouble != str(error):
            log.warning("server.lost", server=server, what=self._what, error=str(error))
        self.trouble = str(error)

    def answered(self, server: str) -> bool:
        """Whether it had been away."""
        if away := bool(self.trouble):
            log.info("server.found", server=server, what=self._what)
        self.trouble = ""
        return away


class Reporter:
    def __init__(self, name: str, node: ReportingNode) -> None:
        self.changed = asyncio.Event()
        self.holds = Holds(name)
        self._name, self._node = name, node

    async def push(self, plane: NodeObjects, client: Client, listed: Iterable[Hold]) -> None:
        """Once. `listed`: the holds that the control plane says it has. Raises whatever it answers."""
        if (report := self._node.node_report(plane.conditions())) is not None:
            node: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "NodeQoS", "metadata": {"name": self._name}}
            path, body = f"{BASE}/nodeqoses/{self._name}/status", node | {"status": {"node": schema.plain(report)}}
            try:
                await plane.put_status(path, body)
            except NotFound:
                await plane.create(f"{BASE}/nodeqoses", node)
                await plane.put_status(path, body)
            self._node.reported(report)
        holds, released = self._node.local_holds()
        await self.holds.push(client, holds, released, listed)

    async def until_due(self) -> None:
        await asyncio.sleep(SHORTEST_GAP_S)
        try:
            # By chance a little more or less: agents that came back together drift apart.
            async with asyncio.timeout((PUSH_S - SHORTEST_GAP_S) * random.uniform(0.8, 1.2)):  # noqa: S311
                await self.changed.wait()
        except TimeoutError:
            pass
        self.changed.clear()
