"""What this host's workloads use, for the overcommit of the node: recent means, and the peak to expect.

Every ten seconds one mean of each resource is taken. Percentiles over five minutes say what best effort has to leave
alone; histograms that forget by halves say what peak to expect, of all together and of each, and survive a restart.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from j10ce.agent.cache import Histories
from j10ce.agent.report.peaks import Peaks
from j10ce.agent.report.report import amount
from j10ce.agent.report.zones import Taken, by_zone
from j10ce.agent.ring.ring import Report
from j10ce.model.kinds import Tier
from j10ce.model.knob import NODE, TargetId
from j10ce.model.quantity import Quantity
from j10ce.model.resource import RESOURCES
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement, Workload
from j10ce.observe.ring import rank
from j10ce.policy.predict import CPU_BUCKETS, MEMORY_BUCKETS, Buckets, Checkpoint, Histogram

EVERY_S: Final = 10.0
SLOW_S: Final = 30.0  # the working set of a workload is read on every tenth sample
RECENT: Final = 30  # means kept: five minutes
WARM_UP_S: Final = 3600.0  # of history before a peak is predicted from it
SAVE_S: Final = 600.0
HIGH: Final = 0.95
IMPORTANT: Final = 7000  # the least priority of what nobody calls best effort, though it asks for nothing

ByWhose = dict[str, dict[str, Quantity]]  # by resource, then whose it is


class Meter(NamedTuple):
    """How one resource is measured and remembered."""

    metric: str
    span_s: float
    scale: float  # from the series' unit to the ledger's: millicores, bytes
    buckets: Buckets
    half_life_s: float
    share: float  # of all weight that stays below the predicted peak


METERS: Final = {
    "cpu": Meter("cpu.usage", EVERY_S, 1000.0, CPU_BUCKETS, 12 * 3600.0, 0.95),
    "memory": Meter("memory.working_set", SLOW_S, 1.0, MEMORY_BUCKETS, 24 * 3600.0, 0.98),
}


class Mean(NamedTuple):
    """One resource over one interval, in the ledger's unit."""

    node: float
    besteffort: float
    protected: float
    larger: float  # of use and request, workload by workload, of the protected
    each: Mapping[TargetId, float] = MappingProxyType({})  # of the protected

    @property
    def system(self) -> float:
        """Used outside of all workloads."""
        return max(0.0, self.node - self.besteffort - self.protected)


class Usage:
    """Fed with reports of the ring, asked by whoever makes the node's report."""

    def __init__(self, kept: Histories, save: Callable[[Histories], None]) -> None:
        self._histograms = {
            (resource, whose): _histogram(resource, kept.histograms.get(f"{resource}.{whose}"))
            for resource in METERS
            for whose in ("node", "protected")
        }
        self._peaks = Peaks(_histogram, kept.histograms)
        self._recent: dict[str, deque[Mean]] = {resource: deque(maxlen=RECENT) for resource in METERS}
        self._save = save
        self._taken = self._saved = -math.inf

    def observe(self, report: Report) -> None:
        """Take one mean, unless the last one is too fresh."""
        now, wall = report.at.now, report.at.wall
        if now - self._taken < EVERY_S:
            return
        self._taken = now
        for resource, meter in METERS.items():
            mean = _mean(report, resource, meter)
            if mean is not None:
                self._recent[resource].append(mean)
                self._learn(resource, meter, mean, wall)
        self._peaks.keep_only(report.snap.entitlements.keys())
        if now - self._saved >= SAVE_S:
            self.save()
            self._saved = now

    def save(self) -> None:
        made = {f"{resource}.{whose}": h.checkpoint() for (resource, whose), h in self._histograms.items()}
        known = {name: kept for name, kept in made.items() if kept is not None}
        self._save(Histories(histograms={**known, **self._peaks.checkpoints()}))

    def demand(self, report: Report) -> ByWhose:
        """By resource: what best effort has to leave alone (system, usage, request, larger), and what it asks for."""
        asked = {name: _asked(report, n) for n, name in enumerate(RESOURCES) if name in METERS}
        return {
            resource: {
                name: amount(resource, n)
                for name, n in (
                    ("system", _high([m.system for m in recent])),
                    ("usage", _high([m.protected for m in recent])),
                    ("larger", _high([m.larger for m in recent])),
                    ("request", asked[resource][0]),
                    ("besteffort", asked[resource][1]),
                )
            }
            for resource, recent in self._recent.items()
            if recent
        }

    def zones(self, report: Report) -> dict[str, ByWhose]:
        """By memory node and resource: what there is, and what of the protected is bound to it."""
        return {
            zone: {
                resource: {name: amount(resource, n) for name, n in sums.items()}
                for resource, sums in resources.items()
            }
            for zone, resources in by_zone(report.snap, lambda: self._claims(report.snap)).items()
        }

    def _claims(self, snap: Snapshot) -> Iterator[Taken]:
        for n, resource in enumerate(RESOURCES):
            recent = self._recent.get(resource, ())
            for target, entitled in snap.entitlements.items():
                if recent and not gives_way(entitled, snap.workloads.get(target)):
                    use = _high([m.each.get(target, 0.0) for m in recent])
                    yield Taken(target, resource, max(use, _kept(resource, entitled)), _wanted(entitled, n))

    def predicted(self, report: Report) -> ByWhose:
        """By resource: the peak to expect of the whole node, and of all but best effort, and what the latter leave of
        their requests, each by itself; nothing while it is young."""
        peaks: ByWhose = {}
        wall = report.at.wall
        for (resource, whose), histogram in self._histograms.items():
            if wall - histogram.since >= WARM_UP_S:
                meter = METERS[resource]
                peak = histogram.percentile(meter.share) * meter.scale
                peaks.setdefault(resource, {})[whose] = amount(resource, peak)
        for resource, known in peaks.items():
            known["spare"] = amount(resource, self._spare(report, resource))
        return peaks

    def _spare(self, report: Report, resource: str) -> float:
        meter, n, wall = METERS[resource], RESOURCES.index(resource), report.at.wall
        asked = {t: max(e.requests[n], e.floor[n]) / meter.scale for t, e in report.snap.entitlements.items()}
        return meter.scale * self._peaks.spare(resource, asked, meter.share, lambda h: wall - h.since >= WARM_UP_S)

    def _learn(self, resource: str, meter: Meter, mean: Mean, wall: float) -> None:
        values = {"node": mean.node, "protected": max(0.0, mean.node - mean.besteffort)}
        for whose, value in values.items():
            self._histograms[resource, whose].add(value / meter.scale, wall)
        self._peaks.learn(resource, {t: use / meter.scale for t, use in mean.each.items()}, wall)


def _mean(report: Report, resource: str, meter: Meter) -> Mean | None:
    snap, n = report.snap, RESOURCES.index(resource)

    def used(target: TargetId) -> float | None:
        window = snap.readings.window(target, meter.metric, meter.span_s)
        mean = window.mean()
        return None if mean is None else mean * meter.scale

    node = used(NODE)
    if node is None:
        return None
    besteffort = protected = larger = 0.0
    each: dict[TargetId, float] = {}
    for target, entitled in snap.entitlements.items():
        use = used(target) or 0.0
        if gives_way(entitled, snap.workloads.get(target)):
            besteffort += use
            continue
        each[target] = use
        protected += max(use, _kept(resource, entitled))
        larger += max(use, _wanted(entitled, n))
    return Mean(node, besteffort, protected, larger, each)


def _wanted(entitled: Entitlement, n: int) -> float:
    return float(max(entitled.requests[n], entitled.floor[n]))


def _kept(resource: str, entitled: Entitlement) -> float:
    """CPUs of the exclusive are nobody else's, used or not."""
    alone = resource == "cpu" and entitled.tier is Tier.EXCLUSIVE
    return _wanted(entitled, RESOURCES.index(resource)) if alone else 0.0


def _asked(report: Report, n: int) -> tuple[int, int]:
    """(requests or floors of the protected, requests of best effort)"""
    protected = besteffort = 0
    for target, entitled in report.snap.entitlements.items():
        if gives_way(entitled, report.snap.workloads.get(target)):
            besteffort += entitled.requests[n]
        else:
            protected += max(entitled.requests[n], entitled.floor[n])
    return protected, besteffort


def gives_way(entitled: Entitlement, workload: Workload | None) -> bool:
    """Best effort, unless that is only Kubernetes' word for one without requests whose priority says otherwise."""
    important = workload is not None and workload.priority is not None and workload.priority >= IMPORTANT
    return entitled.tier is Tier.BESTEFFORT and (entitled.chosen or not important)


def _histogram(resource: str, kept: Checkpoint | None) -> Histogram:
    meter = METERS[resource]
    return Histogram(meter.buckets, meter.half_life_s, kept)


def _high(values: Iterable[float]) -> float:
    ordered: Sequence[float] = sorted(values)
    return ordered[rank(HIGH, len(ordered)) - 1]
