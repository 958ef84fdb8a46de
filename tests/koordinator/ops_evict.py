"""Cases about eviction."""

from __future__ import annotations

from typing import Any

from j10ce.dialects.koordinator.config.threshold import Threshold, satisfaction_valid
from j10ce.dialects.koordinator.names import QOS_LABEL
from j10ce.model.schema import convert
from tests.koordinator.theirs.defaults import priority_or_default
from tests.koordinator.theirs.laws import evict, victims

Case = dict[str, Any]


def best_effort(raw: Case | None) -> evict.BestEffortCpu:
    return evict.BestEffortCpu(*((raw or {}).get(f"{name}_milli") or 0 for name in ("limit", "used", "request")))


def satisfaction(case: Case) -> Any:
    config = convert(case["config"], Threshold)

    def given(value: Any) -> Any:
        return value if isinstance(value, int) else None

    rule = evict.Satisfaction(
        given(config.be_satisfaction_lower),
        given(config.be_satisfaction_upper),
        given(config.be_usage_threshold) or evict.DEFAULT_USAGE_PERCENT,
        given(config.cpu_evict_time_window_seconds) or 0,
        config.cpu_evict_policy == "evictByAllocatable",
    )
    last = best_effort(case["current"]) if case.get("current") is not None else None
    allocatable = case.get("node_batch_cpu_allocatable_milli")
    average = case.get("avg") or {}
    interval = case.get("collect_interval_seconds", 1)
    measured = evict.Measured(best_effort(average), average.get("count", 0), last, interval, allocatable)
    return evict.satisfaction_release(rule, measured)


def usage(case: Case) -> Any:
    return evict.usage_release(case["capacity"], case["used"], case["threshold_percent"], case.get("lower_percent"))


def allocatable(case: Case) -> Any:
    pods = [evict.Asking(priority(pod), pod.get("requests") or {}) for pod in case["pods"]]
    lent = case.get("node_allocatable") or {}
    names = {*lent, *(name for pod in pods for name in pod.requests)}
    names = {name for name in names if name.removeprefix("kubernetes.io/").startswith(("batch-", "mid-"))}
    threshold, lower = case["threshold_percent"], case.get("lower_percent")
    return evict.allocatable_release(
        lent, pods, sorted(names), threshold, threshold if lower is None else lower, case["priority_threshold"]
    )


def priority(pod: Case) -> int:
    """As it is written, else that of its class; who asks for batch alone is best effort to Kubernetes."""
    if pod.get("priority"):
        return int(pod["priority"])
    labels = {QOS_LABEL: pod.get("qos") or "", **(pod.get("labels") or {})}
    return priority_or_default(labels, None, "BestEffort")


def be_memory(case: Case) -> Any:
    """Marks that are none free nothing; a pod that uses nothing counts as not measured."""
    threshold, lower = case.get("memoryEvictThresholdPercent"), case.get("memoryEvictLowerPercent")
    if threshold is None or threshold < 0 or (lower is not None and lower >= threshold):
        return []
    release = evict.usage_release(case["node_capacity"], case["node_used"], threshold, lower)
    pods = [
        victims.Candidate(
            pod["name"],
            {"memory": pod["used"]} if pod.get("used") else {},
            pod.get("priority"),
            used=pod.get("used") or None,
        )
        for pod in case["pods"]
        if pod.get("qos") == "BE"
    ]
    return victims.evict(victims.by_memory(pods), {"memory": release}).victims


def with_pending(case: Case) -> Any:
    pods = [
        victims.Candidate(pod["name"], {"memory": pod["memory_used"]}, leaving=bool(pod.get("already_evicted")))
        for pod in case["sorted_pods"]
    ]
    done = victims.evict(pods, {"memory": case["to_release"]})
    return {"newly_evicted": [*done.victims], "released": done.freed["memory"]}


OPS = {
    "cpu_evict_satisfaction": satisfaction,
    "satisfaction_config_valid": lambda case: satisfaction_valid(case.get("lower"), case.get("upper")),
    "usage_evict_release": usage,
    "allocatable_evict_release": allocatable,
    "be_memory_evict": be_memory,
    "evict_with_pending": with_pending,
}
