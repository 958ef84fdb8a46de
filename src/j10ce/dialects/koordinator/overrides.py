"""What a pod's labels and annotations change: which profile it has, and what is said of it alone.

A word that cannot be understood, or that nothing here acts on, is a note; the pod runs all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from msgspec import UNSET, to_builtins
from msgspec.structs import asdict, replace

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.annotations.pod import (
    CpuBinding,
    MemoryWish,
    NetworkWish,
    PodWishes,
    ResctrlWish,
    read_pod,
)
from j10ce.dialects.koordinator.annotations.pod import unheeded as untouched
from j10ce.dialects.koordinator.classes import (
    PROFILES,
    Band,
    KoordClass,
    Labels,
    band_of,
    class_of,
    label_findings,
    sub_priority,
)
from j10ce.dialects.koordinator.config.burst import BurstWish
from j10ce.dialects.koordinator.memory import beyond_percentages
from j10ce.errors import Finding
from j10ce.model.kinds import CacheSection
from j10ce.model.parts.sections import CpuOverlay, MemoryOverlay, NetworkDirection, NetworkSection, ProfileOverlay
from j10ce.model.parts.strategy import BurstSection
from j10ce.model.quantity import Duration
from j10ce.model.workload import CoreWish, EvictionHints, EvictionTrigger, NativeClass, Note, Overrides, Workload

MOST_NOTES: Final = 32  # of one workload
WHOLE: Final = 100  # percent
NO_MEMORY_QOS: Final = {
    "memory.min_percent": 0,
    "memory.low_percent": 0,
    "memory.throttling_percent": 100,
    "memory.watermark_percent": 0,
}
WATERMARK_PERCENT: Final = 95  # of the limit, with policy auto; SYSTEM has none
LENT_BANDS: Final = (Band.BATCH, Band.FREE)  # who names one of them and no class is best effort
# A namespace that may have neither still has a pod that is sensitive to latency.
OTHERWISE: Final = {KoordClass.LSE: ("ls",), KoordClass.LSR: ("ls",)}
SWITCHED_ON: Final[Mapping[NativeClass, tuple[str, ...]]] = {
    "Guaranteed": ("lsr", "ls"),
    "Burstable": ("ls",),
    "BestEffort": ("be",),
}
TRIGGERS: Final[Mapping[str, EvictionTrigger]] = {
    "BECPUEvict": "satisfaction",
    "CPUEvict": "cpu",
    "CPUAllocatableEvict": "lent-cpu",
    "BEMemoryEvict": "memory",
    "MemoryEvict": "memory",
    "MemoryAllocatableEvict": "lent-memory",
}
POLICIES: Final[Mapping[str, Any]] = {
    "none": "none",
    "cpuBurstOnly": "static",
    "cfsQuotaBurstOnly": "quota",
    "auto": "auto",
}
NO_END_S: Final = 10.0**9  # longer than anything runs
CORE_POLICIES: Final[Mapping[str, Literal["", "exclusive", "none"]]] = {"exclusive": "exclusive", "none": "none"}
BINDS: Final[Mapping[str, Any]] = {"FullPCPUs": "full-cores", "SpreadByPCPUs": "spread"}


class Said(NamedTuple):
    """What one annotation comes to: fields by their path (`cpu.burst`), and what of it is not heeded."""

    annotation: str
    fields: Mapping[str, Any]
    unheeded: tuple[str, ...] = ()


def translate(w: Workload) -> Workload:
    """The workload with all that it says in Koordinator's words, in ours. Doing it twice changes nothing."""
    wishes, findings = read_pod(w.annotations)
    said = [*_said(wishes, class_of(w.labels))]
    profiles, origin = chosen(w.labels, w.priority)
    origins = {_spelled(path): f"annotation {one.annotation}" for one in said for path in one.fields}
    return replace(
        w,
        overrides=Overrides(
            sections=_sections(said),
            eviction=_eviction(wishes, w.labels),
            burst=burst_of(wishes.burst) if wishes.burst is not None else BurstSection(),
            core=_core(w.labels),
            origins=origins | ({"profile": origin} if origin else {}),
            notes=_notes(w, [*label_findings(w.labels), *findings], said, wishes),
            profiles=profiles,
            switched_on=() if profiles else SWITCHED_ON[w.native_class],
        ),
    )


def classed(w: Workload) -> Workload:
    """Which profile it asks for, and nothing else: enough for who looks at a hundred thousand of them."""
    profiles, origin = chosen(w.labels, w.priority)
    return replace(w, overrides=Overrides(profiles=profiles, origins={"profile": origin})) if profiles else w


def chosen(labels: Labels, priority: int | None) -> tuple[tuple[str, ...], str]:
    """The profiles that a pod is to have, the best first, and the label that says so; none without such a label."""
    asked = class_of(labels)
    if asked is not KoordClass.NONE:
        return (PROFILES[asked].profile, *OTHERWISE.get(asked, ())), f"label {names.QOS_LABEL}={asked.value}"
    band = band_of(labels, priority) if names.PRIORITY_CLASS_LABEL in labels else Band.NONE
    if band in LENT_BANDS:
        return (PROFILES[KoordClass.BE].profile,), f"label {names.PRIORITY_CLASS_LABEL}={band.value}"
    return (), ""


def _said(wishes: PodWishes, koord: KoordClass) -> Iterator[Said]:
    if wishes.memory is not None:
        yield _memory(wishes.memory, koord)
    if wishes.burst is not None:
        yield Said(names.CPU_BURST, {f"burst.{name}": value for name, value in _set(burst_of(wishes.burst)).items()})
    if wishes.cpu is not None:
        yield _identity(wishes, koord)
    if wishes.resctrl is not None:
        yield _cache(wishes.resctrl)
    if wishes.network is not None:
        yield _network(wishes.network)
    if wishes.binding is not None:
        yield _binding(wishes.binding)
    if wishes.oom_score_adj is not None:
        yield Said(names.OOM_SCORE_ADJ, {"memory.oom_priority": -wishes.oom_score_adj})
    if wishes.oom_scores:
        yield _oom_scores(wishes.oom_scores)


def _memory(wish: MemoryWish, koord: KoordClass) -> Said:
    """`auto` leaves the profile's percentages: their defaults protect nothing. Throttling at 0 % is none at all. With
    `none` nothing else that it says is read."""
    if wish.policy == "none":
        beside = sorted(name for name in to_builtins(wish) if name != "policy")
        return Said(names.MEMORY_QOS, NO_MEMORY_QOS, tuple(f"{name} beside policy none" for name in beside))
    named = {"min": wish.min_limit_percent, "low": wish.low_limit_percent, "throttling": wish.throttling_percent}
    percent: dict[str, int] = {name: value for name, value in named.items() if value is not UNSET}
    if percent.get("low"):
        percent["low"] = max(percent["low"], percent.get("min", 0))
    if percent.get("throttling") == 0:
        percent["throttling"] = WHOLE
    fields: dict[str, Any] = {f"memory.{name}_percent": value for name, value in percent.items()}
    if wish.oom_kill_group is not UNSET:
        fields["memory.oom_group"] = wish.oom_kill_group == 1
    marked = 0 if koord is KoordClass.SYSTEM else WATERMARK_PERCENT
    more = {"watermark_percent": marked} if wish.policy == "auto" else {}
    fields |= {f"memory.{name}": value for name, value in {**more, **beyond_percentages(wish)}.items()}
    return Said(names.MEMORY_QOS, fields)


def _oom_scores(scores: Mapping[str, int]) -> Said:
    """A workload has one; the highest spares nobody at the cost of others."""
    differing = ("containers have different numbers, the highest counts for all: what each says for itself",)
    return Said(
        names.OOM_SCORE_ADJ_SPEC,
        {"memory.oom_priority": -max(scores.values())},
        differing if len({*scores.values()}) > 1 else (),
    )


def burst_of(wish: BurstWish) -> BurstSection:
    """Over what the node's strategy says, field by field; no period is one without an end."""
    period = wish.cfs_quota_burst_period_seconds
    return BurstSection(
        policy=UNSET if wish.policy is UNSET else POLICIES[wish.policy],
        static_percent=wish.cpu_burst_percent,
        quota_percent=wish.cfs_quota_burst_percent,
        period=UNSET if period is UNSET else Duration(NO_END_S if period < 0 else period),
        share_pool_percent=wish.share_pool_threshold_percent,
    )


def _identity(wishes: PodWishes, koord: KoordClass) -> Said:
    """Only of LS, as theirs; whoever is to give way is idle, and nobody is served before its tier."""
    wish = wishes.cpu
    if wish is None or koord is not KoordClass.LS or wish.enable is not True:
        return Said(names.CPU_QOS, {}, tuple(_set(wish)) if wish is not None else ())
    idle = wish.sched_idle == 1 or (wish.group_identity is not UNSET and wish.group_identity < 0)
    rest = tuple(n for n in _set(wish) if n == "group_identity" and not idle)
    expels = {} if wish.core_expeller is UNSET else {"cpu.core_expeller": wish.core_expeller}
    return Said(names.CPU_QOS, {**({"cpu.idle": True} if idle else {}), **expels}, rest)


def _cache(wish: ResctrlWish) -> Said:
    fields: dict[str, Any] = {}
    rest: list[str] = []
    if wish.llc is not UNSET:
        fields |= dict(zip(("cache.llc_start_percent", "cache.llc_end_percent"), wish.llc.schemata.range, strict=False))
        rest += ["llc.schemataPerCache"] if wish.llc.schemata_per_cache else []
    if wish.mb is not UNSET:
        percent = wish.mb.schemata.percent
        fields |= {} if percent is UNSET else {"cache.memory_bandwidth_percent": percent}
        rest += ["mb.schemataPerCache"] if wish.mb.schemata_per_cache else []
    return Said(names.RESCTRL, fields, tuple(rest))


def _network(wish: NetworkWish) -> Said:
    """Bits a second, as theirs; no limit at all is what a limit of 0 says."""
    limits = {"egress": wish.egress_limit, "ingress": wish.ingress_limit}
    return Said(
        names.NETWORK_QOS,
        {f"network.{way}.ceiling": limit for way, limit in limits.items() if limit is not UNSET and limit.amount},
    )


def _binding(wish: CpuBinding) -> Said:
    policy = wish.required_cpu_bind_policy or wish.preferred_cpu_bind_policy
    fields = {"cpu.bind": BINDS[policy]} if policy in BINDS else {}
    exclusive = ("preferredCPUExclusivePolicy",) if wish.preferred_cpu_exclusive_policy not in ("", "None") else ()
    return Said(names.RESOURCE_SPEC, fields, exclusive)


def _set(wish: Any) -> dict[str, Any]:
    return {name: value for name, value in asdict(wish).items() if value is not UNSET and value != ""}


def _sections(said: list[Said]) -> ProfileOverlay:
    every = {path: value for one in said for path, value in one.fields.items()}

    def of(section: str) -> dict[str, Any]:
        return {path.removeprefix(f"{section}."): v for path, v in every.items() if path.startswith(f"{section}.")}

    return ProfileOverlay(
        cpu=CpuOverlay(**of("cpu")),
        memory=MemoryOverlay(**of("memory")),
        cache=CacheSection(**of("cache")),
        network=NetworkSection(
            egress=NetworkDirection(**of("network.egress")), ingress=NetworkDirection(**of("network.ingress"))
        ),
    )


def _eviction(wishes: PodWishes, labels: Labels) -> EvictionHints:
    """Who names features may be evicted by those alone: by nobody, if none of them is known."""
    triggers = dict.fromkeys(TRIGGERS[word] for word in wishes.evictors or () if word in TRIGGERS)
    return EvictionHints(
        willing=labels.get(names.EVICTION_LABEL) == "true",
        triggers=None if wishes.evictors is None else tuple(triggers),
        order=wishes.eviction_priority or 0,
        rank=sub_priority(labels),
    )


def _core(labels: Labels) -> CoreWish:
    """A policy that nobody knows is none of theirs either: the pod shares a core as all do who say nothing."""
    policy = CORE_POLICIES.get(labels.get(names.CORE_POLICY_LABEL, ""), "")
    return CoreWish(labels.get(names.CORE_GROUP_LABEL, ""), policy)


def _notes(w: Workload, findings: list[Finding], said: list[Said], wishes: PodWishes) -> tuple[Note, ...]:
    wrong = [str(f) for f in findings]
    late = [f"{one.annotation}: {_spelled(name)} is not heeded" for one in said for name in one.unheeded]
    silent = [f"{key} is not heeded" for key in (*untouched(wishes), *_not_yet(w, wishes))]
    notes = [*w.overrides.notes, *(Note("Note", "", text) for text in (*wrong, *late, *silent))]
    return tuple(dict.fromkeys(notes))[:MOST_NOTES]


def _not_yet(w: Workload, wishes: PodWishes) -> Iterator[str]:
    """What no controller here acts on so far."""
    if wishes.status is not None and wishes.status.cpuset:
        yield f"cpuset {wishes.status.cpuset} of {names.RESOURCE_STATUS}: the agent chooses CPUs itself, which"
    if (policy := w.labels.get(names.CORE_POLICY_LABEL, "")) not in ("", *CORE_POLICIES):
        yield f"{names.CORE_POLICY_LABEL} {policy!r} (known are {', '.join(CORE_POLICIES)})"


def _spelled(name: str) -> str:
    """As people write it: `wmark_ratio` is `wmarkRatio`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
