"""Mixes of workloads on a simulated machine: one that is watched, ten others, and in some an antagonist among those.

Every second each of them asks for CPU time, in a way of its own with noise. What there is is shared fairly; the one
that is watched waits for what it does not get, and for its turn on a busy machine. Memory fills up as it is taken.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from j10ce.control.interference.interference import Interference
from j10ce.model.kinds import Tier
from j10ce.model.knob import TargetId
from j10ce.model.parts.strategy import InterferenceSection, Strategy
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement
from j10ce.observe.series import SeriesBook
from j10ce.testing.build import entitlement, node, snapshot, workload

CPUS: Final = 8
MEMORY: Final = 16 << 30
SUSPECTS: Final = 10
QUIET_S: Final = 90
NAMED_S: Final = 30.0
VICTIM: Final = workload("victim")
OTHERS: Final = [workload(f"w{n}") for n in range(SUSPECTS)]
Kind = Literal["none", "step", "ramp", "pulse", "noisy", "memory", "own load", "threads"]
ATTACKS: Final[tuple[Kind, ...]] = ("step", "ramp", "pulse", "noisy", "memory")
QUIETS: Final[tuple[Kind, ...]] = ("none", "own load", "threads")
Demand = Callable[[int], float]


class Mix(NamedTuple):
    seed: int
    kind: Kind


def attacks(count: int) -> list[Mix]:
    return [Mix(seed, ATTACKS[seed % len(ATTACKS)]) for seed in range(count)]


def quiet_ones(count: int) -> list[Mix]:
    return [Mix(1000 + seed, QUIETS[seed % len(QUIETS)]) for seed in range(count)]


class Machine:
    """One mix, second by second."""

    def __init__(self, mix: Mix) -> None:
        self.random = random.Random(mix.seed)
        self.mix = mix
        self.antagonist = OTHERS[self.random.randrange(SUSPECTS)].target
        self.begins = QUIET_S + self.random.randrange(30)
        self.book = SeriesBook()
        self.suffers_since = math.inf
        self.cap = math.inf  # CPUs that the antagonist may use
        self.harmless = False  # then what it uses is not why the one that is watched waits
        self._demands = {w.target: self._habit() for w in OTHERS}
        self._size = self.random.uniform(4.0, 9.0)  # CPUs that the antagonist wants
        self._speed = self.random.uniform(100, 400) * (1 << 20)  # bytes that it takes a second
        self._memory = {w.target: self.random.uniform(0.3, 1.2) * (1 << 30) for w in (*OTHERS, VICTIM)}
        self._waited: list[tuple[float, float]] = []

    def _habit(self) -> Demand:
        """What one of the others asks for: 0.1 to 0.6 CPUs, in one of four ways."""
        level, period, phase = self.random.uniform(0.1, 0.6), self.random.uniform(15, 120), self.random.uniform(0, 120)
        ways: tuple[Demand, ...] = (
            lambda t: level,
            lambda t: level * (1 + 0.8 * math.sin(2 * math.pi * (t + phase) / period)),
            lambda t: level * (1.8 if (t + phase) % period < period / 3 else 0.3),
            lambda t: level * (0.5 + ((t + phase) % 300) / 300),
        )
        return self.random.choice(ways)

    def _attack(self, t: int) -> float:
        since = t - self.begins
        if since < 0 or self.mix.kind not in ("step", "ramp", "pulse", "noisy"):
            return 0.0
        shape = {
            "step": 1.0,
            "ramp": min(1.0, since / 10),
            "pulse": 1.0 if since % 10 < 6 else 0.1,
            "noisy": self.random.uniform(0.5, 1.3),
        }
        return self._size * shape[self.mix.kind]

    def second(self, t: int) -> None:
        wants = {target: max(0.0, self._noisy(habit(t), 0.15)) for target, habit in self._demands.items()}
        wants[self.antagonist] += self._attack(t)
        own = 4.5 if self.mix.kind == "own load" and t >= self.begins and t % 40 < 25 else 1.0
        wants[VICTIM.target] = max(0.05, self._noisy(own, 0.1))
        wants[self.antagonist] = min(wants[self.antagonist], self.cap)
        gets = shared(wants, CPUS)
        busy = min(1.0, math.fsum(wants.values()) / CPUS)
        waits = max(1 - gets[VICTIM.target] / wants[VICTIM.target], 0.6 * busy**8)
        if self.harmless and t >= self.begins:
            waits = 0.6
        if self.mix.kind == "threads":  # its own threads wait for each other, as they always do
            waits += 0.25
        self._waited.append((self._share(waits), self._share(self._take_memory(t))))
        self._record(t, gets)

    def _take_memory(self, t: int) -> float:
        """How long the one that is watched waits for memory."""
        for target in self._memory:
            self._memory[target] *= 1 + self.random.gauss(0, 0.002)
        free = MEMORY * 0.97 - math.fsum(self._memory.values())
        if self.mix.kind == "memory" and t >= self.begins:
            self._memory[self.antagonist] += min(max(0.0, free), self._speed)
        return 0.4 if free < 0.01 * MEMORY else 0.0

    def _record(self, t: int, gets: dict[TargetId, float]) -> None:
        now = float(t)
        for target, cpus in gets.items():
            self.book.add(now, target, "cpu.usage", cpus)
            self.book.add(now, target, "memory.current", self._memory[target])
        if t % 2 == 0:
            cpu, memory = (math.fsum(part) / len(part) for part in zip(*self._waited, strict=True))
            self.book.add(now, VICTIM.target, "cpu.pressure", cpu)
            self.book.add(now, VICTIM.target, "memory.pressure", memory)
            self._waited.clear()
            if t >= self.begins and max(cpu, memory) >= 0.3:
                self.suffers_since = min(self.suffers_since, now)

    def _noisy(self, value: float, part: float) -> float:
        return value * (1 + self.random.gauss(0, part))

    def _share(self, value: float) -> float:
        return min(1.0, max(0.0, value + self.random.gauss(0, 0.015)))

    def snapshot(self, t: int, mode: Literal["off", "observe", "act"] = "observe") -> Snapshot:
        snap = snapshot(
            *ENTITLED, workloads=(VICTIM, *OTHERS), on=node(CPUS, "16Gi"), readings=self.book.at(float(t)), now=float(t)
        )
        return replace(snap, strategy=Strategy(interference=InterferenceSection(mode=mode)))


ENTITLED: Final[tuple[Entitlement, ...]] = (
    entitlement(VICTIM, tier=Tier.SENSITIVE.value),
    *(entitlement(w, tier=(Tier.STANDARD if n % 2 else Tier.BESTEFFORT).value) for n, w in enumerate(OTHERS)),
)


def shared(wants: dict[TargetId, float], capacity: float) -> dict[TargetId, float]:
    """Nobody gets more than it wants, and nobody less than another that wants more gets."""
    gets, left = {}, capacity
    for n, (target, want) in enumerate(sorted(wants.items(), key=lambda item: item[1])):
        gets[target] = min(want, left / (len(wants) - n))
        left -= gets[target]
    return gets


class Outcome(NamedTuple):
    """What the controller said of one mix."""

    mix: Mix
    named: str  # first, ever
    right: bool
    after_s: float  # since the one that is watched suffered


def judged(mix: Mix, controller: Interference) -> Outcome:
    """Until somebody is named, or for three minutes."""
    machine = Machine(mix)
    for t in range(machine.begins + 90):
        machine.second(t)
        list(controller.propose(machine.snapshot(t)))
        if controller.seen:
            first = controller.seen[0]
            right = f"workload/{first.antagonist}" == machine.antagonist
            return Outcome(mix, first.antagonist, right, t - machine.suffers_since)
    return Outcome(mix, "", right=False, after_s=math.inf)
