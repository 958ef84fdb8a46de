"""CPU burst: time saved up for later, a quota that grows while it throttles, and the bucket of tokens that pays for it.

Of LS and of pods without a class alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from j10ce.dialects.koordinator.classes import KoordClass
from tests.koordinator.theirs.laws.conversions import PERIOD_US

Policy = Literal["none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"]
NodeState = Literal["idle", "cooling", "overload", "unknown"]
Op = Literal["reset", "up", "down", "remain"]

BASE_US_PER_MILLI: Final = PERIOD_US // 1000
COOLING_PERMILL: Final = 900  # of the threshold
FACTORS: Final[Mapping[Op, tuple[int, int]]] = {"up": (12, 10), "down": (8, 10), "remain": (1, 1)}
BUSY_PERCENT: Final = 100  # of the base: at and above it tokens are spent
CALM_PERCENT: Final = 60  # below it they come back


def may_burst(koord: KoordClass) -> bool:
    return koord in (KoordClass.LS, KoordClass.NONE)


class Bursts(NamedTuple):
    containers: dict[str, int]  # microseconds
    pod: int


def static_burst(policy: Policy, percent: int, limits_milli: Mapping[str, int]) -> Bursts:
    """What may be saved up; nothing without a limit. Not clamped to the quota, which mainline kernels refuse."""
    on = policy in ("auto", "cpuBurstOnly")
    bursts = {name: max(milli, 0) * percent * on for name, milli in limits_milli.items()}
    return Bursts(bursts, sum(bursts.values()))


def clamped_burst(burst_us: int, quota_us: int) -> int:
    """As mainline kernels accept it: at most the quota, and nothing without one."""
    return min(burst_us, quota_us) if quota_us > 0 else 0


class PoolUse(NamedTuple):
    koord: KoordClass
    request_milli: int
    used_milli: int


def node_state(used_milli: int | None, cpus: int | None, threshold_percent: int, pods: Iterable[PoolUse]) -> NodeState:
    """How busy the CPUs are that nobody has for itself."""
    if used_milli is None or cpus is None:
        return "unknown"
    listed = [*pods]
    pinned, apart = (KoordClass.LSE, KoordClass.LSR), (KoordClass.LSE, KoordClass.LSR, KoordClass.BE)
    pool = cpus * 1000 - sum(pod.request_milli for pod in listed if pod.koord in pinned)
    used = used_milli - sum(pod.used_milli for pod in listed if pod.koord in apart)
    if pool <= 0:
        pool = used = 1  # all of it
    if used * 100 >= threshold_percent * pool:
        return "overload"
    return "cooling" if used * 100_000 >= COOLING_PERMILL * threshold_percent * pool else "idle"


class QuotaUse(NamedTuple):
    name: str
    limit_milli: int
    quota_us: int
    throttled_ratio: float | None = None  # of the last sample; None: not measured
    tokens: bool = True  # whether its bucket allows more than the base


def quota_burst(policy: Policy, percent: int, state: NodeState, pod_us: int, containers: Iterable[QuotaUse]) -> Bursts:
    """The next quotas; the pod's moves along with those of its containers while it has one."""
    on = policy in ("auto", "cfsQuotaBurstOnly") and percent > 100
    limited = [c for c in containers if c.limit_milli > 0]
    quotas = {c.name: _next(operation(c, state, on=on), c, percent) for c in limited}
    moved = sum(quotas[c.name] - c.quota_us for c in limited)
    return Bursts(quotas, pod_us + moved if pod_us > 0 else pod_us)


def operation(container: QuotaUse, state: NodeState, *, on: bool) -> Op:
    if not on:
        return "reset"
    wanted: Op = "down" if not container.tokens else "up" if (container.throttled_ratio or 0) > 0 else "remain"
    match state:
        case "overload":
            return "down"
        case "cooling" | "unknown":
            return "remain" if wanted == "up" else wanted
        case "idle":
            return wanted


def _next(op: Op, container: QuotaUse, percent: int) -> int:
    base = container.limit_milli * BASE_US_PER_MILLI
    if op == "reset":
        return base
    times, over = FACTORS[op]
    return min(max(container.quota_us * times // over, base), base * percent // 100)


class Bucket(NamedTuple):
    """Tokens are percent of the base times seconds."""

    capacity: float
    tokens: float

    @property
    def allows(self) -> bool:
        return self.tokens > 0


def may_exceed(period_s: int, bucket: Bucket) -> bool:
    """Whether a container may have more than its base; a period below 0 needs no tokens."""
    return period_s < 0 or bucket.allows


def capacity(period_s: int, percent: int) -> int:
    """What a container may spend beyond its base; with 0 it never has a token."""
    return max(period_s, 0) * max(percent - 100, 0)


def new_bucket(period_s: int, percent: int, fill: float) -> Bucket:
    """`fill` is drawn from [0, 0.5), so that containers do not all stop bursting at once."""
    whole = capacity(period_s, percent)
    return Bucket(whole, whole * fill)


def spent(bucket: Bucket, usage_percent: float, seconds: float) -> Bucket:
    """After some seconds at a usage, in percent of the base; a debt is at most as large as the capacity."""
    if usage_percent >= BUSY_PERCENT:
        tokens = bucket.tokens - (usage_percent - 100) * seconds
    elif usage_percent < CALM_PERCENT:
        tokens = bucket.tokens + (100 - usage_percent) * seconds
    else:
        tokens = bucket.tokens
    return bucket._replace(tokens=min(max(tokens, -bucket.capacity), bucket.capacity))


def resized(bucket: Bucket, period_s: int, percent: int) -> Bucket:
    whole = capacity(period_s, percent)
    return Bucket(whole, min(max(bucket.tokens, -whole), whole))


def expired(period_s: int, idle_s: float) -> bool:
    """A bucket that nobody asked for two periods is forgotten."""
    return idle_s > 2 * period_s
