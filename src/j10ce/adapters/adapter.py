"""The seam to the environments workloads come from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Literal, NamedTuple, Protocol

from j10ce.model.knob import TargetId
from j10ce.model.workload import Workload


class WorkloadEvent(NamedTuple):
    """`SYNCED` follows the last `ADDED` of the first listing and carries no workload."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "SYNCED"]
    workload: Workload | None


class Adapter(Protocol):
    """One environment. The composition root (`agent/build.py`) gives the shell its adapters."""

    def workloads(self) -> AsyncIterator[WorkloadEvent]:
        """A full listing, SYNCED, then the changes that the environment makes. Cancelled to stop."""
        ...

    async def evict(self, target: TargetId, why: str) -> None:
        """Ask the environment to end a workload; returns once asked, not once gone. Raises NotFound."""
        ...

    def still_wanted(self, wanted: Mapping[TargetId, str], wall: float) -> bool:
        """All evictions that are wanted at this instant, and why: where an environment lets itself be asked for
        as long as they are, the others are withdrawn. Whether something is asked for that was not, or no more."""
        ...
