"""What is said and measured by chance: strategies, words about one workload, containers, readings."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

from j10ce.model.kinds import NodeStrategy
from j10ce.model.knob import NODE
from j10ce.model.parts.sections import MemoryOverlay, ProfileOverlay, ReclaimSection
from j10ce.model.parts.strategy import BurstSection
from j10ce.model.workload import EvictionHints, Overrides, Part, Reclaimable, Workload
from j10ce.observe.sensor import Sample
from j10ce.testing import build

GI = float(2**30)
CPUS, MEMORY = 4.0, 8 * GI  # of the machine


def strategy(chance: random.Random) -> NodeStrategy:
    """Each section is there or not."""
    suppress = {"mode": chance.choice(["auto", "quota", "cpuset", "buffer"]), "bufferCpus": "1"}
    if chance.random() < 0.5:
        suppress["thresholdPercent"] = chance.choice([40, 65])
    sections: dict[str, Any] = {
        "suppress": suppress,
        "burst": {"policy": chance.choice(["none", "static", "quota", "auto"]), "quotaPercent": 200, "period": "20s"},
        "eviction": _eviction(chance),
        "normalization": {"ratio": chance.choice([1.0, 1.5])},
        "interference": {"mode": chance.choice(["off", "observe", "act"])},
        "systemCpus": {"cpus": chance.choice(["0", "0-1", "3"]), "exclusive": chance.random() < 0.5},
        "profiles": {chance.choice(["ls", "be", "burstable"]): chance.choice(OVERLAYS)},
    }
    return build.strategy("s", {name: said for name, said in sections.items() if chance.random() < 0.6})


OVERLAYS = (
    {"memory": {"throttlingPercent": 60, "minPercent": 50}},
    {"memory": {"reclaim": {"enabled": True}, "oomGroup": True}},
    {"cpu": {"idle": False, "suppressible": True}},
    {"cpu": {"pinning": "shared", "burst": "50%", "weight": 300}},
)


def _eviction(chance: random.Random) -> dict[str, Any]:
    cpu = {"thresholdPercent": 60, "window": "20s", "satisfactionLowerPercent": 40, "satisfactionUpperPercent": 80}
    return {
        "mode": chance.choice(["propose", "enforce"]),
        "memory": {"thresholdPercent": chance.choice([50, 70])},
        "cpu": cpu if chance.random() < 0.5 else {},
        "allocatable": {"cpuThresholdPercent": 100} if chance.random() < 0.5 else {},
    }


def overrides(chance: random.Random) -> Overrides:
    """As annotations of a pod would say it."""
    hints = EvictionHints(willing=chance.random() < 0.5, order=chance.choice([0, 0, 5]))
    kept = MemoryOverlay(min_percent=30, reclaim=ReclaimSection(enabled=chance.random() < 0.5))
    return Overrides(
        eviction=hints,
        burst=BurstSection(policy=chance.choice(["none", "auto"])) if chance.random() < 0.4 else BurstSection(),
        sections=ProfileOverlay(memory=kept) if chance.random() < 0.4 else ProfileOverlay(),
    )


def lent(chance: random.Random) -> dict[str, Reclaimable]:
    """What is asked of batch or mid; nothing by half."""
    if chance.random() < 0.5:
        return {}
    limits = build.ceiling(chance.choice([None, "1"]), chance.choice([None, "2Gi"]))
    return {chance.choice(["batch", "mid"]): Reclaimable(build.resources("500m", "1Gi"), limits)}


def containers(chance: random.Random, pod: str, names: Iterable[str], limited: bool) -> tuple[Part, ...]:
    """Of a pod, each with a limit or none of them."""
    limits = build.ceiling("1", "2Gi") if limited else build.ceiling()
    return tuple(
        Part(n, build.handle(f"{pod}/{n}"), build.resources("250m", "512Mi"), limits, lent(chance)) for n in names
    )


def readings(chance: random.Random, workloads: Iterable[Workload]) -> Iterator[Sample]:
    """A busy machine or a quiet one, whatever its workloads have."""
    busy = chance.choice([0.1, 0.6, 1.0])
    for target in (t for w in workloads for t in (w.target, *w.part_targets)):
        yield Sample(target, "cpu.usage", chance.uniform(0, busy))
        yield Sample(target, "cpu.throttled", chance.choice([0.0, 0.4]))
        yield Sample(target, "cpu.pressure", chance.uniform(0, busy))
        yield Sample(target, "memory.current", float(int(chance.uniform(0, busy) * GI)))
        yield Sample(target, "memory.pressure", chance.uniform(0, busy))
        yield Sample(target, "memory.refaults", chance.choice([0.0, 1000.0]))
    yield Sample(NODE, "cpu.usage", busy * CPUS)
    yield Sample(NODE, "memory.working_set", busy * MEMORY)
    yield Sample(NODE, "memory.current", busy * MEMORY)
    yield Sample(NODE, "cpu.pressure", chance.choice([0.0, busy]))
    yield Sample(NODE, "memory.pressure", chance.choice([0.0, busy]))
