"""This node as its control plane sees it: what it obeys, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from j10ce.agent.cache import Cache
from j10ce.agent.report.applied_changes import Trail
from j10ce.agent.report.report import node_report
from j10ce.agent.report.size import fitted
from j10ce.agent.report.usage import Usage
from j10ce.agent.ring.holds import live
from j10ce.agent.ring.runner import Shell
from j10ce.agent.sync.reporter import ReportingNode
from j10ce.model.kinds import Condition, EvictionRequest, Hold, NodeReport
from j10ce.model.quantity import Quantity
from j10ce.policy.document.document import NodeDocument


class LocalNode:
    def __init__(
        self,
        shell: Shell,
        cache: Cache,
        usage: Usage,
        trail: Trail,
        evictions: Callable[[], tuple[EvictionRequest, ...]] = tuple,
    ) -> None:
        """`evictions`: that someone else is to carry out."""
        self._shell, self._cache, self._usage, self._trail = shell, cache, usage, trail
        self._evictions = evictions

    async def obey(self, document: NodeDocument) -> None:
        self._trail.expect(document, self._shell.clock.read())
        await self._shell.on_ring(self._shell.agent.obey, document)
        self._shell.wake.set()
        await self._cache.aside(self._cache.keep_document, document)

    def lend(self, amounts: Mapping[str, Quantity]) -> None:
        """What the control plane says may be lent here, by resource: batch-cpu, mid-memory, …"""
        self._shell.agent.lent = {
            name: float(q.millicores() if name.endswith("-cpu") else q.bytes()) for name, q in amounts.items()
        }

    def node_report(self, conditions: tuple[Condition, ...]) -> NodeReport | None:
        report = self._shell.report
        if report is None:
            return None
        self._usage.observe(report)
        made = node_report(report, self._shell.agent.document)
        return fitted(
            replace(
                made,
                demand=self._usage.demand(report),
                zones=self._usage.zones(report),
                predicted=self._usage.predicted(report),
                applied=self._trail.applied,
                evictions=self._evictions(),
                conditions=(*made.conditions, *conditions),
            )
        )

    def reported(self, report: NodeReport) -> None:
        self._trail.reported(report)

    def local_holds(self) -> tuple[tuple[Hold, ...], frozenset[str]]:
        """Those in force: one that expired while the control plane was away is nobody's business any more."""
        agent = self._shell.agent
        return live(agent.holds, self._shell.clock.read().wall), agent.released


_: type[ReportingNode] = LocalNode
