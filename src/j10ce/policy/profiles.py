"""The profiles that are there from the start, who may choose them, and what a profile does to each knob.

They are ordinary objects, created when absent; an edit of theirs stays. None of them asks for memory.min equal to
memory.max: a workload whose every page is protected can only be killed, never reclaimed from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from j10ce.model.kinds import (
    BUILT_IN_LABEL,
    NAMESPACE_NAME_LABEL,
    CpuSection,
    IoSection,
    MemorySection,
    Meta,
    QoSProfile,
    QoSProfileSpec,
    Requirement,
    Selector,
    Tier,
)
from j10ce.model.quantity import Quantity
from j10ce.policy.select import Labels, matches

# On a namespace: its workloads may choose any profile. On Kubernetes only who may edit namespaces can set it; on a bare
# host the agent sets it for what uid 0 places, because root is that machine's administrator.
TRUSTED_LABEL: Final = "j10ce.io/trusted"
TRUSTED_NAMESPACES: Final = ("j10ce-system", "kube-system")
RESERVES_REQUEST: Final = frozenset({Tier.EXCLUSIVE, Tier.RESERVED})  # the request itself is a minimal reservation
BURSTS: Final = frozenset({Tier.SENSITIVE, Tier.STANDARD})  # whose limits a strategy's burst lets them exceed

_LISTED: Final = Selector(
    match_expressions=(Requirement(key=NAMESPACE_NAME_LABEL, operator="In", values=TRUSTED_NAMESPACES),)
)
_WHOLE_LIMIT: Final = Quantity(100, percent=True)
# 80 of a request that equals its limit leaves a fifth that can be reclaimed before the workload is killed.
_KEPT: Final = MemorySection(min_percent=80, low_percent=100)
_RESERVED: Final = QoSProfileSpec(
    tier=Tier.RESERVED,
    namespace_selector=_LISTED,
    cpu=CpuSection(pinning="reserved", burst=_WHOLE_LIMIT),
    memory=_KEPT,
)
_SENSITIVE: Final = QoSProfileSpec(
    tier=Tier.SENSITIVE,
    cpu=CpuSection(pinning="shared", burst=_WHOLE_LIMIT),
    memory=MemorySection(low_percent=100),
)
_BESTEFFORT: Final = QoSProfileSpec(
    tier=Tier.BESTEFFORT,
    cpu=CpuSection(weight=2, idle=True, suppressible=True),
    memory=MemorySection(throttling_percent=80, oom_group=True),
)
_SPECS: Final[dict[str, QoSProfileSpec]] = {
    "system": QoSProfileSpec(tier=Tier.SYSTEM, namespace_selector=_LISTED, memory=MemorySection(low_percent=100)),
    "lse": QoSProfileSpec(
        tier=Tier.EXCLUSIVE,
        namespace_selector=_LISTED,
        cpu=CpuSection(pinning="exclusive", burst=_WHOLE_LIMIT),
        memory=_KEPT,
    ),
    "lsr": _RESERVED,
    "guaranteed-pro": _RESERVED,
    "realtime": QoSProfileSpec(
        tier=Tier.RESERVED,
        namespace_selector=_LISTED,
        cpu=CpuSection(latency="realtime", burst=_WHOLE_LIMIT),
        memory=_KEPT,
    ),
    "ls": _SENSITIVE,
    "guaranteed": _SENSITIVE,
    "burstable": QoSProfileSpec(tier=Tier.STANDARD, memory=MemorySection(low_percent=50, throttling_percent=90)),
    "be": _BESTEFFORT,
    "best-effort": _BESTEFFORT,
}
_DISPLAY: Final = {name.replace("-", ""): name for name in _SPECS}


def builtin() -> tuple[QoSProfile, ...]:
    labels = {BUILT_IN_LABEL: "true"}
    return tuple(QoSProfile(metadata=Meta(name=name, labels=labels), spec=spec) for name, spec in _SPECS.items())


def canonical(name: str) -> str:
    """The object name behind what a user writes: `GuaranteedPro` and `guaranteed_pro` are `guaranteed-pro`."""
    lower = name.strip().lower()
    return _DISPLAY.get(lower.replace("-", "").replace("_", ""), lower)


def may_choose(profile: QoSProfile, namespace_labels: Labels) -> bool:
    """Whether workloads of a namespace may run under a profile, be it by label or by the profile's selector."""
    allowed = profile.spec.namespace_selector
    return allowed is UNSET or _trusted(namespace_labels, allowed)


def trusted(namespace_labels: Labels) -> bool:
    """Whether an administrator lets workloads of a namespace have what costs others something."""
    return _trusted(namespace_labels, _LISTED)


def _trusted(namespace_labels: Labels, listed: Selector) -> bool:
    word = namespace_labels.get(TRUSTED_LABEL)
    return word == "true" or (word != "false" and matches(listed, namespace_labels))


def unheeded(profile: QoSProfile) -> tuple[str, ...]:
    """What a profile asks for and no controller acts on: nothing is ignored silently."""
    spec, name = profile.spec, profile.metadata.name
    sections = {"io": (spec.io, IoSection())}
    names = [section for section, (said, silent) in sections.items() if said != silent]
    return (f"no controller acts on section {', '.join(names)} of profile {name}",) if names else ()


def describe(profile: QoSProfile) -> list[tuple[str, str]]:
    """(knob, what the profile makes of it) for every knob, in the order of the knob table."""
    return [*_cpu_effects(profile.spec), *_memory_effects(profile.spec)]


def _cpu_effects(spec: QoSProfileSpec) -> Iterator[tuple[str, str]]:
    cpu = spec.cpu
    weight = (
        "follows the CPU request, 1024 shares per CPU" if cpu.weight is UNSET else f"{cpu.weight} shares in its tier"
    )
    yield "cpu.weight", f"{weight}; raised where a CPU floor needs more"
    yield "cpu.idle", "1: runs when nobody else wants the CPU" if cpu.idle else "0"
    lowered = "; lowered while better tiers are busy, where cpu.idle is not enough or the node's strategy says so"
    suppressed = lowered if cpu.suppressible else ""
    yield "cpu.max", f"the CPU limit, none without one{suppressed}"
    yield "cpu.max.burst", "0" if cpu.burst is UNSET else f"up to {cpu.burst} of the limit may be saved up"
    how = {"full-cores": ", only whole cores", "spread": ", one of each core"}.get(cpu.bind or "", "")
    yield (
        "cpuset.cpus",
        {
            "none": "left as it is while nobody has CPUs of its own",
            "shared": "the CPUs that nobody has for itself",
            "reserved": f"a floor of whole CPUs gets CPUs of its own{how}; best effort may use what it leaves idle",
            "exclusive": f"a floor of whole CPUs gets CPUs that everyone else keeps off{how}",
        }[cpu.pinning],
    )
    first = "2: preempts whoever is not" if cpu.latency == "realtime" else "left as it is"
    yield "cpu.bvt_warp_ns", "-1: everyone preempts it" if cpu.idle else first


def _memory_effects(spec: QoSProfileSpec) -> Iterator[tuple[str, str]]:
    memory = spec.memory
    least = "" if memory.min_percent is UNSET else f", at least {memory.min_percent} % of the request"
    reserved = "the request, which is reserved" if spec.tier in RESERVES_REQUEST else f"minimal reservations{least}"
    yield "memory.min", f"{reserved}; always below memory.max"
    yield "memory.low", "0" if memory.low_percent is UNSET else f"{memory.low_percent} % of the request"
    from_here = memory.throttling_percent
    yield (
        "memory.high",
        (
            "none"
            if from_here is UNSET
            else f"slowing down begins {from_here} % of the way from request to limit or node"
        ),
    )
    yield "memory.max", "the memory limit, none without one"
    yield (
        "memory.oom.group",
        ("left as it is" if memory.oom_group is UNSET else "1: killed as a whole" if memory.oom_group else "0"),
    )
    yield from _vendor_effects(memory)
    system = "never" if spec.tier is Tier.SYSTEM else "0, unless it is willing to be evicted"
    frozen = "1 for a while, before it would be evicted" if spec.tier is Tier.BESTEFFORT else system
    yield "cgroup.freeze", frozen


def _vendor_effects(memory: MemorySection) -> Iterator[tuple[str, str]]:
    limit = memory.page_cache_limit
    said = {
        "memory.wmark_ratio": memory.watermark_percent,
        "memory.wmark_scale_factor": memory.watermark_scale,
        "memory.wmark_min_adj": memory.watermark_adjust,
        "memory.priority": memory.kernel_priority,
        "memory.use_priority_oom": memory.kernel_priority_oom,
        "memory.pagecache_limit.enable": UNSET if limit is UNSET else bool(limit.amount),
        "memory.pagecache_limit.size": limit,
        "memory.pagecache_limit.sync": memory.page_cache_sync,
    }
    for knob, value in said.items():
        shown = str(int(value)) if isinstance(value, bool) else str(value)
        yield knob, "left as it is" if value is UNSET else shown
