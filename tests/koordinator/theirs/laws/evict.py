"""How much is to be freed by eviction: three triggers for CPU, three for memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from j10ce.dialects.koordinator.config.threshold import satisfaction_valid

DEFAULT_GAP: Final = 2  # percent from a threshold down to the lower mark that nobody wrote
SMALL_LIMIT_MILLI: Final = 1000  # below it best effort is taken to use all it has
WINDOW_PART: Final = 3  # a third of a window must be measured
DEFAULT_USAGE_PERCENT: Final = 90


class BestEffortCpu(NamedTuple):
    """All pods of best effort together, thousandths of a CPU."""

    limit: int  # what they really may use
    used: int
    request: int


class Satisfaction(NamedTuple):
    """When best effort has too little CPU for what it was promised."""

    lower_percent: int | None = None
    upper_percent: int | None = None
    usage_percent: int = DEFAULT_USAGE_PERCENT
    window_s: int = 0
    by_allocatable: bool = False


class Measured(NamedTuple):
    average: BestEffortCpu
    samples: int
    last: BestEffortCpu | None
    interval_s: int = 1
    batch_allocatable: int | None = None  # thousandths of a CPU; None: the node does not say


def satisfaction_release(rule: Satisfaction, m: Measured) -> int:
    """BECPUEvict: what must be freed so that the rest is satisfied, by the average and by the last sample."""
    window_s = max(m.interval_s, rule.window_s)
    measured = m.samples * m.interval_s * WINDOW_PART >= window_s
    if not measured or m.last is None or not satisfaction_valid(rule.lower_percent, rule.upper_percent):
        return 0
    average, last = (_limited(rule, cpu, m.batch_allocatable) for cpu in (m.average, m.last))
    if not (_busy(average, rule.usage_percent) and _busy(last, rule.usage_percent)):
        return 0
    release = _release(rule, average)
    same = (average.request, average.limit) == (last.request, last.limit)
    return release if same else min(release, _release(rule, last))


def _limited(rule: Satisfaction, cpu: BestEffortCpu, allocatable: int | None) -> BestEffortCpu:
    """By allocatable, what is lent stands for the limit everywhere: a thousandth where nothing is lent any more."""
    if not rule.by_allocatable:
        return cpu
    return cpu._replace(limit=0 if allocatable is None or allocatable < 0 else max(allocatable, 1))


def _release(rule: Satisfaction, cpu: BestEffortCpu) -> int:
    lower, upper = rule.lower_percent or 0, rule.upper_percent or 0
    if cpu.request <= 0 or cpu.limit * 100 > lower * cpu.request:
        return 0
    return max(0, (cpu.request * upper - cpu.limit * 100) // 100)


def _busy(cpu: BestEffortCpu, percent: int) -> bool:
    """Only who uses what it has suffers from having too little."""
    if cpu.limit <= 0:
        return False
    return cpu.limit < SMALL_LIMIT_MILLI or cpu.used * 100 >= percent * cpu.limit


def usage_release(capacity: int, used: int, threshold_percent: int, lower_percent: int | None = None) -> int:
    """CPUEvict, MemoryEvict, BEMemoryEvict: from the usage down to the lower mark; percent are cut to whole ones."""
    if capacity <= 0:
        return 0
    percent = used * 100 // capacity
    lower = threshold_percent - DEFAULT_GAP if lower_percent is None else lower_percent
    return max(0, capacity * (percent - lower) // 100) if percent >= threshold_percent else 0


class Asking(NamedTuple):
    """What a pod asks for of batch and mid resources."""

    priority: int
    requests: Mapping[str, int]


def allocatable_release(
    allocatable: Mapping[str, int],
    pods: Iterable[Asking],
    resources: Iterable[str],
    threshold_percent: int,
    lower_percent: int,
    most_priority: int,
) -> dict[str, int]:
    """CPUAllocatableEvict, MemoryAllocatableEvict: what pods up to a priority ask for beyond what is lent.

    Where nothing is lent any more, everything that was asked for. A threshold below 0 switches it off.
    """
    if threshold_percent < 0:
        return {}
    counted = [pod for pod in pods if pod.priority <= most_priority]
    out = {}
    for name in resources:
        asked, lent = sum(pod.requests.get(name, 0) for pod in counted), allocatable.get(name, 0)
        if lent <= 0:
            release = asked
        elif asked * 100 > threshold_percent * lent:
            release = (asked * 100 - lower_percent * lent) // 100
        else:
            release = 0
        if release > 0:
            out[name] = release
    return out
