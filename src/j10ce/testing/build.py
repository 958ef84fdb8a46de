"""Small builders for tests: amounts as people write them, everything else with a sensible default.

web = workload("web", cpu="500m", memory="1Gi", profile="ls")
snap = snapshot(entitlement(web, tier="sensitive", floor_cpu="500m"), workloads=[web])
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from j10ce.model import knob, quantity
from j10ce.model.kinds import (
    PROFILE_LABEL,
    CpuSection,
    Hold,
    HoldSpec,
    Lending,
    MemorySection,
    Meta,
    MinimalReservationPolicy,
    MinimalReservationPolicySpec,
    Minimum,
    NodeStrategy,
    QoSProfile,
    QoSProfileSpec,
    Requirement,
    Rollout,
    Selector,
    Tier,
)
from j10ce.model.knob import CGROUP_KNOBS, KNOBS, ROOT, Setting, Support, TargetId, Value
from j10ce.model.machine.link import Link
from j10ce.model.machine.topology import Site, Topology
from j10ce.model.quantity import BitsPerSecond, Duration, Quantity
from j10ce.model.resource import Resources
from j10ce.model.schema import convert
from j10ce.model.snapshot import Foreign, Group, Groups, NodeFacts, Readings, Snapshot, Window
from j10ce.model.workload import APART, Ceiling, Entitlement, Handle, Source, Workload, plain_path

Amount = str | int
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)  # the default creation time of every object
WALL = EPOCH.timestamp()
TOP = "j10ce"


def cpu(amount: Amount) -> quantity.Millicores:
    return Quantity.parse(amount).millicores()


def memory(amount: Amount) -> quantity.Bytes:
    return Quantity.parse(amount).bytes()


def resources(cpu: Amount = 0, memory: Amount = 0, network: Amount = 0) -> Resources:
    parse = Quantity.parse
    return Resources(parse(cpu).millicores(), parse(memory).bytes(), BitsPerSecond(parse(network).bits_per_s()))


def minimum(**amounts: Amount) -> Minimum:
    """`minimum(cpu="500m", disk_read="10M")`."""
    return Minimum(**{name: Quantity.parse(amount) for name, amount in amounts.items()})


def meta(name: str, namespace: str = "", *, created: float = WALL, **fields: Any) -> Meta:
    return Meta(name=name, namespace=namespace, creation_timestamp=datetime.fromtimestamp(created, UTC), **fields)


def selector(labels: Mapping[str, str] | None = None, *expressions: tuple[str, str, Sequence[str]]) -> Selector:
    """`selector({"app": "web"}, ("zone", "In", ["a", "b"]))`."""
    return Selector(
        match_labels=dict(labels or {}),
        match_expressions=tuple(
            Requirement(key=key, operator=operator, values=tuple(values))  # type: ignore[arg-type]
            for key, operator, values in expressions
        ),
    )


def profile(
    name: str = "custom",
    tier: str = "standard",
    *,
    priority: int = 0,
    selector: Selector | UnsetType = UNSET,
    namespaces: Selector | UnsetType = UNSET,
    cpu: CpuSection | None = None,
    memory: MemorySection | None = None,
    created: float = WALL,
    **sections: Any,
) -> QoSProfile:
    """Other sections go through: `network=NetworkSection(...)`."""
    return QoSProfile(
        metadata=meta(name, created=created),
        spec=QoSProfileSpec(
            tier=Tier(tier),
            priority=priority,
            selector=selector,
            namespace_selector=namespaces,
            **{name: section for name, section in (("cpu", cpu), ("memory", memory)) if section is not None},  # type: ignore[arg-type]
            **sections,
        ),
    )


def reservation(
    name: str = "floor",
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    units: int = 0,
    ttl: str = "",
    nodes: Selector | UnsetType = UNSET,
    lending: Lending | None = None,
    rollout: Rollout | UnsetType = UNSET,
    created: float = WALL,
    **amounts: Amount,
) -> MinimalReservationPolicy:
    """`reservation("db", labels={"app": "db"}, cpu="1", memory="2Gi", units=2)`."""
    return MinimalReservationPolicy(
        metadata=meta(name, namespace, created=created),
        spec=MinimalReservationPolicySpec(
            minimum=minimum(**amounts),
            selector=selector(labels),
            units=units,
            ttl=Duration.parse(ttl) if ttl else UNSET,
            node_selector=nodes,
            lending=lending or Lending(),
            rollout=rollout,
        ),
    )


def strategy(
    name: str = "custom", said: Mapping[str, Any] | None = None, *, priority: int = 0, generation: int = 1, **spec: Any
) -> NodeStrategy:
    """`strategy("pool", {"suppress": {"mode": "quota"}}, priority=10)`; `said` as in YAML."""
    written = {"metadata": {"name": name}, "spec": {**(said or {}), "priority": priority, **spec}}
    made = convert(written, NodeStrategy)
    return replace(made, metadata=replace(made.metadata, uid=f"uid-{name}", generation=generation))


def hold(
    target: str,
    *knobs: str,
    value: str | UnsetType = UNSET,
    expires: float = WALL + 600,
    name: str = "hold",
    namespace: str = "",
) -> Hold:
    """Where its target belongs, unless another namespace is named."""
    until = datetime.fromtimestamp(expires, UTC)
    spec = HoldSpec(target=target, knobs=knobs, expires=until, why="incident 42", who="root", value=value)
    kind, _, rest = target.partition("/")
    where = namespace or (rest.partition("/")[0] if kind in ("workload", "part") else "j10ce-system")
    return Hold(metadata=meta(name, where), spec=spec)


def workload(
    name: str,
    *,
    namespace: str = "default",
    profile: str = "",
    labels: Mapping[str, str] | None = None,
    cpu: Amount = 0,
    memory: Amount = 0,
    cpu_limit: Amount | None = None,
    memory_limit: Amount | None = None,
    min_cpu: Amount = 0,
    min_memory: Amount = 0,
    min_network: Amount = 0,
    network_limit: Amount | None = None,
    **fields: Any,
) -> Workload:
    """Requests are `cpu` and `memory`; other fields go through (`since=`, `critical=`, `pids=`, `handle=`)."""
    chosen = {PROFILE_LABEL: profile} if profile else {}
    return Workload(
        namespace,
        name,
        labels={**chosen, **(labels or {})},
        requests=resources(cpu, memory),
        limits=ceiling(cpu_limit, memory_limit, network_limit),
        minimum=resources(min_cpu, min_memory, min_network),
        **fields,
    )


def ceiling(cpu: Amount | None = None, memory: Amount | None = None, network: Amount | None = None) -> Ceiling:
    return Ceiling(
        math.inf if cpu is None else float(Quantity.parse(cpu).millicores()),
        math.inf if memory is None else float(Quantity.parse(memory).bytes()),
        math.inf if network is None else float(Quantity.parse(network).bits_per_s()),
    )


def entitlement(
    of: Workload,
    *,
    tier: str = "standard",
    floor_cpu: Amount = 0,
    floor_memory: Amount = 0,
    cpu: CpuSection | None = None,
    memory: MemorySection | None = None,
    chosen: bool = True,
    profile: str = "custom",
    sources: tuple[Source, ...] = (),
) -> Entitlement:
    """What policy would give `of`: its own requests and limits, and the floors named here."""
    return Entitlement(
        target=of.target,
        chosen=chosen,
        tier=Tier(tier),
        profile=profile,
        requests=of.requests,
        floor=resources(floor_cpu, floor_memory),
        ceiling=of.limits,
        cpu=cpu or CpuSection(),
        memory=memory or MemorySection(),
        sources=sources,
    )


def node(cpus: int = 4, memory: Amount = "8Gi", name: str = "n1", **facts: Any) -> NodeFacts:
    return NodeFacts(name, frozenset(range(cpus)), Quantity.parse(memory).bytes(), **facts)


def link(name: str = "eth0", speed: Amount | None = "1Gbit", *, managed: bool = True, **fields: Any) -> Link:
    return Link(
        name, speed=math.inf if speed is None else float(Quantity.parse(speed).amount), managed=managed, **fields
    )


def topology(cores: int, threads: int = 2, *, per_l3: int = 0, per_socket: int = 0, step: int = 0) -> Topology:
    """Cores in their order, `per_l3` and `per_socket` of them together, all of them unless said.

    `step`: how far apart siblings are numbered; as most servers have it unless said: 0 and the number of cores.
    """
    first, apart = (threads, 1) if step == 1 else (1, step or cores)
    sites: dict[int, Site] = {}
    for core in range(cores):
        socket = core // (per_socket or cores)
        site = Site(core * first, socket, socket, core // (per_l3 or cores))
        sites |= {core * first + n * apart: site for n in range(threads)}
    return Topology(sites)


class FixedWindow(Sequence[float]):
    """A window over listed samples, newest last; it ignores its span."""

    def __init__(self, *samples: float) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: Any) -> Any:
        return self.samples[index]

    def last(self) -> float | None:
        return self.samples[-1] if self.samples else None

    def mean(self) -> float | None:
        return math.fsum(self.samples) / len(self.samples) if self.samples else None

    def peak(self) -> float | None:
        return max(self.samples, default=None)

    def quantile(self, q: float) -> float | None:
        """The nearest rank."""
        rank = max(1, math.ceil(q * len(self.samples)))
        return sorted(self.samples)[rank - 1] if self.samples else None


class FixedReadings:
    """Readings from a dict: `{(target, metric): value or samples}`."""

    def __init__(self, samples: Mapping[tuple[TargetId, str], float | Sequence[float]] | None = None) -> None:
        self.samples = dict(samples or {})

    def window(self, target: TargetId, metric: str, span_s: float) -> Window:
        samples = self.samples.get((target, metric), ())
        return FixedWindow(*samples) if isinstance(samples, Sequence) else FixedWindow(samples)

    def timed(self, target: TargetId, metric: str, span_s: float) -> Sequence[tuple[float, float]]:
        """One a second, from time 0 on."""
        samples = self.samples.get((target, metric), ())
        return [(float(n), v) for n, v in enumerate(samples if isinstance(samples, Sequence) else (samples,))]


def group(path: str, *, owned: bool = True, foreign: Iterable[Foreign] = (), current: Amount = 0) -> Group:
    """A cgroup by its path; the root is the empty path, the parent is the directory above."""
    up = knob.group(path.rpartition("/")[0]) if path else None
    return Group(knob.group(path), up, path, owned, foreign=tuple(foreign), memory_current=float(memory(current)))


def tree(
    workloads: Iterable[Workload],
    entitlements: Mapping[TargetId, Entitlement],
    *,
    groups: Iterable[Group] = (),
    current: Mapping[TargetId, float] | None = None,
) -> Groups:
    """The bare host's tree: root, `j10ce`, the tiers in use, and each workload where its handle or tier says.

    `groups` adds or replaces groups, for instance `group("", owned=False, foreign=[...])`.
    """
    made = {g.target: g for g in (group("", owned=False), group(TOP))}
    ours = (TOP, plain_path(TOP, APART))
    for w in workloads:
        tier = entitlements[w.target].tier if w.target in entitlements else Tier.STANDARD
        path = w.handle.path or plain_path(TOP, tier.value, f"{w.namespace}_{w.name}")
        for above in _directories(path):
            made.setdefault(knob.group(above), group(above, owned=above.split("/")[0] in ours))
        used = (current or {}).get(w.target, 0.0)
        up = knob.group(path.rpartition("/")[0])
        made[w.target] = Group(w.target, up, path, w.handle.made, memory_current=used)
        inner = ((t, p.handle) for t, p in zip(w.part_targets, w.parts, strict=True) if p.handle.path not in ("", path))
        made |= {t: Group(t, w.target, at.path, at.made) for t, at in inner}
    return Groups({**made, **{g.target: g for g in groups}})


def _directories(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


def handle(path: str, *, made: bool = False) -> Handle:
    """Of an adopted cgroup, unless `made`."""
    return Handle(path=path, made=made)


def settings(groups: Groups, values: Mapping[Setting, Value] | None = None) -> dict[Setting, Value]:
    """What a fresh tree holds, with `values` on top. The root has no settings."""
    fresh = {Setting(t, k.name): k.default for t in groups.by_target if t != ROOT for k in CGROUP_KNOBS.values()}
    return {**fresh, **(values or {})}


def support(*lacking: str, via: str = "cgroup2", having: Iterable[str] = ()) -> dict[str, Support]:
    """Every knob of mainline kernels is there except those named, and `having` of the others."""
    missing = {k.name for k in KNOBS.values() if k.rare}.difference(having).union(lacking)
    return {k: Support(False, needs="another kernel") if k in missing else Support(True, via) for k in KNOBS}


def snapshot(
    *entitlements: Entitlement,
    workloads: Iterable[Workload] = (),
    on: NodeFacts | None = None,
    groups: Groups | None = None,
    values: Mapping[Setting, Value] | None = None,
    readings: Readings | Mapping[tuple[TargetId, str], float | Sequence[float]] | None = None,
    lacking: Iterable[str] = (),
    having: Iterable[str] = (),
    now: float = 1000.0,
    wall: float = WALL,
    epoch: int = 1,
) -> Snapshot:
    """One instant. The tree, its settings and the support table follow from the workloads unless given."""
    present = {w.target: w for w in workloads}
    given = {e.target: e for e in entitlements}
    where = groups or tree(present.values(), given)
    measured = FixedReadings(readings) if readings is None or isinstance(readings, Mapping) else readings
    return Snapshot(
        now=now,
        wall=wall,
        node=on or node(),
        groups=where,
        readings=measured,
        workloads=present,
        entitlements=given,
        settings=settings(where, values),
        support=support(*lacking, having=having),
        epoch=epoch,
    )
