"""How much is to be freed by eviction: three triggers for CPU, three for memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from j10ce.dialects.koordinator.config.threshold import DEFAULT_GAP, satisfaction_valid

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
    batch_allocatable: int = 0  # thousandths of a CPU


def satisfaction_release(rule: Satisfaction, m: Measured) -> int:
    """BECPUEvict: what must be freed so that the rest is satisfied, by the average and by the last sample."""
    window_s = max(m.interval_s, rule.window_s)
    measured = m.samples * m.interval_s * WINDOW_PART >= window_s
    if not measured or m.last is None or not satisfaction_valid(rule.lower_percent, rule.upper_percent):
        return 0
    average, last = (_release(rule, cpu, m.batch_allocatable) for cpu in (m.average, m.last))
    if not average or not _busy(m.last, rule.usage_percent):
        return 0
    same = (m.average.request, m.average.limit) == (m.last.request, m.last.limit)
    return average if same else min(average, last)


def _release(rule: Satisfaction, cpu: BestEffortCpu, allocatable: int) -> int:
    limit = max(allocatable, 1) if rule.by_allocatable else cpu.limit
    lower, upper = rule.lower_percent or 0, rule.upper_percent or 0
    if cpu.request <= 0 or not _busy(cpu, rule.usage_percent) or limit * 100 > lower * cpu.request:
        return 0
    return max(0, (cpu.request * upper - limit * 100) // 100)


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

    Where nothing is lent any more, everything that was asked for.
    """
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
