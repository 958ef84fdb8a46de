"""`limits`: what a workload may use at most, and what it may save up for a burst."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import UNSET

from j10ce.control.controller import Controller
from j10ce.model.kinds import Strict
from j10ce.model.knob import KNOBS, PERIOD_US, Setting
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement


class Limits:
    """Wants each limit as declared; nobody may go further, except that cpu.max may rise by the profile's burst."""

    name = "limits"
    steady = True

    class Config(Strict, frozen=True, kw_only=True):
        pass

    def __init__(self, config: Config) -> None:
        self.config = config

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        for e in snap.entitlements.values():
            if e.chosen:
                for knob, bound, value, reason in _wishes(e):
                    if snap.supports(knob):
                        yield Proposal(Setting(e.target, knob), bound, value, self.name, Rank.POLICY, reason)


def _wishes(e: Entitlement) -> Iterator[tuple[str, Bound, float, str]]:
    if e.ceiling.cpu != math.inf:
        quota, burst = quota_us(e), burst_us(e)
        why = f"limit {spell('cpu', e.ceiling.cpu)}"
        yield "cpu.max", Bound.WANT, quota, why
        yield "cpu.max", Bound.AT_MOST, quota + burst, f"{why}, burst {burst / quota:.0%}" if burst else why
        if burst:
            # The kernel refuses a burst above the quota.
            yield "cpu.max.burst", Bound.WANT, min(burst, quota), f"{burst / quota:.0%} of the limit may be saved up"
    if e.ceiling.memory != math.inf:
        why = f"limit {spell('memory', e.ceiling.memory)}"
        yield "memory.max", Bound.WANT, e.ceiling.memory, why
        yield "memory.max", Bound.AT_MOST, e.ceiling.memory, why
    if e.memory.oom_group is not UNSET:
        yield "memory.oom.group", Bound.WANT, float(e.memory.oom_group), f"profile {e.profile}"


def quota_us(e: Entitlement) -> float:
    return float(max(KNOBS["cpu.max"].low, round(e.ceiling.cpu * PERIOD_US / 1000)))


def burst_us(e: Entitlement) -> float:
    """A percentage of the limit, or an amount of CPUs."""
    if e.cpu.burst is UNSET:
        return 0.0
    amount = float(e.cpu.burst.amount)
    cpus = amount * e.ceiling.cpu / 100_000 if e.cpu.burst.percent else amount
    return float(round(cpus * PERIOD_US))


_: Controller = Limits(Limits.Config())
