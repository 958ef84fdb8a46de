"""What a container gets when it starts: batch amounts, CPUs, a quota for the CPU that it runs on."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import NamedTuple

from msgspec import UNSET

from j10ce.dialects.koordinator.annotations.node import SharePool
from j10ce.dialects.koordinator.classes import BY_NATIVE, KoordClass
from j10ce.dialects.koordinator.config.fields import LEAST_RATIO, MOST_RATIO
from j10ce.dialects.koordinator.config.ratios import CpuNormalization, RatioModel
from j10ce.errors import Finding, Invalid
from j10ce.model.knob import format_cpus, parse_cpus
from j10ce.model.workload import NativeClass
from tests.koordinator.theirs.laws.conversions import UNLIMITED, quota, shares


class Extended(NamedTuple):
    """Batch or mid amounts of one container, thousandths of a CPU and bytes; None: not said."""

    request_milli: int | None = None
    limit_milli: int | None = None
    request_memory: int | None = None
    limit_memory: int | None = None


def extended_values(containers: Iterable[Extended], *, quotas: bool = True, ratio: float = 0) -> dict[str, int]:
    """cgroup values of a pod, or of one container alone; empty where no container has such amounts.

    A container without a limit, or with one of 0, makes the pod unlimited. Without `quotas` the directory of best
    effort has the quota of all. `ratio` is that of CPU normalisation.
    """
    listed = [*containers]
    if all(amount is None for container in listed for amount in container):
        return {}
    cpu = _sum(c.limit_milli for c in listed)
    memory = _sum(c.limit_memory for c in listed)
    return {
        "cpu.shares": shares(sum(c.request_milli or 0 for c in listed)),
        "cpu.cfs_quota_us": normalised(quota(cpu), ratio) if quotas and cpu is not None else UNLIMITED,
        "memory.limit_in_bytes": memory or UNLIMITED,
    }


def _sum(limits: Iterable[int | None]) -> int | None:
    total = 0
    for limit in limits:
        if limit is None or limit <= 0:
            return None
        total += limit
    return total


def normalised(quota_us: int, ratio: float) -> int:
    """A faster CPU does the same in less time; no ratio and no quota change nothing."""
    return math.ceil(quota_us / Fraction(str(ratio))) if ratio > 1 and quota_us > 0 else quota_us


def normalisation_ratio(strategy: CpuNormalization, model: str, *, hyper_thread: bool, turbo: bool) -> float:
    """By model and state of the CPU, else the default; raises Invalid where neither is there, or out of range."""
    ratio = _modelled(strategy.model(model), hyper_thread, turbo)
    if ratio is None:
        if strategy.default_ratio is UNSET:
            hint = "write ratioModel of this model, or defaultRatio"
            raise Invalid([Finding("ratioModel", model, "no ratio for this model", hint)])
        ratio = strategy.default_ratio
    if not LEAST_RATIO <= ratio <= MOST_RATIO:
        raise Invalid([Finding("ratio", ratio, "out of range", f"use {LEAST_RATIO:g} to {MOST_RATIO:g}")])
    return ratio


def _modelled(model: RatioModel | None, hyper_thread: bool, turbo: bool) -> float | None:
    if model is None:
        return None
    ratio = {
        (False, False): model.base_ratio,
        (True, False): model.hyper_thread_enabled_ratio,
        (False, True): model.turbo_enabled_ratio,
        (True, True): model.hyper_thread_turbo_enabled_ratio,
    }[hyper_thread, turbo]
    return None if ratio is UNSET else ratio


def ratio_text(ratio: float, *, enabled: bool = True) -> str:
    """As the node's annotation has it."""
    return f"{ratio if enabled else 1.0:.2f}"


class NodeCpus(NamedTuple):
    """How the CPUs of a node are shared out."""

    pools: tuple[SharePool, ...] = ()
    be_pools: tuple[SharePool, ...] = ()
    system: str = ""
    kubelet_static: bool = False
    be_manager: bool = False  # gate BECPUManager


class CpusetChoice(NamedTuple):
    """None: the container is left alone; an empty list: all of the parent's."""

    cpus: str | None
    unlimited: bool = False  # its quota is taken away: the CPUs are its own


def container_cpus(
    node: NodeCpus, koord: KoordClass, native: NativeClass, assigned: str = "", numa: Collection[int] = ()
) -> CpusetChoice:
    """`assigned` and `numa` are those of the pod's annotation; raises Invalid where `assigned` is no list of CPUs.

    A pod without a class that is Guaranteed to Kubernetes counts as LSR."""
    own = (KoordClass.LSE, KoordClass.LSR)
    if assigned and (koord in own or (koord is KoordClass.NONE and BY_NATIVE[native] in own)):
        return CpusetChoice(_checked(assigned), unlimited=True)
    if numa:
        pools = node.be_pools if node.be_manager and koord is KoordClass.BE else node.pools
        return CpusetChoice(_joined(pool for pool in pools if pool.node in numa))
    if koord is KoordClass.SYSTEM and node.system:
        return CpusetChoice(node.system)
    if koord is KoordClass.LS:
        return CpusetChoice(_joined(node.pools))
    if native == "BestEffort":
        return CpusetChoice("")
    return CpusetChoice(None if node.kubelet_static else _joined(node.pools))


def _checked(text: str) -> str:
    try:
        parse_cpus(text)
    except ValueError as e:
        raise Invalid([Finding("cpuset", text, str(e), "expected as 0-3,8")]) from None
    return text


def _joined(pools: Iterable[SharePool]) -> str:
    return format_cpus(frozenset().union(*(parse_cpus(pool.cpuset) for pool in pools)))
