"""What a pod asks for in its annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType, field

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.annotations.texts import Reading, cpus, number, path_of, struct, words
from j10ce.dialects.koordinator.classes import INT32
from j10ce.dialects.koordinator.config.burst import BurstWish
from j10ce.dialects.koordinator.config.fields import Percent
from j10ce.dialects.koordinator.config.qos import BlkioFields, CpuQos, MemoryFields
from j10ce.dialects.koordinator.config.qos_rules import blocks
from j10ce.dialects.koordinator.reading import read_text
from j10ce.errors import Finding
from j10ce.model.bounds import MOST_ITEMS, MOST_TEXT, Named, Several, Word
from j10ce.model.parts.strict import Strict
from j10ce.model.quantity import Quantity
from j10ce.model.text.near import near, one_of

OOM_SCORES: Final = range(-1000, 1001)
OURS: Final = "koordinator.sh/"
Amounts = Named[Quantity]


class MemoryWish(MemoryFields, frozen=True, kw_only=True):
    policy: Literal["", "default", "none", "auto"] = ""


class NetworkWish(Strict, frozen=True, kw_only=True):
    """Bits per second."""

    ingress_limit: Quantity | UnsetType = UNSET
    egress_limit: Quantity | UnsetType = UNSET


class CacheRange(Strict, frozen=True, kw_only=True):
    range: Annotated[tuple[int, ...], Meta(max_length=2)] = ()


class CacheRangeOf(CacheRange, frozen=True, kw_only=True):
    cache_id: Annotated[int, Meta(ge=0, le=2**31)] = field(name="cacheID")


class CacheWish(Strict, frozen=True, kw_only=True):
    schemata: CacheRange = CacheRange()
    schemata_per_cache: Several[CacheRangeOf] = ()


class BandwidthShare(Strict, frozen=True, kw_only=True):
    percent: Percent = UNSET


class BandwidthOf(BandwidthShare, frozen=True, kw_only=True):
    cache_id: Annotated[int, Meta(ge=0, le=2**31)] = field(name="cacheID")


class BandwidthWish(Strict, frozen=True, kw_only=True):
    schemata: BandwidthShare = BandwidthShare()
    schemata_per_cache: Several[BandwidthOf] = ()


class ResctrlWish(Strict, frozen=True, kw_only=True):
    llc: CacheWish | UnsetType = UNSET
    mb: BandwidthWish | UnsetType = UNSET


class ExtendedAmounts(Strict, frozen=True, kw_only=True):
    requests: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)


class ExtendedResources(Strict, frozen=True, kw_only=True):
    containers: Named[ExtendedAmounts] = field(default_factory=dict)


BindPolicy = Literal["", "Default", "FullPCPUs", "SpreadByPCPUs", "ConstrainedBurst"]


class CpuBinding(Strict, frozen=True, kw_only=True):
    required_cpu_bind_policy: BindPolicy = field(name="requiredCPUBindPolicy", default="")
    preferred_cpu_bind_policy: BindPolicy = field(name="preferredCPUBindPolicy", default="")
    preferred_cpu_exclusive_policy: Literal["", "None", "PCPULevel", "NUMANodeLevel"] = field(
        name="preferredCPUExclusivePolicy", default=""
    )


class NumaWish(Strict, frozen=True, kw_only=True):
    numa_topology_policy: Literal["", "None", "BestEffort", "Restricted", "SingleNUMANode"] = ""
    single_numa_node_exclusive: Literal["", "Required", "Preferred"] = field(name="singleNUMANodeExclusive", default="")


class NumaResources(Strict, frozen=True, kw_only=True):
    node: Annotated[int, Meta(ge=0, le=1023)] = 0
    resources: Amounts = field(default_factory=dict)


class ResourceStatus(Strict, frozen=True, kw_only=True):
    cpuset: Word = ""
    numa_node_resources: Several[NumaResources] = ()


class DeviceAllocation(Strict, frozen=True, kw_only=True):
    """Devices are nobody's business here; that they are named is reported."""

    gpu: Several[Any] = ()
    rdma: Several[Any] = ()
    fpga: Several[Any] = ()
    xpu: Several[Any] = ()


class PodWishes(NamedTuple):
    """What a pod asks for; None: not said, or not to be heeded."""

    memory: MemoryWish | None = None
    burst: BurstWish | None = None
    cpu: CpuQos | None = None
    blkio: BlkioFields | None = None
    network: NetworkWish | None = None
    oom_score_adj: int | None = None
    oom_scores: Mapping[str, int] | None = None  # by container
    evictors: tuple[str, ...] | None = None  # features that may evict it; None: any
    eviction_priority: int | None = None
    resctrl: ResctrlWish | None = None
    extended: ExtendedResources | None = None
    binding: CpuBinding | None = None
    numa: NumaWish | None = None
    status: ResourceStatus | None = None
    devices: DeviceAllocation | None = None
    replaced: tuple[tuple[str, str], ...] | None = None  # resources to be renamed: from, to


def read_pod(annotations: Mapping[str, str]) -> tuple[PodWishes, list[Finding]]:
    """All that a pod asks for, and all that is wrong with it."""
    readings: dict[str, Reading[Any]] = {
        "memory": struct(annotations, names.MEMORY_QOS, MemoryWish),
        "burst": struct(annotations, names.CPU_BURST, BurstWish),
        "cpu": struct(annotations, names.CPU_QOS, CpuQos),
        "blkio": struct(annotations, names.BLKIO_QOS, BlkioFields, lambda wish: blocks("", wish)),
        "network": struct(annotations, names.NETWORK_QOS, NetworkWish, _network),
        "oom_score_adj": number(annotations, names.OOM_SCORE_ADJ, OOM_SCORES),
        "oom_scores": _scores(annotations),
        "evictors": _evictors(annotations),
        "eviction_priority": number(annotations, names.EVICTION_PRIORITY, INT32),
        "resctrl": struct(annotations, names.RESCTRL, ResctrlWish, _resctrl),
        "extended": struct(annotations, names.EXTENDED_RESOURCES, ExtendedResources),
        "binding": struct(annotations, names.RESOURCE_SPEC, CpuBinding),
        "numa": struct(annotations, names.NUMA_SPEC, NumaWish),
        "status": struct(annotations, names.RESOURCE_STATUS, ResourceStatus, lambda s: cpus("cpuset", s.cpuset)),
        "devices": struct(annotations, names.DEVICE_ALLOCATED, DeviceAllocation),
        "replaced": _replaced(annotations),
    }
    findings = [finding for reading in readings.values() for finding in reading.findings]
    return PodWishes(**{name: reading.value for name, reading in readings.items()}), [*findings, *_typos(annotations)]


KNOWN: Final = (
    names.MEMORY_QOS, names.CPU_BURST, names.CPU_QOS, names.BLKIO_QOS, names.NETWORK_QOS, names.OOM_SCORE_ADJ,
    names.OOM_SCORE_ADJ_SPEC, names.EVICTION_POLICY, names.EVICTION_PRIORITY,
)  # fmt: skip


def _typos(annotations: Mapping[str, str]) -> Iterator[Finding]:
    for key in annotations:
        meant = near(key, KNOWN) if key.startswith(OURS) and key not in KNOWN else ""
        if meant:
            yield Finding(path_of(key), None, "unknown annotation", f"did you mean {meant}?")


def _network(wish: NetworkWish) -> Iterator[Finding]:
    for name, rate in (("ingressLimit", wish.ingress_limit), ("egressLimit", wish.egress_limit)):
        if rate is not UNSET and rate.percent:
            yield Finding(name, str(rate), "a percentage of nothing", "write bits per second, such as 50M")


def _scores(annotations: Mapping[str, str]) -> Reading[dict[str, int]]:
    key = names.OOM_SCORE_ADJ_SPEC
    if key not in annotations:
        return Reading(None, [])
    data, odd = read_text(annotations[key], path_of(key))
    if not isinstance(data, dict) or len(data) > MOST_ITEMS:
        wrong = Finding(path_of(key), annotations[key], "not an object", 'write {"container": 500}')
        return Reading(None, [*odd] if data is None and odd else [*odd, wrong])
    outside = [
        Finding(f"{path_of(key)}.{name}", _shown(score), "out of range", "use a whole number from -1000 to 1000")
        for name, score in data.items()
        if type(score) is not int or score not in OOM_SCORES
    ]
    return Reading(None if outside else data, [*odd, *outside])


def _shown(value: object) -> object:
    return value if isinstance(value, str | int | float) else None


def _evictors(annotations: Mapping[str, str]) -> Reading[tuple[str, ...]]:
    key = names.EVICTION_POLICY
    hint = f"write a list of {', '.join(names.EVICTORS)}"
    listed = words(annotations, key, hint)
    unknown = [
        Finding(f"{path_of(key)}[{n}]", word, "not one of the known words", one_of(word, names.EVICTORS))
        for n, word in enumerate(listed.value or ())
        if word not in names.EVICTORS
    ]
    return Reading(listed.value or None, listed.findings + unknown)


def _resctrl(wish: ResctrlWish) -> Iterator[Finding]:
    if wish.llc is UNSET:
        return
    ranges: list[tuple[str, CacheRange]] = [("llc.schemata.range", wish.llc.schemata)]
    ranges += [(f"llc.schemataPerCache[{n}].range", one) for n, one in enumerate(wish.llc.schemata_per_cache)]
    for path, one in ranges:
        if one.range and not (len(one.range) == 2 and 0 <= one.range[0] < one.range[1] <= 100):
            yield Finding(path, str([*one.range]), "not a range of percent", "write [start, end], such as [0, 30]")


def _replaced(annotations: Mapping[str, str]) -> Reading[tuple[tuple[str, str], ...]]:
    key = names.REPLACE_RESOURCES
    text = annotations.get(key, "")
    if not text:
        return Reading(None, [])
    pairs = [tuple(part.strip() for part in pair.split(":")) for pair in text[:MOST_TEXT].split(",") if pair.strip()]
    renames = tuple((pair[0], pair[1]) for pair in pairs if len(pair) == 2 and all(pair))
    if len(renames) == len(pairs) and len(text) <= MOST_TEXT and len(pairs) <= MOST_ITEMS:
        return Reading(renames, [])
    return Reading(None, [Finding(path_of(key), text, "not a list of renames", "write it as from:to,from:to")])


# What is read and reported, and what no part of ours acts on.
UNHEEDED: Final = {
    "blkio": names.BLKIO_QOS,
    "devices": names.DEVICE_ALLOCATED,
    "numa": names.NUMA_SPEC,  # their scheduler's
    "replaced": names.REPLACE_RESOURCES,
}


def unheeded(wishes: PodWishes) -> tuple[str, ...]:
    """Annotations that the pod carries and that nothing here acts on: nothing is ignored silently."""
    return tuple(key for name, key in UNHEEDED.items() if getattr(wishes, name) is not None)
