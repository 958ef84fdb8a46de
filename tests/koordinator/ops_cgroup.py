"""Cases about values of cgroup files and sysctls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from j10ce.dialects.koordinator.annotations.pod import MemoryWish
from j10ce.dialects.koordinator.classes import KoordClass
from j10ce.dialects.koordinator.config.qos import MemoryFields
from j10ce.errors import Invalid
from j10ce.model.quantity import Quantity
from j10ce.model.schema import convert, plain
from tests.koordinator.theirs.laws import conversions, memory, sysctl
from tests.koordinator.theirs.laws.page_cache import page_cache_limit
from tests.koordinator.theirs.laws.runtime import Extended, extended_values

Case = dict[str, Any]


def amount(value: Any) -> int:
    """Bytes, or a plain number."""
    return Quantity.parse(value).bytes()


def extended(container: Mapping[str, Any], kind: str = "batch") -> Extended:
    def of(side: str, resource: str) -> int | None:
        amounts = container.get(side) or {}
        names = (f"{kind}-{resource}", f"kubernetes.io/{kind}-{resource}")
        return next((amount(amounts[name]) for name in names if name in amounts), None)

    return Extended(of("requests", "cpu"), of("limits", "cpu"), of("requests", "memory"), of("limits", "memory"))


def batch_resources(case: Case) -> Any:
    if case.get("qos") != "BE":
        return {}
    containers = [extended(container) for container in case["containers"]]
    if case.get("level") == "container":
        containers = containers[:1]
    ratio = case.get("cpu_normalization_ratio") or 0
    return extended_values(containers, quotas=case.get("cfs_quota_enabled", True), ratio=ratio)


def fields(raw: Mapping[str, Any] | None) -> MemoryFields:
    block = dict((raw or {}).get("memoryQOS", raw or {}))
    off = block.pop("enable", True) is False
    return memory.neutral() if off or not raw else convert(block, MemoryFields)


def merge_memory_qos(case: Case) -> Any:
    wish = convert(case["annotation"], MemoryWish) if case.get("annotation") is not None else None
    native = case.get("kube_qos") or "BestEffort"
    return plain(memory.merged(KoordClass(case.get("qos") or ""), native, fields(case.get("node_config")), wish))


def memory_of(container: Mapping[str, Any], best_effort: bool) -> memory.Memory:
    """A limit of nothing, or of -1, is none."""
    names = ("kubernetes.io/batch-memory", "batch-memory") if best_effort else ("memory",)

    def of(side: str) -> int:
        amounts = container.get(side) or {}
        return max(next((amount(amounts[name]) for name in names if amounts.get(name) is not None), 0), 0)

    return memory.Memory(of("requests"), of("limits") or None)


def memory_qos_reconcile(case: Case) -> Any:
    machine = memory.Machine(
        case.get("node_allocatable_memory", 0), case.get("page_size", 4096), case.get("cgroup_version", 1)
    )
    out: Case = {}
    protections = []
    directories: dict[str, MemoryFields] = {}
    for pod in case["pods"]:
        if pod.get("phase", "Running") not in ("Running", "Pending"):
            continue
        koord, native = KoordClass(pod.get("qos") or ""), pod["kube_qos"]
        wish = convert(pod["annotation_memoryQOS"], MemoryWish) if pod.get("annotation_memoryQOS") else None
        chosen = memory.merged(koord, native, fields(of_class(case.get("node_class_config"), koord)), wish)
        asked = {c["name"]: memory_of(c, koord is KoordClass.BE) for c in pod["containers"]}
        values = memory.pod_values(chosen, asked.values(), machine)
        protections.append(memory.PodProtection(native, chosen, sum(m.request for m in asked.values())))
        containers = {name: memory.container_values(chosen, m, machine) for name, m in asked.items()}
        out = {"pod": values, "containers": containers}
        if case.get("node_class_config"):
            directories[memory.DIRECTORIES.get(native, "kubepods")] = chosen
    return MemoryAnswer(out, memory.class_values(protections, directories))


class MemoryAnswer(NamedTuple):
    """Says what a case expects: of pod and containers everything, of directories what the case names."""

    values: Case
    directories: dict[str, dict[str, int]]

    def says(self, expected: Any) -> bool:
        named = expected.get("qos_level", {})
        return (
            {name: value for name, value in expected.items() if name != "qos_level"} == self.values
            and named.keys() <= self.directories.keys()
            and all(values.items() <= self.directories[name].items() for name, values in named.items())
        )


def of_class(config: Any, koord: KoordClass) -> Any:
    """A case names the block of one class, or those of all."""
    blocks = (memory.BLOCKS.get(koord, ""), koord.value)
    return next((config[name] for name in blocks if name in (config or {})), config)


def cache_limit(case: Case) -> Any:
    limit = case.get("pod_memory_limit")
    wanted = convert(case["config"], MemoryFields)
    return page_cache_limit(wanted, limit if limit and limit > 0 else None, case["cgroup_version"])


def memory_limit(case: Case) -> Any:
    content = case["content"].strip()
    if content == "max":
        return conversions.UNLIMITED
    if not content.isdecimal():
        raise Invalid([])
    return int(content)


def watermark_scale_factor(case: Case) -> Any:
    factor, previous = case["factor"], next(value for name, value in case.items() if name.startswith("previous"))
    return sysctl.watermark_scale_factor(factor, previous)


OPS = {
    "shares_to_weight": lambda case: conversions.weight(case["shares"]),
    "weight_to_shares": lambda case: conversions.shares_of_weight(case["weight"]),
    "parse_cpu_max_quota": lambda case: conversions.quota_of_cpu_max(case["content"]),
    "parse_memory_max": memory_limit,
    "milli_to_shares": lambda case: conversions.shares(case["milli"]),
    "milli_to_quota": lambda case: conversions.quota(case["milli"]),
    "min_free_kbytes": lambda case: sysctl.min_free_kbytes(case["memory_bytes"], case["factor"], case["previous_kb"]),
    "watermark_scale_factor": watermark_scale_factor,
    "batch_resources": batch_resources,
    "merge_memory_qos": merge_memory_qos,
    "memory_qos_reconcile": memory_qos_reconcile,
    "page_cache_limit": cache_limit,
}
