"""A whole run: rounds in which every arm has its turn, on a machine that is as it was when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Final, NamedTuple, Protocol

from j10ce.bench import machine
from j10ce.bench.layouts.boxed import Boxed
from j10ce.bench.layouts.layout import AsTheyAre, Attended, Crowd, Seating
from j10ce.bench.layouts.ours import Connect, OwnAgent, UnderProfile, cost
from j10ce.bench.layouts.pods import KubePods, MadeGroups
from j10ce.bench.layouts.suppressed import Suppressing
from j10ce.bench.measure import Places, measure
from j10ce.bench.scenarios import Contest
from j10ce.bench.scratch import Scratch, Tidied
from j10ce.bench.stages.box import box
from j10ce.bench.stages.disk import disk
from j10ce.bench.stages.link import linked
from j10ce.bench.stages.redis import driven
from j10ce.bench.stages.stage import Scene, Staging
from j10ce.bench.taken import ALONE, Arm, Missing, Taken
from j10ce.bench.verdict import Proof, judge
from j10ce.errors import QosError
from j10ce.policy.profiles import builtin

STAGES: Final[Mapping[str, Staging]] = {
    "": lambda scratch: nullcontext(Scene()),
    "link": linked,
    "disk": disk,
    "box": box,
    "redis": driven,
}


class Audience(Protocol):
    """Who watches a run."""

    def begin(self, arm: Arm, turn: int, turns: int) -> None: ...
    def second(self, arm: Arm, number: int, latencies: Sequence[float]) -> None: ...
    def end(self, arm: Arm, taken: Taken) -> None: ...


class Turn(NamedTuple):
    arm: Arm
    round: int


def turns(scenario: Contest, rounds: int) -> Iterator[Turn]:
    """Every arm in each round, every other round backwards: who comes late in one comes early in the next."""
    for number in range(rounds):
        for arm in reversed(scenario.arms) if number % 2 else scenario.arms:
            yield Turn(arm, number)


def run(scenario: Contest, rounds: int, seconds: float, audience: Audience, connect: Connect) -> Proof:
    """Raises QosError where the service cannot be measured at all."""
    load = scenario.load(machine.cpus(), seconds)
    taken: dict[str, list[Taken]] = {}
    staging = STAGES[scenario.stage]
    missing = {arm.name: why for arm in scenario.arms if (why := unavailable(arm))}
    ahead = [turn for turn in turns(scenario, rounds) if turn.arm.name not in missing]
    with Tidied() as scratch, staging(scratch) as stage:
        layouts = Layouts(scratch, connect, scenario, stage)
        places = Places(stage.service, stage.antagonists, stage.used_s)
        for n, (arm, number) in enumerate(ahead):
            if arm.name in missing:
                continue
            audience.begin(arm, n, len(ahead))
            layout, meter = layouts.of(arm)
            try:
                one = measure(arm, load, layout, number, lambda *s, arm=arm: audience.second(arm, *s), meter, places)
            except QosError as e:
                if arm.name == ALONE or arm.name in taken:
                    raise
                missing[arm.name] = str(e)
                continue
            taken.setdefault(arm.name, []).append(one)
            audience.end(arm, one)
    lines, noise = judge(scenario.arms, taken)
    return Proof(
        scenario=scenario.name, asks=scenario.asks, machine=machine.described(), rounds=rounds, load=load, lines=lines,
        missing=[Missing(name, why) for name, why in missing.items()], noise=noise,
    )  # fmt: skip


def unavailable(arm: Arm) -> str:
    """Why this version has no such arm; empty where it has."""
    if arm.role != "ours" or any(profile.metadata.name == arm.name for profile in builtin()):
        return ""
    return f"this version has no profile {arm.name}"


Meter = Callable[[], tuple[float, float]] | None


class Layouts:
    """The layout of each arm, and how our cost is read where there is one."""

    def __init__(self, scratch: Scratch, connect: Connect, scenario: Contest, stage: Scene) -> None:
        self._scratch, self._stage = scratch, stage
        self._agent = OwnAgent(scratch, connect, stage.strategy)
        self._cpus, self._peak = machine.cpus(), scenario.peak * machine.cpus()
        self._floor = scenario.floor * self._cpus

    def of(self, arm: Arm) -> tuple[Seating, Meter]:
        ours = arm.role == "ours"
        return self._boxed(arm, ours=ours) if self._stage.limit else self._seating(arm, ours=ours), (
            (lambda: cost(self._agent)) if ours else None
        )

    def _boxed(self, arm: Arm, *, ours: bool) -> Seating:
        agent = self._agent if ours else None
        return Boxed(self._scratch.box, self._stage, agent, arm.name)

    def _seating(self, arm: Arm, *, ours: bool) -> Seating:
        if ours:
            return UnderProfile(self._agent, arm.name, self._floor, self._stage.promised)
        match arm.name:
            case "kubernetes":
                return KubePods(self._scratch.pods, self._cpus, self._floor)
            case "koordinator":
                return KubePods(self._scratch.pods, self._cpus, self._floor, self._suppressing)
            case _:
                return AsTheyAre()

    def _suppressing(self, groups: MadeGroups, besteffort: str, crowd: Crowd) -> Attended:
        return Suppressing(groups, besteffort, crowd, self._peak)
