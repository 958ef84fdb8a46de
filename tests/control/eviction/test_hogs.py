"""Memory hogs on a simulated machine: nobody protected is killed, and fewer have to go than by the literal law.

The machine has one protected workload of a steady size and a few of best effort that grow, rest and shrink by chance.
It kills the largest when memory is full, whoever that is; stalls begin when little is left. memory.high slows growth
down to a tenth, a frozen workload does not grow, an evicted one is gone after some seconds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from j10ce.control.eviction.eviction import Eviction
from j10ce.model.knob import NODE, Deed, Support, TargetId
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Workload
from j10ce.plan.actions import admit
from j10ce.testing import build
from tests.koordinator.theirs.laws import evict
from tests.koordinator.theirs.laws import victims as literal

GIB = float(1 << 30)
CAPACITY = 16 * GIB
WEB = build.workload("web")
THRESHOLD, LOWER = 80, 75
SECONDS = 600
GOING_S = 5  # from an eviction to the end
COOL_S = 4  # koordlet's memoryEvictCoolTimeSeconds
DEEDS = {deed.value: Support(True, via="cgroup2") for deed in (Deed.RECLAIM, Deed.KILL)}


@dataclass
class Hog:
    workload: Workload
    size: float
    rate: float  # bytes a second
    rests_at: int  # second from which it shrinks
    going: int | None = None


@dataclass
class Machine:
    seed: int
    hogs: dict[TargetId, Hog] = field(default_factory=dict)
    web: float = 6 * GIB
    evicted: int = 0
    protected_kills: int = 0
    kills: int = 0  # of anybody, for want of memory

    def __post_init__(self) -> None:
        chance = random.Random(self.seed)
        for n in range(chance.randint(3, 6)):
            w = replace(build.workload(f"hog{n}"), priority=chance.choice([5000, 5500, 5999]))
            size, rate = chance.uniform(0.3, 1.2) * GIB, chance.uniform(0.002, 0.03) * GIB
            self.hogs[w.target] = Hog(w, size, rate, chance.randint(30, 240))

    @property
    def used(self) -> float:
        return self.web + sum(h.size for h in self.hogs.values())

    def second(self, now: int, frozen: set[TargetId], slowed: set[TargetId], reclaimed: dict[TargetId, float]) -> None:
        for target, hog in list(self.hogs.items()):
            if hog.going is not None and now - hog.going >= GOING_S:
                del self.hogs[target]
                continue
            grows = hog.rate if now < hog.rests_at else -hog.rate
            pace = 0.0 if target in frozen or hog.going is not None else 0.1 if target in slowed and grows > 0 else 1.0
            cold = min(reclaimed.get(target, 0.0), 0.01 * hog.size)
            hog.size = max(0.2 * GIB, hog.size + grows * pace - cold)
        while self.used > CAPACITY:
            largest = max(self.hogs.values(), key=lambda h: h.size, default=None)
            if largest is None or largest.size < self.web:
                self.protected_kills += 1
                return
            del self.hogs[largest.workload.target]
            self.kills += 1

    def ask(self, target: TargetId, now: int) -> None:
        if self.hogs[target].going is None:
            self.hogs[target].going = now
            self.evicted += 1

    def snapshot(self, now: int, done: dict[tuple[Deed, TargetId], float]) -> Snapshot:
        readings = {(t, "memory.current"): h.size for t, h in self.hogs.items()}
        readings[NODE, "memory.working_set"] = self.used
        readings[NODE, "memory.pressure"] = max(0.0, (self.used / CAPACITY - 0.85) * 5)
        workloads = [replace(h.workload, leaving=h.going is not None) for h in self.hogs.values()]
        entitled = [
            *(build.entitlement(w, tier="besteffort") for w in workloads),
            build.entitlement(WEB, tier="sensitive"),
        ]
        snap = build.snapshot(
            *entitled,
            workloads=[*workloads, WEB],
            readings=readings,
            on=build.node(cpus=8, memory="16Gi"),
            now=float(now),
            wall=build.WALL + now,
        )
        marks = {"thresholdPercent": THRESHOLD, "lowerPercent": LOWER}
        said = build.strategy("s", {"eviction": {"memory": marks, "mode": "enforce", "perMinute": 60}})
        return replace(snap, strategy=said.spec, support=snap.support | DEEDS, done=dict(done))


def ours(seed: int) -> Machine:
    machine, controller, done = Machine(seed), Eviction(Eviction.Config()), dict[tuple[Deed, TargetId], float]()
    for now in range(SECONDS):
        snap = machine.snapshot(now, done)
        proposals = list(controller.propose(snap))
        admitted = admit(controller.act(snap), snap, (), 60).actions
        assert all(p.setting.target in machine.hogs for p in proposals)
        assert all(a.target in machine.hogs for a in admitted)
        for action in admitted:
            if action.deed is Deed.EVICT:
                machine.ask(action.target, now)
                done[action.what] = snap.wall
        frozen = {p.setting.target for p in proposals if p.setting.knob == "cgroup.freeze"}
        slowed = {p.setting.target for p in proposals if p.setting.knob == "memory.high"}
        machine.second(now, frozen, slowed, {a.target: a.amount for a in admitted if a.deed is Deed.RECLAIM})
    return machine


def theirs(seed: int) -> Machine:
    machine, last = Machine(seed), -COOL_S
    for now in range(SECONDS):
        release = evict.usage_release(int(CAPACITY), int(machine.used), THRESHOLD, LOWER)
        if release and now - last >= COOL_S:
            pods = [
                literal.Candidate(
                    t, {"memory": int(h.size)}, h.workload.priority, used=int(h.size), leaving=h.going is not None
                )
                for t, h in machine.hogs.items()
            ]
            for target in literal.evict(literal.by_memory(pods), {"memory": release}).victims:
                machine.ask(TargetId(target), now)
                last = now
        machine.second(now, set(), set(), {})
    return machine


@pytest.mark.parametrize("seed", range(20))
def test_nobody_protected_is_killed_and_no_more_have_to_go(seed: int) -> None:
    mine, literal_law = ours(seed), theirs(seed)
    assert mine.protected_kills == mine.kills == 0
    assert mine.evicted <= literal_law.evicted


def test_in_all_fewer_have_to_go() -> None:
    mine, literal_law = (sum(law(seed).evicted for seed in range(20)) for law in (ours, theirs))
    assert mine < literal_law
