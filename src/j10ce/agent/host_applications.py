"""What a node's strategy says runs beside all workloads: cgroups that exist already, adopted where they are.

They come when their cgroup does and go when it does, or when no strategy names them any more. One that is part of
something managed, or above it, stays as it is, and a warning says why.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from typing import Final

import structlog
from msgspec import UNSET

from j10ce.adapters.adapter import Adapter, WorkloadEvent
from j10ce.agent.ring.objects import namespace_labels
from j10ce.agent.socket.admission import Caller, check_cgroup, check_free
from j10ce.agent.socket.whereabouts import Whereabouts
from j10ce.errors import Denied, NotFound
from j10ce.model.kinds import PROFILE_LABEL
from j10ce.model.knob import TargetId
from j10ce.model.parts.strategy import HostApplication, Strategy
from j10ce.model.workload import HOST_NAMESPACE, Workload
from j10ce.policy.profiles import canonical

log = structlog.get_logger()
ADMINISTRATOR: Final = Caller(pid=0, uid=0, gid=0)  # nobody else writes strategies
PRIORITIES: Final = {"prod": 9500, "mid": 7500, "batch": 5500, "free": 3500}  # of the bands, in the middle of each


class HostApplications:
    """Those that are adopted. All methods run on the event loop; whoever asks hands the events to the ring."""

    def __init__(self, top: str, whereabouts: Whereabouts, strategy: Strategy, known: Collection[Workload]) -> None:
        """`strategy`, `known`: at the start, so that what is adopted already does not go and come again."""
        self._top = top
        self._whereabouts = whereabouts
        self._at_start = strategy.host_applications, known
        self._adopted: dict[HostApplication, Workload] = {}
        self._refused: dict[HostApplication, str] = {}

    def follow(self, said: tuple[HostApplication, ...], known: Collection[Workload]) -> Iterator[WorkloadEvent]:
        """What changes with what is said and there at the moment; `known`: all workloads of the ring."""
        self._refused = {a: why for a, why in self._refused.items() if a in said}
        for application in [a for a in self._adopted if a not in said or not self._is_there(a)]:
            yield WorkloadEvent("DELETED", self._adopted.pop(application))
        for application in said:
            if application not in self._adopted and (adopted := self._adopt(application, known)) is not None:
                self._adopted[application] = adopted
                yield WorkloadEvent("ADDED", adopted)

    def _is_there(self, application: HostApplication) -> bool:
        return self._whereabouts.pids(self._adopted[application]) is not None

    def _adopt(self, application: HostApplication, known: Collection[Workload]) -> Workload | None:
        """None while there is no such cgroup, or where it may not be adopted."""
        try:
            handle = self._whereabouts.cgroup(check_cgroup(application.cgroup, self._top, ADMINISTRATOR))
            check_free(handle, known)
        except NotFound:
            return None
        except Denied as e:
            if self._refused.get(application) != str(e):
                log.warning("application.refused", name=application.name, cgroup=application.cgroup, why=str(e))
            self._refused[application] = str(e)
            return None
        self._refused.pop(application, None)
        return Workload(
            HOST_NAMESPACE,
            application.name,
            labels={PROFILE_LABEL: canonical(application.profile)} if application.profile else {},
            namespace_labels=namespace_labels(HOST_NAMESPACE, ADMINISTRATOR.uid),
            handle=handle,
            priority=None if application.priority is UNSET else PRIORITIES[application.priority],
        )

    async def workloads(self) -> AsyncIterator[WorkloadEvent]:
        for event in self.follow(*self._at_start):
            yield event
        yield WorkloadEvent("SYNCED", None)

    async def evict(self, target: TargetId, why: str) -> None:
        """Nobody asked for it to be here, and nobody would start it again."""
        if any(w.target == target for w in self._adopted.values()):
            raise Denied(f"{target} is an application of the host; it is never evicted")
        raise NotFound(f"{target} is not an application of this host")

    def still_wanted(self, wanted: Mapping[TargetId, str], wall: float) -> bool:
        """None of them is ever asked to leave."""
        return False


_: type[Adapter] = HostApplications
