"""Local commands, adopted cgroups and units: they come over the agent's socket, and end when their cgroup is empty.

An adopted unit does not: a restart or a crash empties its cgroup, and is when its floor is needed again.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterable, KeysView, Mapping
from contextlib import suppress
from typing import Final, Protocol

import structlog

from j10ce.adapters.adapter import Adapter, WorkloadEvent
from j10ce.errors import AlreadyExists, NotFound
from j10ce.kernel.process import pinned
from j10ce.model.knob import TargetId
from j10ce.model.workload import Workload

log = structlog.get_logger()
AT_LEAST: Final = 20  # workloads looked at in each round
ROUNDS: Final = 5  # rounds in which every workload is looked at once


class Residents(Protocol):
    """Who lives in a workload's cgroup."""

    def pids(self, workload: Workload, /) -> list[int] | None:
        """The processes inside; None when the cgroup is gone."""
        ...

    def returns(self, workload: Workload, /) -> bool:
        """Whether one without processes is between two of its lives, as a unit that restarts."""
        ...


class StaticAdapter:
    """Known workloads by target. All methods run on the event loop.

    Whoever makes a change hands its event to the ring, so that it can wait for what becomes of it.
    """

    def __init__(self, known: Iterable[Workload], residents: Residents) -> None:
        self._known = {w.target: w for w in known}
        self._inhabited = set(self._known)  # has had a process: an empty cgroup means its end
        self._residents = residents
        self._round: list[TargetId] = []

    def __contains__(self, target: TargetId) -> bool:
        return target in self._known

    def get(self, target: TargetId) -> Workload:
        return self._known[target]

    def targets(self) -> KeysView[TargetId]:
        return self._known.keys()

    def known(self) -> list[Workload]:
        return list(self._known.values())

    def add(self, workload: Workload) -> WorkloadEvent:
        """Raises AlreadyExists when the name is taken by one that still lives."""
        if workload.target in self._known:
            raise AlreadyExists(
                f"{workload.namespace}/{workload.name} exists already; choose another name or end it first"
            )
        self._known[workload.target] = workload
        self._residents.returns(workload)  # whether it will is seen best while it lives
        return WorkloadEvent("ADDED", workload)

    def settle(self, workload: Workload) -> None:
        """The ring has found a place for it: remember where; the ring need not hear of it."""
        if before := self._known.get(workload.target):
            self._known[workload.target] = workload
            if before.pids and not workload.pids:  # they are in
                self._inhabited.add(workload.target)

    def entered(self, target: TargetId) -> None:
        """Its first processes are in."""
        if target in self._known:
            self._inhabited.add(target)

    def remove(self, target: TargetId) -> WorkloadEvent:
        """Stop managing it; the ring undoes what it wrote. Raises NotFound."""
        workload = self._known.pop(target, None)
        self._inhabited.discard(target)
        if workload is None:
            raise NotFound(f"{target} is not a local workload")
        return WorkloadEvent("DELETED", workload)

    def sweep(self) -> list[WorkloadEvent]:
        """Look at a part of the workloads in turn; those whose cgroup is empty or gone have ended."""
        if not self._round:
            self._round = list(self._known)
        size = max(AT_LEAST, len(self._known) // ROUNDS)
        now, self._round = self._round[:size], self._round[size:]
        return [ended for target in now if target in self._known and (ended := self.look(target))]

    def look(self, target: TargetId) -> WorkloadEvent | None:
        """Notice the end of one workload. One that nobody has entered yet is early, not over."""
        workload = self._known[target]
        pids, returns = self._residents.pids(workload), self._residents.returns(workload)
        if pids:
            self._inhabited.add(target)
        elif not returns and (pids is None or target in self._inhabited):
            why = "its cgroup is gone" if pids is None else "its last process ended"
            log.info("workload.ended", namespace=workload.namespace, name=workload.name, why=why)
            return self.remove(target)
        return None

    async def workloads(self) -> AsyncIterator[WorkloadEvent]:
        for workload in self.known():
            yield WorkloadEvent("ADDED", workload)
        yield WorkloadEvent("SYNCED", None)

    async def evict(self, target: TargetId, why: str) -> None:
        """Ask every process of the workload to end."""
        workload = self._known.get(target)
        if workload is None:
            raise NotFound(f"{target} is not a local workload")
        for pid in self._residents.pids(workload) or ():
            with pinned(pid) as handle, suppress(ProcessLookupError):
                if handle is not None and pid in (self._residents.pids(workload) or ()):  # a number is not a process
                    signal.pidfd_send_signal(handle, signal.SIGTERM)

    def still_wanted(self, wanted: Mapping[TargetId, str], wall: float) -> bool:
        """A signal cannot be called back."""
        return False


_: type[Adapter] = StaticAdapter
