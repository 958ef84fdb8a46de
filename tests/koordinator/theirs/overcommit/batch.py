"""What is lent to batch, of the node and of each NUMA zone.

    usage             capacity − margin − max(system, reserved) − what the better uses
    request           capacity − margin − reserved − what the better asked for
    maxUsageRequest   capacity − margin − max(system, reserved) − the larger of both, pod by pod

The result is at least 0 and at most a share of the capacity. `policy/overcommit` has the same law and rounds the margin
up where this one cuts it: they differ by one thousandth of a CPU, or one byte, at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from j10ce.dialects.koordinator.classes import Band
from j10ce.policy.overcommit import By


class BatchLaw(NamedTuple):
    """Of one resource."""

    threshold_percent: int
    by: By = "usage"
    cap_percent: int | None = None


class BetterPod(NamedTuple):
    """A pod that is not batch and not free, running or pending."""

    request: int
    usage: int | None = None  # None: not measured
    whole: bool = False  # counts by what it asked for: CPU of LSE
    zones: tuple[int, ...] = ()  # that it is bound to


class NodeUse(NamedTuple):
    """Of one resource."""

    capacity: int
    reserved: int = 0  # the larger of the kubelet's and the annotation's
    system: int = 0  # with host applications of prod and mid
    pods: tuple[BetterPod, ...] = ()
    dangling: int = 0  # use of better pods that nobody listed


def counts(phase: str) -> bool:
    """Whether a pod is one that takes something."""
    return phase in ("Running", "Pending")


def is_better(band: Band, phase: str) -> bool:
    """Whether a pod counts against batch."""
    return counts(phase) and band not in (Band.BATCH, Band.FREE)


def batch(law: BatchLaw, use: NodeUse, *, literal: bool = True) -> int:
    """`literal`: by maxUsageRequest a pod that is not measured takes nothing, as on the level of a node of theirs."""
    taken = [_taken(law.by, pod, unmeasured=not literal) for pod in use.pods]
    dangling = 0 if law.by == "request" else use.dangling
    return _left(law, use.capacity, _machine(law, use), sum(taken) + dangling)


def batch_zones(law: BatchLaw, use: NodeUse, capacities: Mapping[int, int]) -> dict[int, int]:
    """By zone: who is bound counts in its zones, everyone else in all alike."""
    count = len(capacities)
    if not count:
        return {}
    machine = _ceil(_machine(law, use), count)
    taken = dict.fromkeys(capacities, _ceil(0 if law.by == "request" else use.dangling, count))
    for pod in use.pods:
        zones = [zone for zone in pod.zones if zone in capacities] or [*capacities]
        for zone in zones:
            taken[zone] += _ceil(_taken(law.by, pod, unmeasured=True), len(zones))
    return {zone: _left(law, capacity, machine, taken[zone]) for zone, capacity in capacities.items()}


def normalised(amount: int, ratio: float) -> int:
    """Batch CPU of a node whose CPUs count for more."""
    return int(amount * Fraction(str(ratio))) if ratio > 1 else amount


def without_others(amount: int, allocated: Iterable[int]) -> int:
    """What third parties took already is not lent again."""
    return max(0, amount - sum(allocated))


def margin(capacity: int, threshold_percent: int) -> int:
    """What is kept beside the threshold, cut towards zero; less than nothing above 100 %."""
    return int(Fraction(capacity * (100 - threshold_percent), 100))


def _left(law: BatchLaw, capacity: int, machine: int, taken: int) -> int:
    left = max(0, capacity - margin(capacity, law.threshold_percent) - machine - taken)
    return left if law.cap_percent is None else min(left, capacity * law.cap_percent // 100)


def _machine(law: BatchLaw, use: NodeUse) -> int:
    return use.reserved if law.by == "request" else max(use.system, use.reserved)


def _taken(by: By, pod: BetterPod, *, unmeasured: bool) -> int:
    """`unmeasured`: a pod that is not measured takes what it asked for."""
    match by:
        case "usage":
            return pod.request if pod.whole or pod.usage is None else pod.usage
        case "request":
            return pod.request
        case "maxUsageRequest":
            return max(pod.request, pod.usage) if pod.usage is not None else pod.request * unmeasured


def _ceil(amount: int, parts: int) -> int:
    return -(-amount // parts)
