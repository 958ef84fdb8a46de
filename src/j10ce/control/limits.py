"""`limits`: what a workload may use at most, and what it may save up for a burst."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import UNSET, UnsetType

from j10ce.control.allowance import BurstAllowed, allowed, limited_parts, quota_us, worth
from j10ce.control.controller import Controller, Unconfigured
from j10ce.model.knob import PERIOD_US, Setting, TargetId
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.quantity import Quantity
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement

Wish: TypeAlias = tuple[str, Bound, float, str]  # knob, bound, value, reason


class Limits(Unconfigured):
    """Wants each limit as declared; nobody may go further, except that cpu.max may rise by what a burst allows.

    A container's own quota is what throttles it, so it has its limit and its burst, too; but one that its maker left
    without a quota is not given any: a kubelet does so on purpose for containers with CPUs of their own. On CPUs that
    do more than the slowest of the fleet a limit is less time.
    """

    name = "limits"
    steady = True

    def __init__(self, config: Unconfigured.Config) -> None:
        super().__init__(config)
        self.reads: frozenset[Setting] = frozenset()

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        capped: set[Setting] = set()
        for e in snap.entitlements.values():
            if e.chosen:
                w = snap.workloads.get(e.target)
                burst = allowed(e, w, snap.strategy.burst)
                yield from self._wants(snap, e.target, _wishes(snap, e, burst))
                for target, part in limited_parts(snap, w):
                    capped.add(quota := Setting(target, "cpu.max"))
                    if snap.settings.get(quota, math.inf) != math.inf:
                        yield from self._wants(snap, target, _cpu(snap, e, part.limits.cpu, burst))
        self.reads = frozenset(capped)

    def _wants(self, snap: Snapshot, target: TargetId, wishes: Iterable[Wish]) -> Iterator[Proposal]:
        for knob, bound, value, reason in wishes:
            if snap.supports(knob):
                yield Proposal(Setting(target, knob), bound, value, self.name, Rank.POLICY, reason)


def _wishes(snap: Snapshot, e: Entitlement, burst: BurstAllowed) -> Iterator[Wish]:
    yield from _cpu(snap, e, e.ceiling.cpu, burst)
    if e.ceiling.memory != math.inf:
        why = f"limit {spell('memory', e.ceiling.memory)}"
        yield "memory.max", Bound.WANT, e.ceiling.memory, why
        yield "memory.max", Bound.AT_MOST, e.ceiling.memory, why
    if e.memory.oom_group is not UNSET:
        yield "memory.oom.group", Bound.WANT, float(e.memory.oom_group), f"profile {e.profile}"


def _cpu(snap: Snapshot, e: Entitlement, limit: float, burst: BurstAllowed) -> Iterator[Wish]:
    if limit == math.inf:
        return
    quota = quota_us(snap, e, limit)
    saved = _saved_us(quota, burst.saved)
    why = f"limit {spell('cpu', limit)}{worth(snap, e)}"
    yield "cpu.max", Bound.WANT, quota, why
    most = max(quota + saved, math.floor(quota * burst.multiple))
    yield "cpu.max", Bound.AT_MOST, most, f"{why}, burst {most / quota - 1:.0%}" if most > quota else why
    if saved:
        # The kernel refuses a burst above the quota.
        kept = min(saved, quota)
        yield "cpu.max.burst", Bound.WANT, kept, f"{kept / quota:.0%} of the limit may be saved up"


def _saved_us(quota: float, saved: Quantity | UnsetType) -> float:
    """A percentage of the limit, or an amount of CPUs."""
    if saved is UNSET:
        return 0.0
    amount = float(saved.amount)
    return float(round(quota * amount / 100 if saved.percent else amount * PERIOD_US))


_: Controller = Limits(Limits.Config())
