"""`lent`: what a pod asks of lent capacity (batch, mid) is what it has. Whoever made it knows nothing of that.

Its limits of lent CPU and memory are its quota and its memory.max, container by container and together; containers
weigh by what they ask for. How pods weigh among each other is `floors`' to say; one that is idle weighs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from j10ce.control.allowance import quota_us, worth
from j10ce.control.controller import Controller, Unconfigured
from j10ce.model.knob import KNOBS, Setting, TargetId
from j10ce.model.knob import part as part_target
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement, Reclaimable, Workload, lent

SHARES_PER_CPU: Final = 1024


class Lent(Unconfigured):
    """A container that has no limit of what is lent is not limited, and nor is its pod then."""

    name = "lent"
    steady = True

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        for e in snap.entitlements.values():
            w = snap.workloads.get(e.target)
            if e.chosen and w is not None and w.reclaimable:
                yield from self._limits(snap, e, e.target, lent(w.reclaimable))
                for target, amounts in _parts(snap, w):
                    yield from self._limits(snap, e, target, amounts)
                    if amounts.requests.cpu:
                        why = f"asks for {spell('cpu', amounts.requests.cpu)} of what is lent"
                        yield from self._propose(snap, target, "cpu.weight", _shares(amounts.requests.cpu), why)

    def _limits(self, snap: Snapshot, e: Entitlement, target: TargetId, of: Reclaimable) -> Iterator[Proposal]:
        cpu, memory = of.limits.cpu, of.limits.memory
        if cpu != math.inf:
            why = f"limit {spell('cpu', cpu)} of what is lent{worth(snap, e)}"
            yield from self._propose(snap, target, "cpu.max", quota_us(snap, e, cpu), why, Bound.WANT, Bound.AT_MOST)
        if memory != math.inf:
            why = f"limit {spell('memory', memory)} of what is lent"
            yield from self._propose(snap, target, "memory.max", memory, why, Bound.WANT, Bound.AT_MOST)

    def _propose(
        self, snap: Snapshot, target: TargetId, knob: str, value: float, why: str, *bounds: Bound
    ) -> Iterator[Proposal]:
        if snap.supports(knob):
            for bound in bounds or (Bound.WANT,):
                yield Proposal(Setting(target, knob), bound, value, self.name, Rank.POLICY, why)


def _parts(snap: Snapshot, w: Workload) -> Iterator[tuple[TargetId, Reclaimable]]:
    """Those that have a cgroup, and ask for some of what is lent."""
    for p in w.parts:
        target = part_target(w.namespace, w.name, p.name)
        if p.reclaimable and target in snap.groups.by_target:
            yield target, lent(p.reclaimable)


def _shares(millicores: int) -> float:
    weight = KNOBS["cpu.weight"]
    return float(min(weight.high, max(weight.low, millicores * SHARES_PER_CPU // 1000)))


_: Controller = Lent(Lent.Config())
