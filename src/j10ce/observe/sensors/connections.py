"""How connections of workloads fare: segments sent again, and the round trip, smoothed by TCP itself.

Read seldom: a look takes microseconds for every connection there is. A pod with a network of its own is asked there.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from j10ce.errors import QosError, Unsupported
from j10ce.host.mounts import UNIFIED, Hierarchies
from j10ce.host.net import connections
from j10ce.host.net.connections import TcpConnection
from j10ce.host.net.netlink import Netlink
from j10ce.model.knob import TargetId
from j10ce.model.workload import Workload
from j10ce.observe.sensor import Sample, Sensor

EVERY_S: Final = 5.0
SHARE: Final = 0.01  # of the time may go into looking
MICROSECOND: Final = 1e-6


class ConnectionSensor:
    name = "connections"

    def __init__(
        self,
        hierarchies: Hierarchies,
        netlink: Netlink,
        proc: str = "/proc",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._hierarchies, self._netlink, self._proc, self._clock = hierarchies, netlink, proc, clock
        self._next, self._at = 0.0, 0.0
        self._again: dict[bytes, int] = {}  # by cookie: segments sent again, ever
        self._elsewhere: dict[int, Netlink] = {}  # by namespace; whoever holds one keeps it, so none is held for long
        self._entered: dict[TargetId, tuple[str, int]] = {}  # of a pod: a process of it, and its namespace
        self._owners: dict[int, TargetId] = {}  # by the id of a cgroup: a workload's own, and all below
        self._strangers: set[int] = set()  # other cgroups
        self._places: frozenset[tuple[TargetId, str]] = frozenset()  # of whom both are

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterator[Sample]:
        if now < self._next or not workloads:
            return
        begun = self._clock()
        samples = list(self._look(now, workloads))
        self._next = now + max(EVERY_S, (self._clock() - begun) / SHARE)
        yield from samples

    def _look(self, now: float, workloads: Collection[Workload]) -> Iterator[Sample]:
        present = list(self._connections(workloads))
        self._know(workloads, {one.cgroup for one in present})
        trips: defaultdict[TargetId, list[int]] = defaultdict(list)
        again: defaultdict[TargetId, int] = defaultdict(int)
        before, self._again = self._again, {}
        for one in present:
            if (owner := self._owners.get(one.cgroup)) is not None:
                trips[owner].append(one.rtt_us)
                again[owner] += max(0, one.retransmits - before.get(one.cookie, 0))
                self._again[one.cookie] = one.retransmits
        passed, self._at = now - self._at, now
        for owner, times in trips.items():
            yield Sample(owner, "net.rtt", sum(times) / len(times) * MICROSECOND)
            if passed < now:  # not the first look
                yield Sample(owner, "net.retransmits", again[owner] / passed)

    def _know(self, workloads: Collection[Workload], cgroups: set[int]) -> None:
        """Looked for again only where somebody is new."""
        places = frozenset((w.target, w.handle.path_of(UNIFIED)) for w in workloads)
        if places == self._places and self._owners.keys() | self._strangers >= cgroups:
            return
        self._places, self._owners = places, {}
        for target, path in places:
            for folder, _, _ in os.walk(self._hierarchies.directory(UNIFIED, path)):
                with suppress(OSError):
                    self._owners[os.stat(folder).st_ino] = target
        self._strangers = cgroups - self._owners.keys()

    def _connections(self, workloads: Collection[Workload]) -> Iterator[TcpConnection]:
        asked = [self._netlink, *self._of_pods(workloads)]
        for netlink in asked:
            with suppress(OSError, QosError):
                yield from connections.connections(netlink)

    def _of_pods(self, workloads: Collection[Workload]) -> list[Netlink]:
        kept: dict[int, Netlink] = {}
        entered: dict[TargetId, tuple[str, int]] = {}
        for w in workloads:
            with suppress(OSError, Unsupported):  # ended meanwhile, or nothing that we may enter
                if w.own_network and (door := self._door(w)):
                    file, inode = entered[w.target] = door
                    kept[inode] = kept.get(inode) or self._elsewhere.get(inode) or connections.inside(file)
        for inode in self._elsewhere.keys() - kept.keys():
            self._elsewhere[inode].close()
        self._elsewhere, self._entered = kept, entered
        return list(kept.values())

    def _door(self, w: Workload) -> tuple[str, int] | None:
        """The file of its namespace, by the process that it was known by the last time, or by any of it."""
        known = self._entered.get(w.target)
        with suppress(OSError):
            if known and os.stat(known[0]).st_ino == known[1]:
                return known
        file = f"{self._proc}/{pid}/ns/net" if (pid := self._process(w)) else ""
        return (file, os.stat(file).st_ino) if file else None

    def _process(self, w: Workload) -> str:
        """Any of it."""
        top = self._hierarchies.directory(UNIFIED, w.handle.path_of(UNIFIED))
        for folder, _, _ in os.walk(top):
            with suppress(OSError):
                if pids := Path(folder, "cgroup.procs").read_text(encoding="ascii").split():
                    return pids[0]
        return ""


def tcp(hierarchies: Hierarchies) -> list[Sensor]:
    """Nobody where sockets cannot be told apart by cgroup."""
    if hierarchies.unified is None:
        return []
    try:
        return [ConnectionSensor(hierarchies, connections.here())]
    except (Unsupported, OSError):
        return []
