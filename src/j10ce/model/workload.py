"""A workload on a node, and what policy entitles it to."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, field

from j10ce.model import knob
from j10ce.model.bounds import MOST_TEXT
from j10ce.model.kinds import CacheSection, CpuSection, IoSection, MemorySection, NetworkSection, Tier
from j10ce.model.knob import TargetId
from j10ce.model.parts.sections import ProfileOverlay
from j10ce.model.parts.strategy import BurstSection
from j10ce.model.resource import NOTHING, Resources

HOST_NAMESPACE: Final = "j10ce-host"  # of what a strategy says runs beside all workloads; nobody else places there
APART: Final = Tier.BESTEFFORT.value  # the tier with a tree of its own beside ours: see docs/adr/0004
BANDS: Final = ("batch", "mid")  # of what is reclaimable: while it is not used, and by all that can be foreseen
# How those begin that are kept.
ANNOTATIONS: Final = re.compile(
    r"(?:j10ce\.io|(?:[a-z0-9.-]+\.)?koordinator\.sh)/|kubernetes\.io/(?:in|e)gress-bandwidth$|k8s\.aliyun\.com/qos-class$"
)
MOST_ANNOTATIONS: Final = 64  # of one workload
NativeClass = Literal["Guaranteed", "Burstable", "BestEffort"]
# What may call for an eviction: memory or CPUs of the node in use, best effort that gets too little CPU time, and more
# asked of what is lent than is lent.
EvictionTrigger = Literal["memory", "cpu", "satisfaction", "lent-cpu", "lent-memory"]


def plain_path(top: str, tier: str = "", leaf: str = "") -> str:
    """Where ours are on plain directories: `<top>/<tier>/<leaf>`; best effort's `<top>_besteffort/<leaf>` beside it."""
    steps = (f"{top}_{tier}",) if tier == APART else (top, tier)
    return "/".join(filter(None, (*steps, leaf)))


def heeded(annotations: Mapping[str, str]) -> dict[str, str]:
    """Those that some rule of ours may read, as many as are bearable, the first by name; none that is long."""
    ours = sorted(name for name in annotations if ANNOTATIONS.match(name) and len(annotations[name]) <= MOST_TEXT)
    return {name: annotations[name] for name in ours[:MOST_ANNOTATIONS]}


def unheeded(annotations: Mapping[str, str]) -> tuple[Note, ...]:
    """A note for each that some rule of ours might read, had it not been left out; as many as are bearable."""
    kept, ours = heeded(annotations), sorted(name for name in annotations if ANNOTATIONS.match(name))
    late = f"one of {len(ours)} annotations, of which the first {MOST_ANNOTATIONS} by name count"
    notes = []
    for name in (name for name in ours if name not in kept):
        length = len(annotations[name])
        long = f"{length} characters, of which none counts; write at most {MOST_TEXT}"
        notes.append(Note("Note", f"annotation {name}", long if length > MOST_TEXT else late))
    return tuple(notes[:MOST_ANNOTATIONS])


class Handle(Struct, frozen=True, omit_defaults=True):
    """Where the cgroup of a workload or a group is on this machine."""

    # Relative to the root of every hierarchy, no leading slash. The root's own path is written out as well: a journal
    # may be read by an agent that asks for it.
    path: str = field(default_factory=str)
    unit: str = ""  # its systemd unit, where systemd owns the tree
    paths: Mapping[str, str] = field(default_factory=dict)  # per v1 controller, where an adopted one differs
    made: bool = True  # we made the cgroup, so we remove it; False: adopted

    def path_of(self, controller: str) -> str:
        return self.paths.get(controller, self.path)


class Ceiling(Struct, frozen=True):
    """Limits, each in the unit of `Resources`; infinite where there is none."""

    cpu: float = math.inf
    memory: float = math.inf
    network: float = math.inf  # of what is sent and of what is received, each
    disk_read: float = math.inf  # on every disk
    disk_write: float = math.inf


class Traffic(Struct, frozen=True):
    """Bits per second in one direction, on every managed link."""

    floor: float = 0.0  # granted by the ledger
    ceiling: float = math.inf


class Reclaimable(Struct, frozen=True):
    """What is asked for of the capacity that others leave."""

    requests: Resources = NOTHING
    limits: Ceiling = Ceiling()


def lent(bands: Mapping[str, Reclaimable]) -> Reclaimable:
    """What is asked of all bands together; a band without a limit leaves the whole without one."""
    every = [*bands.values()]
    asked = Resources()
    for one in every:
        asked = asked.plus(one.requests)
    return Reclaimable(
        asked, Ceiling(sum(b.limits.cpu for b in every) or math.inf, sum(b.limits.memory for b in every) or math.inf)
    )


class Part(Struct, frozen=True):
    """A container of a pod; gets a share of the workload's floor, and has no ledger line of its own."""

    name: str
    handle: Handle
    requests: Resources = NOTHING
    limits: Ceiling = Ceiling()
    reclaimable: Mapping[str, Reclaimable] = field(default_factory=dict)  # by band: batch, mid


class Source(Struct, frozen=True):
    """Which object gave a workload which part of its entitlement."""

    field: str  # `profile`, `floor.cpu`, `floor.memory`, `cpu.weight`
    object: str  # `QoSProfile/ls`, `NodeStrategy`, `MinimalReservationPolicy/payments/db`, `Workload/default/web`
    why: str


class Note(Struct, frozen=True):
    """What was asked for and not granted, or not in the way that was asked for.

    Code looks at the kind and the source; people read all of it, as `str` spells it.
    """

    kind: Literal["Unprotected", "Note"]  # Unprotected: the ledger had no room for the whole claim of `source`
    source: str  # the object that asked: `MinimalReservationPolicy/payments/db`; empty where it is the workload's label
    text: str

    def __str__(self) -> str:
        if self.kind == "Unprotected":
            return f"{self.kind}: {self.source} {self.text}"
        return f"{self.source}: {self.text}" if self.source else self.text


class EvictionHints(Struct, frozen=True):
    """What is said of one workload about its eviction; whoever reads annotations and labels fills it in."""

    willing: bool = False  # may be frozen and evicted, though it is not best effort
    triggers: tuple[EvictionTrigger, ...] | None = None  # that may evict it; None: any
    order: int = 0  # among all, before priority: lower goes first
    rank: int | None = None  # among those of one priority: lower goes first; None: its priority


class CoreWish(Struct, frozen=True):
    """Whose threads may run beside those of one workload on one core, where its profile asks for core scheduling."""

    group: str = ""  # of its namespace; empty: the one that all have who say nothing
    policy: Literal["", "exclusive", "none"] = ""  # exclusive: nobody's; none: anybody's


class Overrides(Struct, frozen=True):
    """What is said of one workload alone, on top of its profile."""

    sections: ProfileOverlay = ProfileOverlay()
    eviction: EvictionHints = EvictionHints()
    burst: BurstSection = BurstSection()  # over what the node's strategy says
    core: CoreWish = CoreWish()
    origins: Mapping[str, str] = field(default_factory=dict)  # `cpu.burst` -> who said so, such as an annotation
    notes: tuple[Note, ...] = ()  # what was said and could not be understood, or is not allowed
    profiles: tuple[str, ...] = ()  # that it is to have unless our own label says otherwise, the best first
    switched_on: tuple[str, ...] = ()  # without a profile it has what the node's strategy says of the first of these


class Workload(Struct, frozen=True):
    """Anything that can be given QoS: a local command, a unit, an adopted cgroup, a pod."""

    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    requests: Resources = NOTHING
    limits: Ceiling = Ceiling()
    minimum: Resources = NOTHING  # a reservation for this one workload (`run --min-cpu`)
    handle: Handle = Handle()
    parts: tuple[Part, ...] = ()
    pids: tuple[int, ...] = ()  # processes waiting to be put in
    proofs: tuple[str, ...] = ()  # one for each of them: a number is not a process
    uid: int = 0  # the user who placed it
    vouched: bool = True  # that it is what its namespace and labels say: else policies for those are not for it
    since: float = 0.0  # wall clock of its arrival
    critical: bool = False  # never below tier system
    annotations: Mapping[str, str] = field(default_factory=dict)  # those that some rule of ours may read
    priority: int | None = None  # of its PriorityClass; None: it has none
    reclaimable: Mapping[str, Reclaimable] = field(default_factory=dict)  # by band: batch, mid
    overrides: Overrides = Overrides()
    leaving: bool = False  # its maker is ending it
    resizing: bool = False  # its maker is about to write its cgroup, and an idle one takes no weight
    own_network: bool = False  # a network namespace of its own: what it sends is forwarded here, and has no socket
    addresses: tuple[str, ...] = ()  # of that network

    @property
    def target(self) -> TargetId:
        return knob.workload(self.namespace, self.name)

    @property
    def part_targets(self) -> list[TargetId]:
        return [knob.part(self.namespace, self.name, p.name) for p in self.parts]

    @property
    def waiting(self) -> list[tuple[int, str]]:
        """Each of `pids` with its proof; empty where nobody knows whose number it was."""
        return [(pid, "".join(self.proofs[n : n + 1])) for n, pid in enumerate(self.pids)]

    @property
    def native_class(self) -> NativeClass:
        """Kubernetes' own rule; it classifies, it never chooses knobs."""
        asked, most = (self.requests.cpu, self.requests.memory), (self.limits.cpu, self.limits.memory)
        if asked == (0, 0) and most == (math.inf, math.inf):
            return "BestEffort"
        equal = asked == most
        return "Guaranteed" if equal else "Burstable"


class Entitlement(Struct, frozen=True):
    """What policy gives one workload. `chosen` False: it is only classified, and no knob of it is written."""

    target: TargetId
    chosen: bool
    tier: Tier
    profile: str = ""
    requests: Resources = NOTHING
    floor: Resources = NOTHING  # granted by the ledger
    ceiling: Ceiling = Ceiling()
    cpu: CpuSection = CpuSection()
    memory: MemorySection = MemorySection()
    cache: CacheSection = CacheSection()
    sources: tuple[Source, ...] = ()
    notes: tuple[Note, ...] = ()  # what was asked for and not granted, with the numbers
    network: NetworkSection = NetworkSection()
    io: IoSection = IoSection()
    egress: Traffic = Traffic()
    ingress: Traffic = Traffic()
