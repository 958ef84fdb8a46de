"""The whole ring on a simulated machine beside the literal laws of Koordinator's node agent.

suppress  a step, a noisy and a diurnal load beside best effort that wants everything: values written, CPU time that the
          load wanted and did not get, CPU time of best effort
hogs      memory of best effort that grows and rests by chance, 20 seeds: who was killed, and how many had to go

Every agent decides in its real ring (`j10ce.sim.world`); the literal laws write the same knobs of the same machine and
have no ring. No figure depends on how busy this machine is.

`python -m benchmarks.simulated [suppress | hogs]…`: all of them where none is named.
"""

from __future__ import annotations

import math
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.facts import machine_facts
from j10ce.model.knob import TargetId
from j10ce.model.workload import Workload
from j10ce.sim.world import GRACE_S, Load, World
from j10ce.testing import build
from tests.koordinator.theirs.laws import evict, victims
from tests.koordinator.theirs.laws.suppress import Suppression, Use, allowed_milli, stepped_quota

SECONDS: Final = 600
THRESHOLD: Final = 65
GIB: Final = float(1 << 30)
WEB: Final = build.workload("web", profile="ls")
JOB: Final = build.workload("job", profile="be")
MACHINES: Final = (8, 16, 40)  # CPUs
MOST_CHANGES, LEAST_WORK = 1 / 3, 0.95  # of the literal law's
SEEDS: Final = 20
MEMORY_MARK, MEMORY_LOWER, MEMORY_GIB = 80, 75, 16
COOL_S: Final = 4  # seconds between two evictions of the literal law
KEPT: Final = build.workload("kept", profile="ls", memory="6Gi", min_memory="6Gi")

Demand = Callable[[int], float]  # of seconds, in parts of the machine


def step(n: int) -> float:
    return 0.6 if n // 60 % 2 else 0.05


def noisy(n: int) -> float:
    return 0.3 + random.Random(n).uniform(-0.0625, 0.0625)


def diurnal(n: int) -> float:
    return 0.325 + 0.25 * math.sin(2 * math.pi * n / SECONDS) + random.Random(n).uniform(-0.0125, 0.0125)


class Score(NamedTuple):
    changes: int
    starved: float  # CPU seconds
    work: float  # CPU seconds of best effort


@contextmanager
def world(said: dict[str, Any], **more: Any) -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="j10ce-sim-") as folder:
        yield World(Path(folder), strategies=(build.strategy("s", said),), **more)


def suppressed(cpus: int, wanted: Demand, *, literal: bool) -> Score:
    said = {} if literal else {"suppress": {"mode": "quota", "thresholdPercent": THRESHOLD}}
    with world(said, cpus=cpus) as w:
        w.add(WEB, Load(cpu=lambda t: cpus * wanted(int(t))))
        w.add(JOB, Load(cpu=lambda _: float(cpus)))
        before, changes, quota, law = w.changes, 0, -1, LiteralQuota(w, cpus)
        for _ in range(SECONDS):
            w.step()
            if literal:
                follows = law.follows(quota)
                changes, quota = changes + (follows != quota), follows
        web, job = w.of(WEB.target), w.of(JOB.target)
        return Score(changes if literal else w.changes - before, web.starved, job.got)


class LiteralQuota:
    """Their next quota by what was used in the last second, written where best effort is."""

    def __init__(self, machine: World, cpus: int) -> None:
        self._machine, self._cpus = machine, cpus
        self._got = {WEB.target: 0.0, JOB.target: 0.0}

    def follows(self, quota: int) -> int:
        got = {t: self._machine.of(t).got for t in self._got}
        used = {t: round((got[t] - before) * 1000) for t, before in self._got.items()}
        self._got = got
        uses = (Use(used[WEB.target]), Use(used[JOB.target], best_effort=True))
        allowed = allowed_milli(Suppression(self._cpus * 1000, sum(used.values()), THRESHOLD, uses))
        follows = stepped_quota(allowed, quota, self._cpus)
        if follows > 0:
            path = self._machine.agent.workloads[JOB.target].handle.path
            self._machine.kernel[path].values["cpu.max"] = float(follows)
        return follows


class Toll(NamedTuple):
    protected: int  # killed
    killed: int
    evicted: int


def hogs(seed: int) -> Iterator[tuple[Workload, Load]]:
    """They come in the first minutes, grow, rest and shrink."""
    chance = random.Random(seed)
    for n in range(chance.randint(3, 6)):
        w = build.workload(f"hog{n}", profile="be", priority=chance.choice([5000, 5500, 5999]))
        size, rate, rests = chance.uniform(0.3, 1.2), chance.uniform(0.002, 0.03), chance.randint(30, 240)

        def wants(t: float, size: float = size, rate: float = rate, rests: int = rests) -> float:
            return GIB * max(0.2, size + rate * (min(t, rests) - max(0.0, t - rests)))

        yield w, Load(cpu=lambda _: 0.1, memory=wants, hot=0.9)


def toll(seed: int, *, literal: bool) -> Toll:
    marks = {"thresholdPercent": MEMORY_MARK, "lowerPercent": MEMORY_LOWER}
    said = {} if literal else {"eviction": {"memory": marks, "mode": "enforce", "perMinute": 60}}
    with world(said, memory=MEMORY_GIB << 30) as w:
        w.add(KEPT, Load(cpu=lambda _: 1.0, memory=lambda _: 6 * GIB))
        listed = {h.target: h for h, load in hogs(seed) if w.add(h, load)}
        law = LiteralEviction(w, listed)
        for _ in range(SECONDS):
            w.step()
            if literal:
                law.second()
        killed = [t for t, how in w.ended.items() if how == "killed"]
        evicted = law.gone if literal else sum(how == "evicted" for how in w.ended.values())
        return Toll(killed.count(KEPT.target), len(killed), evicted)


class LiteralEviction:
    """As soon as usage is over the threshold, within its cool-down; whoever goes is gone after the same grace."""

    def __init__(self, machine: World, hogs: dict[TargetId, Workload]) -> None:
        self._machine, self._hogs = machine, hogs
        self._leaves: dict[TargetId, int] = {}
        self._last = -COOL_S
        self.gone = 0

    def second(self) -> None:
        w, now = self._machine, self._machine.seconds
        for target in [t for t, at in self._leaves.items() if at <= now]:
            del self._leaves[target]
            if target in w.agent.workloads:
                w.remove(target)
                self.gone += 1
        release = evict.usage_release(MEMORY_GIB << 30, int(w.pages.used), MEMORY_MARK, MEMORY_LOWER)
        if not release or now - self._last < COOL_S:
            return
        for target in victims.evict(victims.by_memory(self._candidates()), {"memory": release}).victims:
            self._leaves[TargetId(target)] = now + int(GRACE_S)
            self._last = now

    def _candidates(self) -> list[victims.Candidate]:
        w, here = self._machine, [t for t in self._hogs if t in self._machine.agent.workloads]
        held = {t: int(w.kernel[w.agent.workloads[t].handle.path].memory_current) for t in here}
        return [
            victims.Candidate(t, {"memory": n}, self._hogs[t].priority, used=n, leaving=t in self._leaves)
            for t, n in held.items()
        ]


def main() -> int:
    machine_facts()
    parts = {"suppress": compare_suppression, "hogs": compare_hogs}
    met = [parts[name]() for name in sys.argv[1:] or parts]
    return not all(met)


def compare_suppression() -> bool:
    met = True
    print("best effort held back, quota      values written   starved, CPU s   best effort, CPU s")
    for cpus in MACHINES:
        for load in (step, noisy, diurnal):
            here, there = (suppressed(cpus, load, literal=literal) for literal in (False, True))
            fine = here.changes <= MOST_CHANGES * there.changes and here.work >= LEAST_WORK * there.work
            fine = fine and here.starved <= there.starved + 1e-6
            met &= fine
            print(
                f"{load.__name__:8} {cpus:3} CPUs   {here.changes:5} of {there.changes:<5} {here.starved:11.1f} of "
                f"{there.starved:<6.1f} {here.work:9.0f} of {there.work:<7.0f} {'met' if fine else 'MISSED'}"
            )
    return met


def compare_hogs() -> bool:
    mine, literal = ([toll(seed, literal=law) for seed in range(SEEDS)] for law in (False, True))
    for name, tolls in (("ours", mine), ("literal law", literal)):
        sums = [sum(column) for column in zip(*tolls, strict=True)]
        print(f"{name}: {SEEDS} seeds, {sums[0]} protected killed, {sums[1]} killed in all, {sums[2]} evicted")
    met = not any(t.protected for t in mine) and sum(t.evicted for t in mine) < sum(t.evicted for t in literal)
    print(f"nobody protected killed, fewer evicted: {'met' if met else 'MISSED'}")
    return met


if __name__ == "__main__":
    sys.exit(main())
