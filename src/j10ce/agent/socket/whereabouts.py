"""Where workloads are on this machine: who lives in a cgroup, and how one that runs already is found."""

from __future__ import annotations

import os
from collections.abc import Iterable
from glob import escape, glob
from typing import Final

import structlog
from msgspec.structs import replace

from j10ce.adapters.static import Residents
from j10ce.agent.cache import KeptWorkload
from j10ce.agent.ring.objects import from_object
from j10ce.agent.socket.left_limits import Limit, left_limits
from j10ce.errors import NotFound, Unsupported
from j10ce.host.files import read_whole
from j10ce.host.mounts import Hierarchies
from j10ce.kernel.owner import TreeOwner
from j10ce.kernel.process import Process, proof
from j10ce.model.knob import TargetId
from j10ce.model.snapshot import NodeFacts
from j10ce.model.workload import Handle, Workload

log = structlog.get_logger()
TRANSIENT: Final = ("/run/systemd/transient", "/run/user/*/systemd/transient")  # files of units of `systemd-run`


class Whereabouts:
    def __init__(self, hierarchies: Hierarchies, owner: TreeOwner) -> None:
        self._hierarchies = hierarchies
        self._owner = owner
        self._controllers = tuple(hierarchies.in_use())  # an adopted v1 cgroup may be in one hierarchy alone
        self._transient: set[TargetId] = set()  # units that systemd forgets once they end

    def pids(self, workload: Workload, /) -> list[int] | None:
        """All processes in or below the cgroup; before it is there, those that wait. None: all of it is gone."""
        handle = workload.handle
        if not handle.path and not workload.pids:
            return []  # the ring has yet to find a place for it
        if workload.pids or not handle.path or not self._controllers:
            return _waiting(workload) or None
        for controller in self._controllers:
            if not handle.path_of(controller):
                continue  # who is in the root is everybody
            top = self._hierarchies.directory(controller, handle.path_of(controller))
            if (inside := _residents(top)) is not None:
                return inside or [pid for folder, _, _ in os.walk(top) for pid in _residents(folder) or ()]
        return None

    def limits(self, process: Process) -> list[Limit]:
        """Those that it would leave if it were moved."""
        return left_limits(process, self._hierarchies)

    def returns(self, workload: Workload, /) -> bool:
        """A service is its unit: between two of its processes it is not over, nor while it is stopped.

        One of `systemd-run` is over when systemd has forgotten it; any other ends here by `forget` alone.
        """
        unit = workload.handle.unit
        if workload.handle.made or not unit or unit.endswith(".scope"):
            return False
        kept = any(glob(f"{folder}/{escape(unit)}") for folder in TRANSIENT)
        if kept:
            self._transient.add(workload.target)
        return kept or workload.target not in self._transient

    def identity(self, handle: Handle) -> int:
        """Proves later that the cgroup is the same one; 0 where there is none."""
        identities = (self._owner.tree.identity(handle, controller) for controller in self._controllers if handle.path)
        return next(filter(None, identities), 0)

    def unit(self, name: str) -> Handle:
        if self._owner.units is None:
            raise Unsupported("adopting a unit", needs="systemd as the owner of the cgroup tree")
        return replace(self._owner.units.locate(name if "." in name else f"{name}.service"), made=False)

    def cgroup(self, path: str) -> Handle:
        """A service by its cgroup is that service: it comes back in the same place."""
        unit = self._owner.units.unit_at(path) if self._owner.units else ""
        handle = Handle(path=path, unit=unit if unit.endswith(".service") else "", made=False)
        present = (os.path.isdir(self._hierarchies.directory(c, path)) for c in self._hierarchies.in_use())
        if not any(present):
            raise NotFound(f"there is no cgroup {path}")
        return handle

    def surviving(self, remembered: Iterable[KeptWorkload], node: NodeFacts) -> list[Workload]:
        """Those whose cgroup is the very one that was remembered; a reused path or another boot is not."""
        return [
            from_object(p.workload, node, handle=p.handle, uid=p.uid, since=p.since)
            for p in remembered
            if self._survives(p, node)
        ]

    def _survives(self, placed: KeptWorkload, node: NodeFacts) -> bool:
        same = placed.boot_id == node.boot_id and self.identity(placed.handle) == placed.inode
        if not same:
            log.info("workload.not_found_again", name=placed.workload.metadata.name, cgroup=placed.handle.path)
        return same


def _waiting(workload: Workload) -> list[int]:
    """Of the processes that wait to be put in, those that are still the same."""
    return [pid for pid, known in workload.waiting if (present := proof(pid)) and known in ("", present)]


def _residents(folder: str) -> list[int] | None:
    text = read_whole(f"{folder}/cgroup.procs")
    return None if text is None else [int(pid) for pid in text.split()]


_: type[Residents] = Whereabouts
