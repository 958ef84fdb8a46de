"""Between cgroup v1 and v2, and from amounts to both."""

from __future__ import annotations

from typing import Final

from j10ce.errors import Finding, Invalid

PERIOD_US: Final = 100_000
UNLIMITED: Final = -1
MOST_MEMORY: Final = 2**63 - 1  # how they write "no limit" of memory
LEAST_SHARES: Final = 2
MOST_SHARES: Final = 262_144
MOST_WEIGHT: Final = 10_000
LEAST_QUOTA_US: Final = 1000


def weight(shares: int) -> int:
    """cpu.weight of cpu.shares, on the straight line between their ends."""
    within = min(max(shares, LEAST_SHARES), MOST_SHARES)
    return 1 + (within - LEAST_SHARES) * (MOST_WEIGHT - 1) // (MOST_SHARES - LEAST_SHARES)


def shares_of_weight(weight: int) -> int:
    """cpu.shares of cpu.weight; raises Invalid outside of 1 to 10000."""
    if not 1 <= weight <= MOST_WEIGHT:
        raise Invalid([Finding("cpu.weight", weight, "out of range", f"use 1 to {MOST_WEIGHT}")])
    return (weight - 1) * (MOST_SHARES - LEAST_SHARES) // (MOST_WEIGHT - 1) + LEAST_SHARES


def quota_of_cpu_max(content: str) -> int:
    """The quota in `cpu.max`, microseconds; raises Invalid unless there are a quota and a period."""
    match content.split():
        case ["max", period] if period.isdecimal():
            return UNLIMITED
        case [quota, period] if quota.isdecimal() and period.isdecimal() and len(quota) <= 19:
            return int(quota)
    raise Invalid([Finding("cpu.max", content, "not a quota and a period", "expected as `50000 100000`")])


def cpu_max(quota_us: int) -> str:
    return f"{'max' if quota_us < 0 else quota_us} {PERIOD_US}"


def memory_max(limit: int) -> str:
    return "max" if limit < 0 or limit >= MOST_MEMORY else str(limit)


def shares(milli: int) -> int:
    """cpu.shares of thousandths of a CPU."""
    return min(max(milli * 1024 // 1000, LEAST_SHARES), MOST_SHARES)


def quota(milli: int) -> int:
    """Microseconds of a period of thousandths of a CPU; nothing is unlimited."""
    return UNLIMITED if milli <= 0 else max(milli * PERIOD_US // 1000, LEAST_QUOTA_US)
