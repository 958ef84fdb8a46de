"""`limits`: what a workload may use at most, and what it may save up for a burst."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import UNSET, UnsetType

from j10ce.control.controller import Controller
from j10ce.model.kinds import Strict
from j10ce.model.knob import KNOBS, PERIOD_US, Setting, TargetId
from j10ce.model.knob import part as part_target
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.quantity import Quantity
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement, Part, Workload

Wish: TypeAlias = tuple[str, Bound, float, str]  # knob, bound, value, reason


class Limits:
    """Wants each limit as declared; nobody may go further, except that cpu.max may rise by the profile's burst.

    A container's own quota is what throttles it, so it has its limit and its burst, too; but one that its maker left
    without a quota is not given any: a kubelet does so on purpose for containers with CPUs of their own.
    """

    name = "limits"
    steady = True

    class Config(Strict, frozen=True, kw_only=True):
        pass

    def __init__(self, config: Config) -> None:
        self.config = config
        self.reads: frozenset[Setting] = frozenset()

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        capped: set[Setting] = set()
        for e in snap.entitlements.values():
            if e.chosen:
                yield from self._wants(snap, e.target, _wishes(e))
                for target, part in _limited_parts(snap, snap.workloads.get(e.target)):
                    capped.add(quota := Setting(target, "cpu.max"))
                    if snap.settings.get(quota, math.inf) != math.inf:
                        yield from self._wants(snap, target, _cpu(part.limits.cpu, e.cpu.burst))
        self.reads = frozenset(capped)

    def _wants(self, snap: Snapshot, target: TargetId, wishes: Iterable[Wish]) -> Iterator[Proposal]:
        for knob, bound, value, reason in wishes:
            if snap.supports(knob):
                yield Proposal(Setting(target, knob), bound, value, self.name, Rank.POLICY, reason)


def _limited_parts(snap: Snapshot, w: Workload | None) -> Iterator[tuple[TargetId, Part]]:
    """Those that have a cgroup and a limit; none while their maker is about to write it."""
    if w is None or w.resizing:
        return
    for p in w.parts:
        target = part_target(w.namespace, w.name, p.name)
        if p.limits.cpu != math.inf and target in snap.groups.by_target:
            yield target, p


def _wishes(e: Entitlement) -> Iterator[Wish]:
    yield from _cpu(e.ceiling.cpu, e.cpu.burst)
    if e.ceiling.memory != math.inf:
        why = f"limit {spell('memory', e.ceiling.memory)}"
        yield "memory.max", Bound.WANT, e.ceiling.memory, why
        yield "memory.max", Bound.AT_MOST, e.ceiling.memory, why
    if e.memory.oom_group is not UNSET:
        yield "memory.oom.group", Bound.WANT, float(e.memory.oom_group), f"profile {e.profile}"


def _cpu(limit: float, saved: Quantity | UnsetType) -> Iterator[Wish]:
    if limit == math.inf:
        return
    quota, burst = _quota_us(limit), _burst_us(limit, saved)
    why = f"limit {spell('cpu', limit)}"
    yield "cpu.max", Bound.WANT, quota, why
    yield "cpu.max", Bound.AT_MOST, quota + burst, f"{why}, burst {burst / quota:.0%}" if burst else why
    if burst:
        # The kernel refuses a burst above the quota.
        yield "cpu.max.burst", Bound.WANT, min(burst, quota), f"{burst / quota:.0%} of the limit may be saved up"


def _quota_us(limit: float) -> float:
    return float(max(KNOBS["cpu.max"].low, round(limit * PERIOD_US / 1000)))


def _burst_us(limit: float, saved: Quantity | UnsetType) -> float:
    """A percentage of the limit, or an amount of CPUs."""
    if saved is UNSET:
        return 0.0
    amount = float(saved.amount)
    cpus = amount * limit / 100_000 if saved.percent else amount
    return float(round(cpus * PERIOD_US))


_: Controller = Limits(Limits.Config())
