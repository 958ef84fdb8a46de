"""One machine on paper, second by second: who wants how much CPU time, what the ring makes of it, what each gets.

The protected are served first, as weights and cpu.idle see to it, each within its quota; best effort has what is left,
within its quota and its CPUs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from j10ce.control.controller import Controller
from j10ce.model.knob import NODE, PERIOD_US, Setting, TargetId, Value
from j10ce.model.parts.strategy import Strategy
from j10ce.model.plan import ValueChange
from j10ce.model.snapshot import Snapshot
from j10ce.plan.arbiter import Arbiter
from j10ce.testing.build import FixedReadings

Demand = Callable[[int], float]  # CPUs wanted in a second

SPAN = 10  # seconds that a window looks back


class Second(NamedTuple):
    """What happened in one second: CPUs used, seconds of all CPUs that the protected missed, and writes."""

    used: Mapping[TargetId, float]
    missed: float
    throttled: Mapping[TargetId, float]  # share of what was wanted that a quota refused
    writes: int


class World:
    def __init__(self, start: Snapshot, controllers: Sequence[Controller], said: Strategy, **demand: Demand) -> None:
        self.snap = replace(start, strategy=said)
        self.controllers = controllers
        self.demand = {TargetId(f"workload/default/{name}"): wanted for name, wanted in demand.items()}
        self.arbiter = Arbiter(lambda _, value: value)
        self.originals: dict[Setting, Value] = {}
        self.series: dict[tuple[TargetId, str], tuple[float, ...]] = {}

    def run(self, seconds: int) -> list[Second]:
        return [self.second(n) for n in range(seconds)]

    def second(self, n: int) -> Second:
        wanted = {t: want(n) for t, want in self.demand.items()}
        allowed = {t: min(wanted[t], self.cap(t)) for t in wanted}
        used, missed = _served(allowed, self._gives_way, self.snap.node.capacity.cpu / 1000)
        throttled = {t: 1 - allowed[t] / wanted[t] if wanted[t] else 0.0 for t in wanted}
        return Second(used, missed, throttled, self._tick(n, used, throttled))

    def cap(self, target: TargetId) -> float:
        """CPUs that it may use, by its own settings and those of all groups above it."""
        caps = [math.inf]
        for at in (target, *self.snap.groups.ancestors(target)):
            quota, cpus = (self.snap.settings.get(Setting(at, knob)) for knob in ("cpu.max", "cpuset.cpus"))
            caps += [quota / PERIOD_US] if isinstance(quota, float) else []
            caps += [float(len(cpus))] if isinstance(cpus, frozenset) and cpus else []
        return min(caps)

    def _gives_way(self, target: TargetId) -> bool:
        return self.snap.entitlements[target].cpu.suppressible

    def _tick(self, n: int, used: Mapping[TargetId, float], throttled: Mapping[TargetId, float]) -> int:
        measured = {(t, "cpu.usage"): cpus for t, cpus in used.items()}
        measured |= {(t, "cpu.throttled"): float(share > 0) for t, share in throttled.items()}
        measured[NODE, "cpu.usage"] = math.fsum(used.values())
        self.series = {key: (*self.series.get(key, ()), value)[-SPAN:] for key, value in measured.items()}
        snap = replace(self.snap, now=1000.0 + n, readings=FixedReadings(self.series), originals=self.originals)
        batches = [tuple(c.propose(snap)) for c in self.controllers]
        plan = self.arbiter.arbitrate(batches, snap, originals=self.originals)
        changes = [c for c in plan.changes if isinstance(c, ValueChange)]
        for change in changes:
            self.originals.setdefault(change.setting, snap.settings[change.setting])
        self.snap = replace(self.snap, settings={**snap.settings, **{c.setting: c.new for c in changes}})
        return len(changes)


def _served(
    allowed: Mapping[TargetId, float], gives_way: Callable[[TargetId], bool], cpus: float
) -> tuple[dict[TargetId, float], float]:
    """(what each uses, how far all wishes together exceed the machine while best effort is on it)."""
    first = {t: want for t, want in allowed.items() if not gives_way(t)}
    last = {t: want for t, want in allowed.items() if gives_way(t)}
    needed, lent = math.fsum(first.values()), math.fsum(last.values())
    fit = min(1.0, cpus / needed) if needed else 1.0
    left = min(1.0, max(0.0, cpus - needed) / lent) if lent else 1.0
    missed = max(0.0, min(lent, needed + lent - cpus))  # the protected meet best effort on as many CPUs
    return {**{t: w * fit for t, w in first.items()}, **{t: w * left for t, w in last.items()}}, missed
