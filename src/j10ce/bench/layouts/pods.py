"""As kubelet lays it out: a burstable pod that requests CPU, and a best-effort pod of 2 shares for each antagonist."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from j10ce.bench.layouts.layout import Attended, Crowd, Seating, Untended
from j10ce.errors import QosError, Unsupported
from j10ce.host.mounts import Hierarchies
from j10ce.kernel.cgroup.files import CgroupFiles
from j10ce.kernel.cgroup.tree import PlainTree
from j10ce.model.knob import Setting, TargetId
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle

LEAST_SHARES: Final = 2.0
SHARES_PER_CPU: Final = 1024


class MadeGroups:
    """Cgroups below one of our own; they go with their last process."""

    def __init__(self, top: str, controller: str = "cpu") -> None:
        hierarchies = Hierarchies.discover()
        self._tree, self._files = PlainTree(hierarchies, top), CgroupFiles(hierarchies)
        self._controller = controller if hierarchies.version(controller) == 2 else ""
        self._made: list[str] = []

    def make(self, path: str, shares: float | None = None) -> str:
        at = Handle(path)
        _insist(self._tree.make(_target(path), at))
        self._made.append(path)
        if self._controller and (above := path.rpartition("/")[0]):
            _insist(self._tree.enable(_target(above), frozenset({self._controller})))
        if shares is not None:
            self.set(path, "cpu.weight", shares)
        return path

    def set(self, path: str, knob: str, value: float) -> None:
        _insist(self._files.write(Setting(_target(path), knob), value, Handle(path)))

    def join(self, path: str, pid: int) -> None:
        _insist(self._tree.join(_target(path), pid))

    def remove(self) -> None:
        """What is still inhabited stays, for whoever cleans up after the run."""
        for path in reversed(self._made):
            self._tree.remove(_target(path))


def _target(path: str) -> TargetId:
    return TargetId(f"group/{path}")


def _insist(result: Applied | Refused | Gone) -> None:
    match result:
        case Refused(reason):
            raise QosError(reason)
        case Gone():
            needs = "cgroups of this machine that have the cpu controller, and that nobody else removes"
            raise Unsupported("a cgroup of this run", needs=needs)
        case Applied():
            return


class KubePods:
    """`requests`: CPUs of the service's pod; `tending` is made of the group of best effort."""

    def __init__(
        self,
        top: str,
        cpus: float,
        requests: float,
        tending: Callable[[MadeGroups, str, Crowd], Attended] | None = None,
    ) -> None:
        self._top, self._cpus, self._requests = top, cpus, requests
        self._tending = tending or (lambda *_: Untended())

    @contextmanager
    def around(self, crowd: Crowd, /) -> Iterator[Attended]:
        groups, shares = MadeGroups(self._top), round(SHARES_PER_CPU * self._requests)
        try:
            pods = groups.make(self._top, SHARES_PER_CPU * self._cpus)
            burstable = groups.make(f"{pods}/burstable", shares)
            besteffort = groups.make(f"{pods}/besteffort", LEAST_SHARES)
            groups.join(groups.make(groups.make(f"{burstable}/pod", shares) + "/container", shares), crowd.service)
            for n, pid in enumerate(crowd.managed):
                pod = groups.make(f"{besteffort}/pod{n}", LEAST_SHARES)
                groups.join(groups.make(f"{pod}/container", LEAST_SHARES), pid)
            yield self._tending(groups, besteffort, crowd)
        finally:
            groups.remove()


def _conforms(pods: KubePods) -> Seating:
    return pods
