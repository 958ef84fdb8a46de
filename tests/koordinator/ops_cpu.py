"""Cases about CPUs: suppression, burst, identity, CPU lists, normalisation; and about resctrl."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from j10ce.dialects.koordinator.annotations.node import NodeReservation, SharePool
from j10ce.dialects.koordinator.classes import KoordClass
from j10ce.dialects.koordinator.config.qos import CpuQos
from j10ce.dialects.koordinator.config.ratios import CpuNormalization
from j10ce.dialects.koordinator.reading import read_text
from j10ce.errors import Invalid
from j10ce.model.knob import parse_cpus
from j10ce.model.schema import convert
from tests.koordinator.theirs.laws import burst, identity, resctrl, runtime, suppress, suppress_cpus

Case = dict[str, Any]
NATIVE = ("Guaranteed", "Burstable", "BestEffort")


def be_suppress_milli(case: Case) -> Any:
    pods = tuple(suppress.Use(pod["cpu_used_milli"], is_best_effort(pod)) for pod in case.get("pods") or ())
    apps = tuple(
        suppress.Use(app["cpu_used_milli"], app.get("qos") == "BE" and app.get("cgroup_base") == "KubepodsBesteffort")
        for app in case.get("host_apps") or ()
    )
    floors = [value for name, value in case.items() if "min_" in name and name.endswith("percent")]
    return suppress.allowed_milli(
        suppress.Suppression(
            case["node_capacity_milli"], case["node_used_milli"], case["threshold_percent"], pods, apps,
            max(reserved_milli(case), default=0), next(iter(floors), None),
        )
    )  # fmt: skip


def is_best_effort(pod: Case) -> bool:
    known = pod.get("is_be")
    return bool(known) if known is not None else pod.get("qos") == "BE" or pod.get("kube_qos") == "BestEffort"


def reserved_milli(case: Case) -> Iterator[int]:
    """What a case says of reservations: numbers, an annotation of the node, or what is allocatable."""
    for name, value in case.items():
        if "reserv" in name and isinstance(value, dict):
            yield convert(value, NodeReservation).milli()
        elif "reserv" in name and isinstance(value, int):
            yield value
        elif name == "node_allocatable_milli" and value is not None:
            yield case["node_capacity_milli"] - value


def places(case: Case) -> list[suppress_cpus.CpuPlace]:
    return [suppress_cpus.CpuPlace(p["cpu"], p["core"], p["socket"], p["node"]) for p in case["processors"]]


def pinned(case: Case) -> suppress_cpus.Pinned:
    names = ("lse_cpus", "lsr_cpus", "reserved_cpus", "system_exclusive_cpus")
    return suppress_cpus.Pinned(*(parse_cpus(case.get(name) or "") for name in names))


class CpuAnswer(NamedTuple):
    """Says what a case expects if it names the same CPUs, in whatever order and spelling; None is none said at all."""

    cpus: frozenset[int] | None

    def says(self, expected: Any) -> bool:
        if expected is None or self.cpus is None:
            return expected is None and self.cpus is None
        return (parse_cpus(expected) if isinstance(expected, str) else frozenset(expected)) == self.cpus


def cpu_list(text: str | None) -> CpuAnswer:
    return CpuAnswer(None if text is None else parse_cpus(text))


def adjust_by_cpuset(case: Case) -> Any:
    old = parse_cpus(case.get("old_cpuset") or "")
    chosen = suppress_cpus.suppressed_cpus(case["suppress_milli"], places(case), pinned(case), old)
    return CpuAnswer(old if chosen is None else chosen)


def static_cpu_burst(case: Case) -> Any:
    if not burst.may_burst(KoordClass(case.get("qos") or "")):
        return {"containers": {}, "pod": 0}
    limits = {name: milli or 0 for name, milli in case["container_limit_milli"].items()}
    return burst.static_burst(case["policy"], case["cpu_burst_percent"], limits)._asdict()


def burst_node_state(case: Case) -> Any:
    pods = [
        burst.PoolUse(KoordClass(pod.get("qos") or ""), milli(pod.get("request_cores")), milli(pod.get("used_cores")))
        for pod in case["pods"]
    ]
    used = case["node_used_cores"]
    threshold = case["share_pool_threshold_percent"]
    return burst.node_state(None if used is None else milli(used), case["total_cpus"], threshold, pods)


def milli(cores: float | None) -> int:
    return round((cores or 0) * 1000)


def cfs_quota_burst(case: Case) -> Any:
    refused = case.get("burst_period_seconds") == 0
    containers = [
        burst.QuotaUse(
            c["name"], c.get("limit_milli") or 0, c["quota_us"], c.get("throttled_ratio"), tokens(c) and not refused
        )
        for c in case["containers"]
    ]
    done = burst.quota_burst(
        case["policy"], case["cfs_quota_burst_percent"], case["node_state"], case["pod_quota_us"], containers
    )
    return QuotaAnswer(done, {c.name: c.quota_us for c in containers})


class QuotaAnswer(NamedTuple):
    """Says what a case expects; of a container that has no limit either nothing or that its quota stays."""

    done: burst.Bursts
    before: dict[str, int]

    def says(self, expected: Any) -> bool:
        quotas = {**self.before, **self.done.containers}
        named = expected.get("containers", {})
        return (
            expected.get("pod") == self.done.pod
            and self.done.containers.keys() <= named.keys()
            and all(quotas.get(name) == quota for name, quota in named.items())
        )


def tokens(container: Case) -> bool:
    named = [value for name, value in container.items() if "limiter" in name or "allow" in name]
    return all(value is not False for value in named)


def burst_limiter(case: Case) -> Any:
    period, percent = case["burst_period_seconds"], case["max_scale_percent"]
    bucket = burst.new_bucket(period, percent, case.get("initial_fill_ratio", 0.0))
    bucket = burst.spent(bucket, case["usage_scale_percent"], case["elapsed_seconds"])
    return {"allow": burst.may_exceed(period, bucket), "tokens": bucket.tokens}


def burst_limiter_reconfigure(case: Case) -> Any:
    old, new = ((case[key]["burst_period_seconds"], case[key]["max_scale_percent"]) for key in ("old", "new"))
    return {"capacity": burst.resized(burst.new_bucket(*old, 0.0), *new).capacity}


def group_identity_rule(case: Case) -> Any:
    rule = identity.identity_rule(case["cpuPolicy"], *(convert(case[name], CpuQos) for name in ("lsr", "ls", "be")))
    return {
        "enable": rule.enable,
        "pod": {koord.value: value for koord, value in rule.pod.items()},
        "kube_qos_dir": rule.kube_dir,
        "kube_qos_pod": rule.kube_pod,
    }


def pod_bvt(case: Case) -> Any:
    written = case["rule"]
    by_class = {KoordClass(name): value for name, value in written.items() if name not in NATIVE}
    by_native = {name: written.get(name, 0) for name in NATIVE}
    rule = identity.IdentityRule(True, by_class, by_native, by_native)
    wish = convert(case["annotation_cpuQOS"], CpuQos) if case.get("annotation_cpuQOS") is not None else None
    return identity.pod_identity(rule, KoordClass(case.get("qos") or ""), case.get("kube_qos", "BestEffort"), wish)


def container_cpuset(case: Case) -> Any:
    pools = {
        name: tuple(convert(pool, SharePool) for pool in case.get(name) or ())
        for name in ("share_pools", "be_share_pools")
    }
    status: Any = next((said for name, said in case.items() if "status" in name or "annotation" in name), None) or {}
    if isinstance(status, str):
        status, findings = read_text(status, "resource-status")
        if findings or not isinstance(status, dict):
            raise Invalid(findings)
    numa = case.get("numa_nodes") or [item["node"] for item in status.get("numaNodeResources", ())]
    system = case.get("system_qos_cpuset") or case.get("system_cpuset") or ""
    gate = case.get("be_cpu_manager") or case.get("BECPUManager") or False
    node = runtime.NodeCpus(
        pools["share_pools"], pools["be_share_pools"], system, case.get("kubelet_policy") == "static", gate
    )
    assigned = status.get("cpuset") or case.get("cpuset") or ""
    koord = KoordClass(case.get("qos") or "")
    return cpu_list(runtime.container_cpus(node, koord, case.get("kube_qos", "Guaranteed"), assigned, numa).cpus)


def normalization_ratio(case: Case) -> Any:
    raw = {"ratioModel": case.get("ratio_model"), "defaultRatio": case.get("default_ratio")}
    strategy = convert({name: value for name, value in raw.items() if value is not None}, CpuNormalization)
    return runtime.normalisation_ratio(strategy, case["model"], hyper_thread=case["hyper_thread"], turbo=case["turbo"])


def l3_mask(case: Case) -> Any:
    start, end = case["cat_range_start_percent"], case["cat_range_end_percent"]
    return {"mask": resctrl.l3_mask(case["cbm"], start, end)}


def select_be_cpus(case: Case) -> Any:
    return SelectedCpus(frozenset(suppress_cpus.select(case["cpus"], places(case))))


class SelectedCpus(NamedTuple):
    """As a list of CPUs; null is none of them, too."""

    cpus: frozenset[int]

    def says(self, expected: Any) -> bool:
        return CpuAnswer(self.cpus).says(expected or [])


OPS = {
    "be_suppress_milli": be_suppress_milli,
    "select_be_cpus": select_be_cpus,
    "adjust_by_cpuset": adjust_by_cpuset,
    "recover_be_cpuset": lambda case: CpuAnswer(
        suppress_cpus.recovered_cpus(parse_cpus(case["all_cpus"]), pinned(case))
    ),
    "adjust_by_cfs_quota": lambda case: suppress.stepped_quota(
        case["suppress_milli"], case["current_quota_us"], case["node_capacity_cores"]
    ),
    "static_cpu_burst": static_cpu_burst,
    "burst_node_state": burst_node_state,
    "cfs_quota_burst": cfs_quota_burst,
    "burst_limiter": burst_limiter,
    "burst_limiter_reconfigure": burst_limiter_reconfigure,
    "group_identity_rule": group_identity_rule,
    "pod_bvt": pod_bvt,
    "container_cpuset": container_cpuset,
    "normalization_ratio": normalization_ratio,
    "l3_mask": l3_mask,
    "mba_value": lambda case: resctrl.mba_value(case["vendor"], case["mba_percent"]),
    "schemata": lambda case: resctrl.schemata(case["cache_ids"], case.get("l3_mask") or "", case.get("mb") or ""),
}
