"""What koordlet's dashboards ask for, by its names, of what is measured here: `koordletMetrics: true`.

These name workloads, so there is a series for each; they are made of the last report when somebody asks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from j10ce.agent.report.exposition import MetricFamily
from j10ce.agent.ring.ring import Report
from j10ce.model.kinds import Tier
from j10ce.model.knob import NODE, PERIOD_US, Deed, TargetId
from j10ce.model.plan import Applied, Pending

SUPPRESSES: Final = "cpu-suppress"
RECENT_S: Final = 10.0
PRECISIONS: Final = {"avg10": 10.0, "avg60": 60.0, "avg300": 300.0}
PSI: Final = {"cpu": "cpu.pressure", "mem": "memory.pressure", "io": "io.pressure"}
PERCENT: Final = 100.0  # theirs are those of the kernel's files
PSI_LABELS: Final = (
    "pod_uid", "pod_name", "pod_namespace", "psi_resource_type", "psi_precision", "psi_degree", "cpu_full_supported",
)  # fmt: skip


class KoordletMetrics:
    """Fed with every report, collected with the agent's own metrics."""

    def __init__(self) -> None:
        self.report: Report | None = None
        self._began = 0.0
        self._evicted: Counter[str] = Counter()  # by the controller that asked

    def observe(self, report: Report) -> None:
        self.report, self._began = report, self._began or report.at.wall
        done = (a for a, r in report.outcome.deeds if a.deed is Deed.EVICT and isinstance(r, Applied | Pending))
        self._evicted.update(action.owner for action in done)

    def families(self) -> Iterator[MetricFamily]:
        if (report := self.report) is None:
            return
        node = report.snap.node.name

        def gauge(name: str, text: str, rows: Iterable[tuple[tuple[str, ...], float]], *labels: str) -> MetricFamily:
            family = MetricFamily("gauge", f"koordlet_{name}", text, ["node", *labels])
            for values, value in rows:
                family.labels(node, *values).set(value)
            return family

        by_tier = _used_by_tier(report)
        best_effort = by_tier.pop(Tier.BESTEFFORT, 0.0)
        yield gauge("start_time", "When the agent began", [((), self._began)])
        yield gauge("node_used_cpu_cores", "CPUs in use", _rows(report, NODE, "cpu.usage"))
        yield gauge("node_used_memory_bytes", "Memory in use", _rows(report, NODE, "memory.working_set"))
        yield gauge("node_metric_node_usage", "Use of the node", _usage(report), "resource", "unit")
        yield gauge("node_metric_system_usage", "Use outside of workloads", _system(report), "resource", "unit")
        yield gauge("be_suppress_cpu_cores", "CPUs left to best effort by its cap", _suppressed(report), "type")
        yield gauge("be_suppress_ls_used_cpu_cores", "CPUs used by others", [((), math.fsum(by_tier.values()))])
        yield gauge("be_suppress_be_used_cpu_cores", "CPUs used by best effort", [((), best_effort)])
        yield gauge("pod_psi", "Percent of time in which a task waited", _psi(report), *PSI_LABELS)
        yield gauge("pod_eviction", "Evictions", [((who,), float(n)) for who, n in self._evicted.items()], "reason")


def _recent(report: Report, target: TargetId, metric: str) -> float | None:
    return report.snap.readings.window(target, metric, RECENT_S).mean()


def _rows(report: Report, target: TargetId, metric: str) -> list[tuple[tuple[str, ...], float]]:
    value = _recent(report, target, metric)
    return [] if value is None else [((), value)]


def _usage(report: Report) -> Iterator[tuple[tuple[str, ...], float]]:
    for resource, unit, metric in (("cpu", "core", "cpu.usage"), ("memory", "byte", "memory.working_set")):
        if (value := _recent(report, NODE, metric)) is not None:
            yield (resource, unit), value


def _system(report: Report) -> Iterator[tuple[tuple[str, ...], float]]:
    metrics = {"cpu": "cpu.usage", "memory": "memory.working_set"}
    for (resource, unit), node in _usage(report):
        window = report.snap.readings.window
        parts = (window(t, metrics[resource], PRECISIONS["avg60"]).last() or 0.0 for t in report.snap.workloads)
        yield (resource, unit), max(0.0, node - math.fsum(parts))


def _used_by_tier(report: Report) -> dict[Tier, float]:
    used: dict[Tier, float] = {}
    for target, entitled in report.snap.entitlements.items():
        used[entitled.tier] = used.get(entitled.tier, 0.0) + (_recent(report, target, "cpu.usage") or 0.0)
    return used


def _suppressed(report: Report) -> Iterator[tuple[tuple[str, ...], float]]:
    """As far as a cap is in force: work that is idle needs none."""
    decided = [v for v in report.plan.verdicts.values() if v.by is not None and v.by.owner == SUPPRESSES]
    quotas = [float(v.value) for v in decided if v.setting.knob == "cpu.max" and isinstance(v.value, float | int)]
    sets = [v.value for v in decided if v.setting.knob == "cpuset.cpus" and isinstance(v.value, frozenset)]
    if caps := [q for q in quotas if q != math.inf]:
        yield ("cfsQuota",), math.fsum(caps) / PERIOD_US
    if sets:
        yield ("cpuset",), float(len(frozenset().union(*sets)))


def _psi(report: Report) -> Iterator[tuple[tuple[str, ...], float]]:
    for w in report.snap.workloads.values():
        for resource, metric in PSI.items():
            for precision, span_s in PRECISIONS.items():
                share = report.snap.readings.window(w.target, metric, span_s).mean()
                if share is not None:
                    yield ("", w.name, w.namespace, resource, precision, "some", "false"), share * PERCENT
