"""Everything a decision may look at, at one instant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from j10ce.model.knob import ROOT, Deed, Setting, Support, TargetId, Value
from j10ce.model.machine.facts import NodeFacts as NodeFacts
from j10ce.model.parts.strategy import Strategy
from j10ce.model.workload import Entitlement, Workload


class Foreign(NamedTuple):
    """A sibling that we do not manage, or the tasks that sit directly in a group."""

    name: str
    weight: float  # v1 shares; tasks that sit in a group count 1024 each, as far as they run or wait to
    memory_min: float = 0.0
    memory_low: float = 0.0
    memory_current: float = 0.0


class Group(Struct, frozen=True):
    """One node of the cgroup tree that is ours, or above something of ours."""

    target: TargetId
    parent: TargetId | None  # None: the root
    path: str
    owned: bool  # made by us; an ancestor that is not ours is changed only for guarantees, only upwards
    exists: bool = True
    foreign: tuple[Foreign, ...] = ()  # who else competes inside this group
    memory_current: float = 0.0
    enabled: frozenset[str] | None = None  # controllers that its children have; None: not known
    busy: bool = False  # of ours that no workload needs: something is in it all the same, so that it cannot be removed


class Groups(Struct, frozen=True, dict=True):
    """The part of the cgroup tree that matters: every managed target and all its ancestors up to the root."""

    by_target: Mapping[TargetId, Group] = field(default_factory=dict)

    def __getitem__(self, target: TargetId) -> Group:
        return self.by_target[target]

    def get(self, target: TargetId) -> Group | None:
        return self.by_target.get(target)

    def parent(self, target: TargetId) -> TargetId | None:
        group = self.by_target.get(target)
        return group.parent if group else None

    def ancestors(self, target: TargetId) -> Iterator[TargetId]:
        """From the parent up to the root."""
        up = self.parent(target)
        while up is not None:
            yield up
            up = self.parent(up)

    @cached_property
    def children(self) -> Mapping[TargetId, tuple[TargetId, ...]]:
        below: dict[TargetId, list[TargetId]] = {}
        for g in self.by_target.values():
            if g.parent is not None:
                below.setdefault(g.parent, []).append(g.target)
        return {t: tuple(sorted(c)) for t, c in below.items()}

    def depth(self, target: TargetId) -> int:
        return sum(1 for _ in self.ancestors(target))

    def from_top(self) -> list[TargetId]:
        """Every target, parents before children."""
        out, queue = [], [ROOT] if ROOT in self.by_target else []
        while queue:
            here = queue.pop(0)
            out.append(here)
            queue.extend(self.children.get(here, ()))
        return out


class Piece(NamedTuple):
    """A target beside cgroups that is there: the node itself, a group of resctrl, a link, a disk, a share of links."""

    target: TargetId
    owned: bool = False  # made by us: it goes when nobody proposes anything for it


class Window(Protocol):
    """The samples of one series over one span, newest last."""

    def last(self) -> float | None: ...
    def mean(self) -> float | None: ...
    def peak(self) -> float | None: ...
    def quantile(self, q: float) -> float | None: ...
    def __len__(self) -> int: ...


class Readings(Protocol):
    """What was measured. Metrics: see `METRICS`; an unknown series is an empty window."""

    def window(self, target: TargetId, metric: str, span_s: float) -> Window: ...

    def timed(self, target: TargetId, metric: str, span_s: float) -> Sequence[tuple[float, float]]:
        """(time, value) of single samples, as far as they are kept: two minutes at most, oldest first."""
        ...


# The series every observer keeps, per target (the node itself is `node`).
METRICS: Mapping[str, str] = {
    "cpu.usage": "CPUs in use (1.0 is one CPU), mean over the sample interval",
    "cpu.throttled": "share of periods throttled in the sample interval, 0 to 1",
    "memory.current": "bytes charged",
    "memory.working_set": "bytes charged less inactive file cache",
    "memory.file": "bytes of page cache, without shared memory; of those whose memory is taken back",
    "cpu.pressure": "share of time some task waited for a CPU, 0 to 1",
    "memory.pressure": "share of time some task waited for memory, 0 to 1",
    "io.pressure": "share of time some task waited for I/O, 0 to 1",
    "io.usage": "bytes read and written per second; cgroup v2, of those that are looked at closely",
    "cpu.wait": "seconds that threads waited for a CPU, per second; where cgroups have no pressure",
    "cpu.cpi": "cycles per instruction; where there are hardware counters",
    "memory.refaults": "pages per second that were reclaimed and needed again",
    "memory.direct_reclaim": "pages per second that tasks had to look at themselves to get memory",
    "memory.stalls": "allocations per second that had to wait for that; of the node",
    "cache.occupancy": "bytes of the last-level caches that a group of resctrl holds",
    "memory.bandwidth": "bytes per second that a group of resctrl moves to and from memory",
    "net.egress.rate": "bits sent per second; of workloads, and of links",
    "net.ingress.rate": "bits received per second; of workloads, and of links",
    "net.egress.drops": "packets per second that a queue of ours dropped",
    "net.egress.backlog": "bytes that wait in a queue of ours",
    "net.rtt": "seconds of a round trip, smoothed by TCP, mean over a workload's connections; every five seconds",
    "net.retransmits": "segments per second that TCP sent again; likewise",
    "disk.read": "bytes read per second; of workloads, and of disks",
    "disk.write": "bytes written per second; of workloads, and of disks",
    "disk.riops": "reads per second; of workloads, and of disks",
    "disk.wiops": "writes per second; of workloads, and of disks",
    "disk.busy": "share of time that a disk had something to do, 0 to 1; of disks",
    "io.vrate": "percent of its own pace at which io.cost lets a disk be used",
}


class Snapshot(Struct, frozen=True):
    """One instant. `now` is monotonic and drives control laws; `wall` serves expiry only."""

    now: float
    wall: float
    node: NodeFacts
    groups: Groups
    readings: Readings
    workloads: Mapping[TargetId, Workload] = field(default_factory=dict)
    entitlements: Mapping[TargetId, Entitlement] = field(default_factory=dict)
    settings: Mapping[Setting, Value] = field(default_factory=dict)  # the last read-back
    support: Mapping[str, Support] = field(default_factory=dict)
    epoch: int = 0  # moves with workloads, entitlements, groups, support, strategy: what depends on those may be kept
    originals: Mapping[Setting, Value] = field(default_factory=dict)  # what settings held before our first write
    strategy: Strategy = Strategy()  # what is said of this node, all its strategies merged; the rest is as by default
    pieces: Mapping[TargetId, Piece] = field(default_factory=dict)  # targets beside cgroups
    lent: Mapping[str, float] = field(default_factory=dict)  # `batch-cpu` in millicores, `mid-memory` in bytes, …
    held: frozenset[Setting] = frozenset()  # left as they are, by an operator's hold
    done: Mapping[tuple[Deed, TargetId], float] = field(default_factory=dict)  # wall clock of the last deed of a kind

    def supports(self, knob: str) -> bool:
        support = self.support.get(knob)
        return support is not None and support.ok
