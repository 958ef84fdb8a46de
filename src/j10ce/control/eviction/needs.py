"""What is to be set free, by which trigger: usage of the node, best effort that gets too little, too much that is lent.

Amounts are bytes of memory or millicores. Each law stands above its function; percentages are whole ones, cut, so that
a threshold means what the node's strategy says of it. What a strategy does not say is no trigger.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import UNSET, UnsetType

from j10ce.control.besteffort import cover
from j10ce.model.kinds import Tier
from j10ce.model.knob import NODE, PERIOD_US, Setting, TargetId
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import BANDS, EvictionTrigger

FRESH_S: Final = 10.0  # an older reading says nothing about the present
WINDOW_S: Final = 60.0  # of CPU time, unless the strategy says another
GAP_PERCENT: Final = 2  # between a threshold and the lower mark, unless the strategy says another
BUSY_PERCENT: Final = 90  # of what best effort may use: only who uses it suffers from having too little
SMALL_MILLI: Final = 1000  # below it best effort is taken to use all that it may
RESOURCES: Final = ("cpu", "memory")


class Need(NamedTuple):
    trigger: EvictionTrigger
    amount: float  # to be set free down to the lower mark
    over: bool  # at or above the threshold
    critical: bool  # so far above it that pressure is not waited for
    reason: str
    wait_s: float = 0.0  # above the threshold before anything happens

    @property
    def under(self) -> bool:
        """Below the lower mark."""
        return self.amount <= 0


def needs(snap: Snapshot) -> Iterator[Need]:
    """Of every trigger that the strategy speaks of and that can be judged here."""
    yield from filter(None, (_memory(snap), _cpu(snap), satisfaction(snap)))
    yield from (need for resource in RESOURCES if (need := lent(snap, resource)))


# amount = capacity · (percent − lower) / 100;  over: percent ≥ threshold
# critical: percent ≥ (threshold + 100) / 2, half of the way from the threshold to a full node
def by_usage(trigger: EvictionTrigger, capacity: float, used: float, threshold: int, lower: int) -> Need:
    percent = int(used) * 100 // int(capacity)
    kind = "memory" if trigger == "memory" else "cpu"
    amounts = f"{spell(kind, int(used))} of {spell(kind, int(capacity))}"
    reason = f"{kind} of the node {percent} % in use ({amounts}), threshold {threshold} %, lower {lower} %"
    amount = max(0.0, float(int(capacity) * (percent - lower) // 100))
    return Need(trigger, amount, percent >= threshold, percent * 2 >= threshold + 100, reason)


def _memory(snap: Snapshot) -> Need | None:
    """The working set: page cache that can be had back at once is not in use."""
    said, used = snap.strategy.eviction.memory, snap.readings.window(NODE, "memory.working_set", FRESH_S).last()
    if said.threshold_percent is UNSET or used is None or not snap.node.memory:
        return None
    return by_usage("memory", snap.node.memory, used, *_marks(said.threshold_percent, said.lower_percent))


def _cpu(snap: Snapshot) -> Need | None:
    said = snap.strategy.eviction.cpu
    used = snap.readings.window(NODE, "cpu.usage", window_s(snap)).mean()
    if said.threshold_percent is UNSET or used is None or not snap.node.capacity.cpu:
        return None
    return by_usage("cpu", snap.node.capacity.cpu, used * 1000, *_marks(said.threshold_percent, said.lower_percent))


def _marks(threshold: int, lower: int | UnsetType) -> tuple[int, int]:
    return threshold, max(0, threshold - GAP_PERCENT) if lower is UNSET else lower


def window_s(snap: Snapshot) -> float:
    said = snap.strategy.eviction.cpu.window
    return WINDOW_S if said is UNSET else said.seconds


# over:    100 · may use ≤ lower · request, and used ≥ 90 % of what it may use (or that is less than one CPU)
# amount = (request · upper − 100 · may use) / 100
# Both by the mean over the window and by the last sample; the smaller amount counts.
def satisfaction(snap: Snapshot) -> Need | None:
    said, inside = snap.strategy.eviction.cpu, best_effort(snap)
    lower, upper = said.satisfaction_lower_percent, said.satisfaction_upper_percent
    if lower is UNSET or upper is UNSET or not inside:
        return None
    busy = BUSY_PERCENT if said.usage_percent is UNSET else said.usage_percent
    request = float(sum(requested(snap, t, "cpu") for t in inside))
    looks = [measured(snap, inside, span_s) for span_s in (window_s(snap), FRESH_S)]
    if request <= 0 or any(look is None for look in looks):
        return None
    amounts = [max(0.0, (request * upper - may * 100) / 100) for may, _ in filter(None, looks)]
    over = all(may * 100 <= lower * request and starved(may, used, busy) for may, used in filter(None, looks))
    may, used = looks[0] or (0.0, 0.0)
    reason = (
        f"best effort may use {spell('cpu', int(may))} of the {spell('cpu', int(request))} CPUs that it asks for "
        f"({int(may * 100 / request)} %, lower {lower} %, upper {upper} %) and uses {spell('cpu', int(used))}"
    )
    return Need("satisfaction", float(int(min(amounts))), over, False, reason, window_s(snap) / 3)


def starved(may: float, used: float, busy_percent: int) -> bool:
    return may > 0 and (may < SMALL_MILLI or used * 100 >= busy_percent * may)


def measured(snap: Snapshot, inside: frozenset[TargetId], span_s: float) -> tuple[float, float] | None:
    """(what best effort may use, what it uses), millicores; None while nothing was measured.

    What it may use is what the others leave, or what it is capped to, or what is lent to it, as the strategy says.
    """
    everyone = snap.readings.window(NODE, "cpu.usage", span_s).mean()
    if everyone is None:
        return None
    used = math.fsum(snap.readings.window(t, "cpu.usage", span_s).mean() or 0.0 for t in inside) * 1000
    if snap.strategy.eviction.cpu.policy == "allocatable":
        return (max(snap.lent["batch-cpu"], 1.0), used) if "batch-cpu" in snap.lent else None
    left = max(0.0, snap.node.capacity.cpu - max(0.0, everyone * 1000 - used))
    return min(left, _caps(snap, inside)), used


def _caps(snap: Snapshot, inside: frozenset[TargetId]) -> float:
    """What their quotas, or those of the groups that stand for them, add up to; millicores."""
    total = 0.0
    for target, members in cover(snap, inside).items():
        held = (snap.settings.get(Setting(t, "cpu.max"), math.inf) for t in {target, *members})
        total += min(float(cap) if isinstance(cap, float | int) else math.inf for cap in held)
    return total * 1000 / PERIOD_US


# amount = asked − lower · lent / 100;  over: 100 · asked > threshold · lent
# Where nothing is lent any more, everything that is asked. An amount that is not known is no trigger.
def lent(snap: Snapshot, resource: str) -> Need | None:
    said = snap.strategy.eviction.allocatable
    cpu = resource == "cpu"
    threshold = said.cpu_threshold_percent if cpu else said.memory_threshold_percent
    lower = said.cpu_lower_percent if cpu else said.memory_lower_percent
    bands = [band for band in BANDS if f"{band}-{resource}" in snap.lent]
    if threshold is UNSET or not bands:
        return None
    least, amount, over, reasons = threshold if lower is UNSET else lower, 0.0, False, []
    for band in bands:
        asked, there = sum(asking(snap, t, band, resource) for t in snap.entitlements), snap.lent[f"{band}-{resource}"]
        beyond = asked * 100 > threshold * there if there > 0 else asked > 0
        over = over or beyond
        amount += max(0.0, asked - least * max(0.0, there) / 100)
        asks, has = spell(resource, int(asked)), spell(resource, int(there))
        reasons.append(f"{band} {resource}: {asks} asked of {has} lent, threshold {threshold} %")
    trigger: EvictionTrigger = "lent-cpu" if cpu else "lent-memory"
    return Need(trigger, float(int(amount)), over, False, "; ".join(reasons), FRESH_S)


def asking(snap: Snapshot, target: TargetId, band: str, resource: str) -> float:
    """What a workload up to the strategy's priority asks for of what is lent."""
    w, most = snap.workloads.get(target), snap.strategy.eviction.allocatable.priority_threshold
    if w is None or band not in w.reclaimable or (most is not UNSET and (w.priority or 0) > most):
        return 0.0
    return float(getattr(w.reclaimable[band].requests, resource))


def best_effort(snap: Snapshot) -> frozenset[TargetId]:
    return frozenset(
        t for t, e in snap.entitlements.items() if e.chosen and e.tier is Tier.BESTEFFORT and t in snap.workloads
    )


def requested(snap: Snapshot, target: TargetId, resource: str) -> int:
    """Of what is lent where it says so, else as any workload requests."""
    w = snap.workloads[target]
    of_bands = sum(getattr(r.requests, resource) for r in w.reclaimable.values())
    return int(of_bands or getattr(w.requests, resource))
