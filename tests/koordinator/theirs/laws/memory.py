"""Memory QoS: what a container, a pod and a class of Kubernetes get, in bytes and in numbers of the kernel's files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import UNSET
from msgspec.structs import asdict

from j10ce.dialects.koordinator.annotations.pod import MemoryWish
from j10ce.dialects.koordinator.classes import BY_NATIVE, KoordClass
from j10ce.dialects.koordinator.config.fields import Plain
from j10ce.dialects.koordinator.config.qos import DEFAULTS, MemoryFields
from j10ce.dialects.koordinator.reading import checked
from j10ce.model.workload import NativeClass
from tests.koordinator.theirs.defaults import NEUTRAL
from tests.koordinator.theirs.laws.conversions import MOST_MEMORY
from tests.koordinator.theirs.laws.page_cache import page_cache_limit

Values = dict[str, int]
BLOCKS: Final = {
    KoordClass.SYSTEM: "systemClass",
    KoordClass.LSE: "lsrClass",
    KoordClass.LSR: "lsrClass",
    KoordClass.LS: "lsClass",
    KoordClass.BE: "beClass",
}
DIRECTORIES: Final[Mapping[NativeClass, str]] = {"Burstable": "burstable", "BestEffort": "besteffort"}


def class_defaults(koord: KoordClass) -> MemoryFields:
    return _fields(DEFAULTS[BLOCKS[koord]]["memoryQOS"])


def neutral() -> MemoryFields:
    """Of what is switched off."""
    return _fields(NEUTRAL["memoryQOS"])


def _fields(block: Plain) -> MemoryFields:
    fields, _ = checked({name: value for name, value in block.items() if name != "enable"}, MemoryFields, "")
    return fields or MemoryFields()


def merged(koord: KoordClass, native: NativeClass, node: MemoryFields, wish: MemoryWish | None) -> MemoryFields:
    """The node's strategy, or what the pod's policy puts in its place, and over it every field that the pod names;
    with policy none they are not read."""
    if wish is None:
        return node
    match wish.policy:
        case "none":
            return neutral()
        case "auto":
            under = class_defaults(koord if koord is not KoordClass.NONE else BY_NATIVE[native])
        case _:
            under = node
    named = {name: value for name, value in asdict(wish).items() if name != "policy" and value is not UNSET}
    return MemoryFields(**{**asdict(under), **named})


class Memory(NamedTuple):
    """What a container or a pod asks for, in bytes; of best effort its batch memory. None: without limit."""

    request: int = 0
    limit: int | None = None


class Machine(NamedTuple):
    allocatable: int = 0
    page: int = 4096
    cgroup_version: int = 1


def container_values(fields: MemoryFields, memory: Memory, machine: Machine) -> Values:
    protection = _protection(fields, memory.request)
    high = _high(fields, memory, machine, protection["memory.min"])
    values = {**protection, "memory.high": high, **_others(fields)}
    return {**values, **page_cache_limit(fields, memory.limit, machine.cgroup_version)}


def pod_values(fields: MemoryFields, containers: Iterable[Memory], machine: Machine) -> Values:
    """As a container of all requests together, without memory.high."""
    listed = [*containers]
    limits = [memory.limit for memory in listed if memory.limit is not None]
    limit = sum(limits) if listed and len(limits) == len(listed) else None
    values = {**_protection(fields, sum(memory.request for memory in listed)), **_others(fields)}
    return {**values, **page_cache_limit(fields, limit, machine.cgroup_version)}


class PodProtection(NamedTuple):
    native: NativeClass
    fields: MemoryFields
    request: int  # of all its containers


def class_values(pods: Iterable[PodProtection], classes: Mapping[str, MemoryFields]) -> dict[str, Values]:
    """Of kubepods and the two directories below it: shares of what their pods ask for, and the priorities of the class.

    `classes` by directory. Here memory.low may be below memory.min; watermarks and memory.high are never written.
    """
    out: dict[str, Values] = {}
    for pod in pods:
        for name in ("kubepods", *(DIRECTORIES[n] for n in (pod.native,) if n in DIRECTORIES)):
            sums = out.setdefault(name, {"memory.min": 0, "memory.low": 0})
            sums["memory.min"] += _share(pod.request, pod.fields.min_limit_percent)
            sums["memory.low"] += _share(pod.request, pod.fields.low_limit_percent)
    for name, values in out.items():
        if name in classes:
            values |= _priorities(classes[name])
    return out


def _protection(fields: MemoryFields, request: int) -> Values:
    least, low = _share(request, fields.min_limit_percent), _share(request, fields.low_limit_percent)
    return {"memory.min": least, "memory.low": max(low, least) if low else 0}


def _share(request: int, percent: object) -> int:
    return request * _number(percent) // 100


def _high(fields: MemoryFields, memory: Memory, machine: Machine, least: int) -> int:
    percent = _number(fields.throttling_percent)
    if not percent:
        return MOST_MEMORY
    limit = machine.allocatable if memory.limit is None else memory.limit
    pages = (memory.request * 100 + (limit - memory.request) * percent) // (100 * machine.page)
    return max(pages * machine.page, least)


def _others(fields: MemoryFields) -> Values:
    return {
        "memory.wmark_ratio": _number(fields.wmark_ratio),
        "memory.wmark_scale_factor": _number(fields.wmark_scale_permill),
        "memory.wmark_min_adj": _number(fields.wmark_min_adj),
        **_priorities(fields),
    }


def _priorities(fields: MemoryFields) -> Values:
    return {
        "memory.priority": _number(fields.priority),
        "memory.use_priority_oom": _number(fields.priority_enable),
        "memory.oom.group": _number(fields.oom_kill_group),
    }


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
