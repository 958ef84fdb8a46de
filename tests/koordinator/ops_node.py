"""Cases about what a node lends, and about histograms and predictions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from j10ce.dialects.koordinator.annotations.node import NodeReservation
from j10ce.dialects.koordinator.classes import Band, KoordClass
from j10ce.dialects.koordinator.config.colocation import DEFAULTS
from j10ce.dialects.koordinator.webhook.pods import facts
from j10ce.model.quantity import Quantity
from j10ce.model.schema import convert
from j10ce.policy.predict import Buckets
from tests.koordinator.ops_pod import kube_pod
from tests.koordinator.theirs.overcommit import batch, histogram, mid, predictor, samples

Case = dict[str, Any]
CAMEL = {"cpu": "CPU", "memory": "Memory"}


def amount(resource: str, raw: Any) -> int:
    quantity = Quantity.parse(raw if raw is not None else 0)
    return quantity.millicores() if resource == "cpu" else quantity.bytes()


def of(resource: str, amounts: Case | None) -> int:
    return amount(resource, (amounts or {}).get(resource))


def reserved(resource: str, node: Case) -> int:
    allocatable = node.get("allocatable")
    kubelet = of(resource, node["capacity"]) - of(resource, allocatable) if allocatable else 0
    said = convert(node.get("reservation") or {}, NodeReservation)
    return max(kubelet, said.milli() if resource == "cpu" else said.memory())


def use(resource: str, case: Case) -> batch.NodeUse:
    metrics = {metric["pod"]: metric for metric in case.get("pod_metrics", ())}
    better = []
    for pod in case.get("pods", ()):
        known, phase = facts(kube_pod(pod)), pod.get("phase", "Running")
        # Of a pod that has ended the metric counts as one of nobody.
        metric = metrics.pop(pod["name"], None) if batch.counts(phase) else None
        if batch.is_better(known.resulting, phase):
            request = known.requests.get(resource)
            asked = amount(resource, str(request)) if request is not None else 0
            usage = None if metric is None else amount(resource, metric[resource])
            whole = resource == "cpu" and known.koord is KoordClass.LSE
            better.append(batch.BetterPod(asked, usage, whole, tuple(pod.get("numa_nodes") or ())))
    dangling = sum(
        amount(resource, metric[resource])
        for metric in metrics.values()
        if Band(metric.get("priority") or "") not in (Band.BATCH, Band.FREE)
    )
    apps = [app for app in case.get("host_apps", ()) if app["priority"] in ("koord-prod", "koord-mid")]
    system = of(resource, case.get("system_usage")) + sum(amount(resource, app[resource]) for app in apps)
    node = case["node"]
    return batch.NodeUse(of(resource, node["capacity"]), reserved(resource, node), system, tuple(better), dangling)


def chosen(case: Case) -> Case:
    """What is null was left out, as in Go."""
    said = {name: value for name, value in (case.get("strategy") or {}).items() if value is not None}
    return {**DEFAULTS, **said}


def batch_allocatable(case: Case) -> Any:
    if degraded(case):
        return {"reset": True}
    strategy = chosen(case)
    out: Case = {}
    zones: dict[int, Case] = {zone["id"]: {"id": zone["id"]} for zone in case.get("numa_zones", ())}
    for resource in ("cpu", "memory"):
        cap = strategy.get(f"batch{CAMEL[resource]}ThresholdPercent")
        law = batch.BatchLaw(
            strategy[f"{resource}ReclaimThresholdPercent"], strategy[f"{resource}CalculatePolicy"], cap
        )
        taken = use(resource, case)
        ratio = case.get("cpu_normalization_ratio") or 0 if resource == "cpu" else 0
        lent = batch.without_others(batch.batch(law, taken), third_parties(case, f"batch-{resource}"))
        out[f"batch-{resource}"] = batch.normalised(lent, ratio)
        capacities = {zone["id"]: amount(resource, zone[resource]) for zone in case.get("numa_zones", ())}
        for zone, left in batch.batch_zones(law, taken, capacities).items():
            zones[zone][f"batch-{resource}"] = batch.normalised(left, ratio)
    return {**out, "zones": [*zones.values()]} if zones else out


def third_parties(case: Case, name: str) -> Iterator[int]:
    """What others have taken of it already."""
    for taken in case.get("third_party_allocations") or ():
        amounts = taken.get("resources") or taken
        yield sum(int(Quantity.parse(amounts[key]).amount) for key in (name, f"kubernetes.io/{name}") if key in amounts)


def degraded(case: Case) -> bool:
    minutes = case.get("degradeTimeMinutes", DEFAULTS["degradeTimeMinutes"])
    return "metric_age_seconds" in case and mid.degraded(case["metric_age_seconds"], minutes)


def mid_allocatable(case: Case) -> Any:
    if degraded(case):
        return {"reset": True}
    strategy = chosen(case)
    out = {}
    for resource in ("cpu", "memory"):
        law = mid.MidLaw(
            strategy[f"mid{CAMEL[resource]}ThresholdPercent"],
            strategy["midUnallocatedPercent"],
            strategy.get("midReclaimMode") == "static",
            strategy[f"midStatic{CAMEL[resource]}ReservedPercent"],
        )
        apps = [app for app in case.get("host_apps", ()) if app["priority"] == "koord-prod"]
        system = of(resource, case.get("system_usage")) + sum(amount(resource, app[resource]) for app in apps)
        reclaimable, usage = case.get("prod_reclaimable"), case.get("node_usage")
        taken = mid.MidUse(
            of(resource, case["node"]["capacity"]),
            None if reclaimable is None else of(resource, reclaimable),
            None if usage is None else of(resource, usage),
            system,
            reserved(resource, case["node"]),
            of(resource, case.get("prod_request")),
        )
        out[f"mid-{resource}"] = mid.mid(law, taken)
    return out


def scale(options: Case) -> histogram.Scale:
    if options["kind"] == "linear":
        size = options.get("bucket_size") or options.get("first_bucket") or options["size"]
        return histogram.EvenBuckets(size, options["max"])
    return Buckets(options["first_bucket"], options["ratio"], options["max"])


class BucketAnswer(NamedTuple):
    """Says what a case expects of the places that the case names."""

    buckets: histogram.Scale

    def says(self, expected: Any) -> bool:
        starts, finds = expected.get("bucket_start", {}), expected.get("find_bucket", {})
        return (
            expected.get("num_buckets", self.buckets.last + 1) == self.buckets.last + 1
            and all(math.isclose(self.buckets.start(int(n)), start, rel_tol=1e-9) for n, start in starts.items())
            and all(self.buckets.find(float(value)) == n for value, n in finds.items())
        )


class HistoryAnswer(NamedTuple):
    """Says what a case expects of a history: one percentile, several by their share, whether it is empty."""

    history: histogram.History
    share: float

    def says(self, expected: Any) -> bool:
        if isinstance(expected, bool):
            return self.history.empty == expected
        if not isinstance(expected, dict):
            return self._close(self.share, expected)
        return all(self._says(name, value) for name, value in expected.items())

    def _says(self, name: str, value: Any) -> bool:
        match name:
            case "empty" | "is_empty":
                return self.history.empty == bool(value)
            case "percentiles":
                return self.says(value)
            case "checkpoint" | "weights":
                return {str(n): w for n, w in histogram.checkpoint(self.history).items()} == dict(value)
        share = float(name.removeprefix("p"))
        return self._close(share / 100 if name.startswith("p") or share > 2 else share, value)

    def _close(self, share: float, value: float) -> bool:
        got = histogram.percentile(self.history, share)
        return math.isclose(got, value, rel_tol=1e-9, abs_tol=1e-12)


def histogram_answer(case: Case) -> HistoryAnswer:
    share = float(case.get("percentile", 0.5))
    return HistoryAnswer(history(case), share / 100 if share > 2 else share)


def history(case: Case) -> histogram.History:
    options = case["options"]
    hours = case.get("half_life_hours") or options.get("half_life_hours") or 0
    half_life = case.get("half_life_seconds") or options.get("half_life_seconds") or hours * 3600 or None
    epsilon = options.get("epsilon", case.get("epsilon", histogram.EPSILON))
    held = histogram.History(scale(options), half_life, epsilon)
    for sample in case.get("samples") or ():
        weight = sample.get("weight", 1.0)
        held = histogram.added(held, sample["value"], -weight if sample.get("subtract") else weight, at_s(sample))
    return held


def at_s(sample: Case) -> float:
    """When a sample was taken, however a case counts time."""
    units = {"hours": 3600.0, "minutes": 60.0, "half_lives": 3600.0}
    for name, value in sample.items():
        if name.startswith(("time", "at", "t_")) or name == "t":
            return float(value) * next((seconds for unit, seconds in units.items() if name.endswith(unit)), 1.0)
    return 0.0


def pod_predictor(case: Case) -> Any:
    pods = [
        predictor.PodPeak(
            pod["request"],
            pod.get("peak"),
            pod.get("age_seconds", predictor.COLD_START_S),
            pod.get("terminating", False),
        )
        for pod in case["pods"]
    ]
    return predictor.by_pods(case["allocatable"], pods)


def priority_predictor(case: Case) -> Any:
    return predictor.by_priority(
        case["allocatable"], case["prod_request"], case.get("system_peak", 0), case["class_peaks"]
    )


OPS = {
    "batch_allocatable": batch_allocatable,
    "mid_allocatable": mid_allocatable,
    "degrade_needed": lambda case: mid.degraded(case["metric_age_seconds"], case["degradeTimeMinutes"]),
    "histogram_options": lambda case: BucketAnswer(scale(case["options"])),
    "histogram": histogram_answer,
    "histogram_percentile": histogram_answer,
    "histogram_percentiles": histogram_answer,
    "histogram_empty": histogram_answer,
    "histogram_checkpoint": histogram_answer,
    "decaying_histogram": histogram_answer,
    "decaying_histogram_percentiles": histogram_answer,
    "pod_predictor": pod_predictor,
    "priority_predictor": priority_predictor,
    "percentile": lambda case: samples.percentile(case["values"], case["percentile"]),
}
