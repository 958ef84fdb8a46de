"""Which request of the control plane this node has carried out: the other end of a trace that begins at the API.

An object carries the trace of the request that last changed it. The agent knows traces as text only: it logs them, and
reports them with what came of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import structlog
from msgspec.structs import replace

from j10ce.agent.ring.ring import Report
from j10ce.daemon.clock import Instant
from j10ce.model.kinds import TRACE_ANNOTATION, AppliedChange, Hold, NodeReport, Policy
from j10ce.model.plan import Applied, Pending, ValueChange
from j10ce.policy.document.document import NodeDocument, reference

log = structlog.get_logger()
MOST: Final = 50  # not sent yet; a control plane that is away for long loses the oldest


class Trail:
    def __init__(self, document: NodeDocument) -> None:
        """`document` is in force: its traces have come to their end."""
        self._seen = _traces(document)
        self._expected: dict[str, AppliedChange] = {}
        self._since = 0.0
        self.applied: tuple[AppliedChange, ...] = ()  # not reported yet

    def expect(self, document: NodeDocument, at: Instant) -> None:
        """The document comes into force with the first whole run of the ring that begins at or after `at`."""
        fresh = _traces(document)
        received = datetime.fromtimestamp(at.wall, UTC)
        for source, (trace, generation) in fresh.items():
            if self._seen.get(source) != (trace, generation):
                self._expected[source] = AppliedChange(
                    source=source, generation=generation, trace=trace, received=received, applied=received
                )
        self._seen, self._since = fresh, at.now

    def ran(self, report: Report) -> None:
        """Note what one run of the ring has carried out."""
        if not self._expected or report.cause != "tick" or report.at.now < self._since:
            return
        done = (c for c, result in report.outcome.results if isinstance(result, Applied | Pending))
        writes = sum(isinstance(change, ValueChange) for change in done)
        applied = datetime.fromtimestamp(report.at.wall, UTC)
        for change in self._expected.values():
            log.info("change.applied", source=change.source, generation=change.generation, trace=change.trace)
            self.applied = (*self.applied, replace(change, applied=applied, writes=writes))[-MOST:]
        self._expected.clear()

    def reported(self, report: NodeReport) -> None:
        """The control plane has what this report says."""
        self.applied = tuple(change for change in self.applied if change not in report.applied)


def _traces(document: NodeDocument) -> Mapping[str, tuple[str, int]]:
    every: list[Policy | Hold] = [
        *document.profiles,
        *document.policies,
        *document.strategies,
        *document.holds,
    ]
    return {
        reference(o): (trace, o.metadata.generation)
        for o in every
        if (trace := o.metadata.annotations.get(TRACE_ANNOTATION))
    }
