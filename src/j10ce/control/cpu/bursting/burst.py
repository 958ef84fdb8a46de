"""`cpu-burst`: a workload that its limit throttles may use more for a while, where the shared CPUs are idle.

`limits` wants the limit and says how far it may be exceeded; this controller wants more. Time that is saved up in the
kernel is part of `limits`, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from j10ce.control.allowance import BurstAllowed, allowed, limited, quota_us
from j10ce.control.controller import Controller, Unconfigured
from j10ce.control.cpu.bursting.pool import pool_use, state
from j10ce.control.cpu.bursting.quota import Quota, QuotaNeeds, next_quota
from j10ce.control.cpu.bursting.tokens import Bucket, after, first, resized
from j10ce.model.knob import Setting, TargetId, render
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot
from j10ce.policy.profiles import BURSTS

FRESH_S: Final = 10.0  # an older reading says nothing about the present


class CpuBurst(Unconfigured):
    """Raises the quotas of containers, and those of their pods along with them."""

    name = "cpu-burst"

    def __init__(self, config: Unconfigured.Config) -> None:
        super().__init__(config)
        self._epoch = -1
        self._may: dict[TargetId, BurstAllowed] = {}  # workloads whose quota may rise
        self._quotas: dict[TargetId, Quota] = {}
        self._buckets: dict[TargetId, tuple[float, Bucket]] = {}  # when they were looked at, and what is in them

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        self._look(snap)
        use = pool_use(snap) if self._may else None
        kept: dict[TargetId, Quota] = {}
        for target, may in self._may.items():
            raised = dict(self._next(snap, target, may, use))
            kept |= raised
            yield from self._wants(snap, target, may, raised)
        self._quotas = kept
        self._buckets = {t: bucket for t, bucket in self._buckets.items() if t in kept}

    def _look(self, snap: Snapshot) -> None:
        """Who may burst changes only with the epoch."""
        if snap.epoch == self._epoch or not snap.supports("cpu.max"):
            return
        chosen = [e for e in snap.entitlements.values() if e.chosen and e.tier in BURSTS]
        may = {e.target: allowed(e, snap.workloads.get(e.target), snap.strategy.burst) for e in chosen}
        self._may = {target: burst for target, burst in may.items() if burst.multiple > 1}
        self._epoch = snap.epoch

    def _next(
        self, snap: Snapshot, workload: TargetId, may: BurstAllowed, use: float | None
    ) -> Iterator[tuple[TargetId, Quota]]:
        """The next quota of whatever its own limit throttles: its containers, or itself where it has none."""
        for target, limit in limited(snap, workload):
            base = quota_us(snap, snap.entitlements[workload], limit)
            held = self._quotas.get(target) or Quota(_number(snap, target, "cpu.max", base))
            throttled = snap.readings.window(target, "cpu.throttled", FRESH_S).last() or 0.0
            allows = self._spend(snap, target, may, base).allows
            needs = QuotaNeeds(base, math.floor(base * may.multiple), throttled, allows)
            yield target, next_quota(held, needs, state(use, may.pool_share), snap.now)

    def _spend(self, snap: Snapshot, target: TargetId, may: BurstAllowed, base: float) -> Bucket:
        at, bucket = self._buckets.get(target) or (snap.now, first(target, may.period_s, may.multiple))
        used = snap.readings.window(target, "cpu.usage", FRESH_S).last()
        bucket = resized(bucket, may.period_s, may.multiple)
        if used is not None:
            bucket = after(bucket, used * 100_000 / base, snap.now - at)
        self._buckets[target] = snap.now, bucket
        return bucket

    def _wants(
        self, snap: Snapshot, workload: TargetId, may: BurstAllowed, raised: dict[TargetId, Quota]
    ) -> Iterator[Proposal]:
        e, limits = snap.entitlements[workload], dict(limited(snap, workload))
        more = 0.0
        for target, quota in raised.items():
            base = quota_us(snap, e, limits[target])
            if quota.us > base:
                more += quota.us - base
                text = f"throttled at {render('cpu.max', base)}; {may.multiple:g} times that is allowed while less than"
                text += f" {may.pool_share:.0%} of the shared CPUs are in use"
                yield self._want(target, quota.us, text)
        if more and e.ceiling.cpu != math.inf and workload not in raised:
            base = quota_us(snap, e, e.ceiling.cpu)
            yield self._want(workload, base + more, f"{render('cpu.max', more)} more for containers that burst")

    def _want(self, target: TargetId, value: float, reason: str) -> Proposal:
        return Proposal(Setting(target, "cpu.max"), Bound.WANT, value, self.name, Rank.POLICY, reason)


def _number(snap: Snapshot, target: TargetId, knob: str, otherwise: float) -> float:
    value = snap.settings.get(Setting(target, knob))
    return value if isinstance(value, float) and value != math.inf else otherwise


_: Controller = CpuBurst(CpuBurst.Config())
