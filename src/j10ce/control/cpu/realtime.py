"""`realtime`: threads of a workload run before all fair ones, within its CPU floor.

    rate    = min(floor, limit)                              [µs of each 100 ms], none without a floor
    room    : the sum of all rates is at most 75 % of the CPUs; whoever came first stays
    budget  = 900 ms · m / max(1, Σ m),  m = min(1 CPU, rate)   [µs of each second, on every CPU], on cgroup v1

A quota does not bind real-time threads, so the limit is part of the rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from j10ce.control.controller import Controller, Unconfigured
from j10ce.model.knob import PERIOD_US, ROOT, Setting, TargetId
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement

KNOB: Final = "sched.realtime"
BUDGET: Final = "cpu.rt_runtime_us"
ROOM: Final = 0.75  # of the CPUs
BUDGETED_US: Final = 900_000.0  # of each second


class Realtime(Unconfigured):
    name = "realtime"
    steady = True

    def __init__(self, config: Unconfigured.Config) -> None:
        super().__init__(config)
        self._admitted: tuple[TargetId, ...] = ()

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        if not snap.supports(KNOB):
            return
        wanted = {e.target: rate for e in snap.entitlements.values() if (rate := realtime_rate(e))}
        admitted = self._admit(wanted, ROOM * len(snap.node.cpus))
        for target, rate in wanted.items():
            yield self._realtime(snap, target, rate, admitted)
        if snap.supports(BUDGET):
            yield from self._budgets(snap, admitted)

    def _admit(self, wanted: Mapping[TargetId, float], room: float) -> Mapping[TargetId, float]:
        first = [t for t in self._admitted if t in wanted]
        admitted: dict[TargetId, float] = {}
        for target in [*first, *sorted(wanted.keys() - {*first})]:
            if math.fsum(admitted.values()) + wanted[target] <= room + 1e-9:
                admitted[target] = wanted[target]
        self._admitted = tuple(admitted)
        return admitted

    def _realtime(self, snap: Snapshot, target: TargetId, rate: float, admitted: Mapping[TargetId, float]) -> Proposal:
        taken, cpus = math.fsum(admitted.values()), len(snap.node.cpus)
        value, why = rate * PERIOD_US, f"real-time within its floor, {rate:g} CPUs; all together {taken:g} of {cpus}"
        if target not in admitted:
            value = 0.0
            why = f"stays fair: with its {rate:g} CPUs real-time floors are above 75 % of {cpus}; others have {taken:g}"
        return Proposal(Setting(target, KNOB), Bound.WANT, value, self.name, Rank.POLICY, why)

    def _budgets(self, snap: Snapshot, admitted: Mapping[TargetId, float]) -> Iterator[Proposal]:
        """From the workloads up: a group has what it had before us, and what is inside it."""
        most = {target: min(1.0, rate) for target, rate in admitted.items()}
        unit = BUDGETED_US / max(1.0, math.fsum(most.values()))
        inside: dict[TargetId, float] = {}
        for target, share in most.items():
            budget = float(int(unit * share))
            yield self._budget(target, budget, "its share of what may be real-time on a CPU")
            parts = [p for p in snap.workloads[target].part_targets if p in snap.groups.by_target]
            for part in parts:
                yield self._budget(part, float(int(budget / len(parts))), f"a part of {target}'s budget")
            for group in snap.groups.ancestors(target):
                inside[group] = inside.get(group, 0.0) + budget
        for group, budget in inside.items():
            if group != ROOT:
                before = snap.originals.get(Setting(group, BUDGET), 0.0)
                mine = before if isinstance(before, float) else 0.0
                yield self._budget(group, budget + mine, "covers the real-time workloads inside")

    def _budget(self, target: TargetId, value: float, why: str) -> Proposal:
        return Proposal(Setting(target, BUDGET), Bound.WANT, value, self.name, Rank.POLICY, why)


def realtime_rate(e: Entitlement) -> float:
    """In CPUs; 0 for who is not to be real-time."""
    return min(e.floor.cpu, e.ceiling.cpu) / 1000 if e.chosen and e.cpu.latency == "realtime" else 0.0


_: Controller = Realtime(Realtime.Config())
