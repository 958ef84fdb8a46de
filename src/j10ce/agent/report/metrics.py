"""Prometheus metrics: counters move with every run of the ring, gauges are read from the last report when asked.

Labels are bounded: knobs, outcomes, tiers, resources, controllers. There is no series per workload; `top` has those.
"""

from __future__ import annotations

import math
from collections import Counter as Count
from collections.abc import Callable
from typing import Final

from j10ce.agent.report import traffic
from j10ce.agent.report.exposition import MetricFamily, exposed
from j10ce.agent.report.koordlet import KoordletMetrics
from j10ce.agent.report.report import floors
from j10ce.agent.ring.ring import Report
from j10ce.control.disk import shown
from j10ce.model.kinds import Tier
from j10ce.model.knob import NODE, link
from j10ce.model.plan import ValueChange

STAGES: Final = ("calm", "reclaim", "throttle", "freeze", "evict")
PRESSURES: Final = ("cpu", "memory", "io")
CONTESTED: Final = (*PRESSURES, "cache")


class Metrics:
    def __init__(self, *, koordlet: bool = False) -> None:
        """`koordlet`: also what its dashboards ask for, by its names."""
        self.koordlet = KoordletMetrics() if koordlet else None
        self._families: list[MetricFamily] = []

        def counter(name: str, text: str, *labels: str) -> MetricFamily:
            self._families.append(MetricFamily("counter", f"j10ce_{name}", text, labels))
            return self._families[-1]

        def gauge(name: str, text: str, *labels: str) -> MetricFamily:
            self._families.append(MetricFamily("gauge", f"j10ce_{name}", text, labels))
            return self._families[-1]

        self.runs = counter("ring_runs", "Runs of the ring", "cause")
        self.failures = counter("ring_failures", "Runs of the ring that failed; others follow", "cause")
        self.cpu = counter("ring_cpu_seconds", "CPU time of the ring")
        self.writes = counter("changes", "Changes by what was changed and what became of it", "knob", "outcome")
        self.faults = counter("controller_faults", "Runs in which a controller had nothing fresh to say", "controller")
        self.deeds = counter("deeds", "Reclaims, evictions, kills", "deed", "trigger", "outcome")
        self.stage = gauge("eviction_stage", "0 calm, 1 reclaim, 2 throttle, 3 freeze, 4 evict", "trigger")
        self.frozen = gauge("frozen_workloads", "Workloads that stand still")
        self.drift = gauge("drifted_settings", "Settings that someone else has changed")
        self.armed = gauge("armed", "1 when decisions are written")
        self.workloads = gauge("workloads", "Managed workloads", "tier")
        self.promised = gauge("floor_promised", "Sum of the floors; CPUs, bytes, bits and bytes a second", "resource")
        self.effective = gauge("floor_effective", "Sum of what protects them for real; likewise", "resource")
        self.pressure = gauge("pressure", "Share of time stalled on this node", "resource")
        self.interference = gauge("interference", "Workloads that suffer from another one, each pair once", "resource")
        self.occupancy = gauge("cache_occupancy_bytes", "Last-level cache that a group of resctrl holds", "group")
        self.bandwidth = gauge(
            "memory_bandwidth_bytes_per_second", "What a group of resctrl moves to and from memory", "group"
        )
        self._beside_cgroups(gauge)
        self.holds = gauge("held_settings", "Settings under an operator's hold")

    def _beside_cgroups(self, gauge: Callable[..., MetricFamily]) -> None:
        """Of links, disks and traffic."""
        self.link_rate = gauge("link_bits_per_second", "What passes a managed link", "link", "direction")
        self.link_capacity = gauge("link_capacity_bits_per_second", "What it carries, where that is known", "link")
        self.disk_rate = gauge("disk_bytes_per_second", "What a managed disk reads and writes", "disk", "direction")
        self.disk_operations = gauge("disk_operations_per_second", "How often it does", "disk", "direction")
        self.disk_busy = gauge("disk_busy", "Share of time in which it had something to do", "disk")
        self.disk_capacity = gauge("disk_capacity_bytes_per_second", "What it can, where known", "disk", "direction")
        self.disk_pace = gauge("disk_io_cost_vrate", "Percent of its model that io.cost goes at", "disk")
        self.traffic = {
            "drops": gauge("traffic_dropped_packets_per_second", "Packets that queues dropped", "tier"),
            "backlog": gauge("traffic_backlog_bytes", "What waits in queues", "tier"),
            "retransmits": gauge("tcp_retransmits_per_second", "Segments that were sent again", "tier"),
        }
        self.rtt = gauge("tcp_rtt_seconds", "The longest round trip of a workload, mean over its connections", "tier")

    def observe(self, report: Report) -> None:
        """Called once per run of the ring."""
        if self.koordlet:
            self.koordlet.observe(report)
        self.runs.labels(report.cause).inc()
        self.cpu.inc(report.cpu_s)
        counted = Count((name_of(change), type(result).__name__.lower()) for change, result in report.outcome.results)
        for (knob, outcome), times in counted.items():
            self.writes.labels(knob, outcome).inc(times)
        for action, result in report.outcome.deeds:
            outcome = type(result).__name__.lower() if action.enforced else "proposed"
            self.deeds.labels(action.deed.value, action.trigger, outcome).inc()
        for controller in report.faults:
            self.faults.labels(controller).inc()

    def failed(self, cause: str) -> None:
        """Called for every run of the ring that raised."""
        self.failures.labels(cause).inc()

    def render(self, report: Report | None) -> bytes:
        if report is not None:
            self._gauges(report)
        theirs = self.koordlet.families() if self.koordlet else ()
        return exposed([*theirs, *self._families])

    def _gauges(self, report: Report) -> None:
        tiers = Count(e.tier for e in report.snap.entitlements.values())
        for tier in Tier:
            self.workloads.labels(tier.value).set(tiers[tier])
        for resource, (promised, effective) in floors(report).items():
            self.promised.labels(resource).set(promised)
            self.effective.labels(resource).set(effective)
        for resource in PRESSURES:
            share = report.snap.readings.window(NODE, f"{resource}.pressure", 10.0).mean()
            self.pressure.labels(resource).set(share or 0.0)
        suffering = Count(i.resource for i in report.interference)
        for resource in CONTESTED:
            self.interference.labels(resource).set(suffering[resource])
        self._evictions(report)
        self._caches(report)
        self._links(report)
        self._disks(report)
        self._traffic(report)
        self.armed.set(report.armed)
        self.holds.set(len(report.held))
        self.drift.set(len(report.drifts))

    def _evictions(self, report: Report) -> None:
        for ladder in report.ladders:
            self.stage.labels(ladder.about).set(STAGES.index(ladder.stage))
        settings = report.snap.settings.items()
        self.frozen.set(sum(1 for s, value in settings if s.knob == "cgroup.freeze" and value == 1.0))

    def _caches(self, report: Report) -> None:
        for gauge, metric in ((self.occupancy, "cache.occupancy"), (self.bandwidth, "memory.bandwidth")):
            gauge.clear()
            for target in report.snap.pieces:
                measured = report.snap.readings.window(target, metric, 10.0).mean()
                if measured is not None:
                    gauge.labels(target.partition("/")[2]).set(measured)

    def _links(self, report: Report) -> None:
        self.link_rate.clear()
        self.link_capacity.clear()
        for on in (k for k in report.snap.node.links.values() if k.managed):
            if on.capacity < math.inf:
                self.link_capacity.labels(on.name).set(on.capacity)
            for way in ("egress", "ingress"):
                measured = report.snap.readings.window(link(on.name), f"net.{way}.rate", 10.0).mean()
                if measured is not None:
                    self.link_rate.labels(on.name, way).set(measured)

    def _disks(self, report: Report) -> None:
        for gauge in (self.disk_rate, self.disk_operations, self.disk_busy, self.disk_capacity, self.disk_pace):
            gauge.clear()
        for one in shown.used(report.snap):
            name = one.disk.name or one.disk.number
            ways = (("read", "reads", one.disk.read_bps), ("write", "writes", one.disk.write_bps))
            for way, operations, capacity in ways:
                if way in one.rates:
                    self.disk_rate.labels(name, way).set(one.rates[way])
                if operations in one.rates:
                    self.disk_operations.labels(name, way).set(one.rates[operations])
                if capacity:
                    self.disk_capacity.labels(name, way).set(capacity)
            for gauge, value in ((self.disk_busy, one.busy), (self.disk_pace, one.vrate)):
                if value is not None:
                    gauge.labels(name).set(value)

    def _traffic(self, report: Report) -> None:
        sums: dict[tuple[str, str], float] = {}
        longest: dict[str, float] = {}
        for target, e in report.snap.entitlements.items():
            for name, value in traffic.fares(report.snap, target).items():
                if name == "rtt":
                    longest[e.tier.value] = max(value, longest.get(e.tier.value, 0.0))
                else:
                    sums[name, e.tier.value] = sums.get((name, e.tier.value), 0.0) + value
        for gauge in (*self.traffic.values(), self.rtt):
            gauge.clear()
        for (name, tier), total in sums.items():
            self.traffic[name].labels(tier).set(total)
        for tier, value in longest.items():
            self.rtt.labels(tier).set(value)


def name_of(change: object) -> str:
    """The knob of a value change, or the name of a structural one."""
    return change.setting.knob if isinstance(change, ValueChange) else type(change).__name__.lower()
