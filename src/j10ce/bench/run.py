"""A whole run: rounds in which every arm has its turn, on a machine that is as it was when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from j10ce.bench import machine
from j10ce.bench.layouts.layout import AsTheyAre, Attended, Crowd, Seating
from j10ce.bench.layouts.ours import Connect, OwnAgent, UnderProfile, cost
from j10ce.bench.layouts.pods import KubePods, MadeGroups
from j10ce.bench.layouts.suppressed import Suppressing
from j10ce.bench.measure import measure
from j10ce.bench.scenarios import Contest
from j10ce.bench.scratch import Scratch, Tidied
from j10ce.bench.taken import ALONE, Arm, Missing, Taken
from j10ce.bench.verdict import Proof, judge
from j10ce.errors import QosError
from j10ce.policy.profiles import builtin


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
    missing = {arm.name: why for arm in scenario.arms if (why := unavailable(arm))}
    ahead = [turn for turn in turns(scenario, rounds) if turn.arm.name not in missing]
    with Tidied() as scratch, _layouts(scratch, connect, scenario) as layouts:
        for n, (arm, number) in enumerate(ahead):
            if arm.name in missing:
                continue
            audience.begin(arm, n, len(ahead))
            layout, meter = layouts(arm)
            try:
                one = measure(arm, load, layout, number, lambda *s, arm=arm: audience.second(arm, *s), meter)
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


@contextmanager
def _layouts(scratch: Scratch, connect: Connect, scenario: Contest) -> Iterator[Callable[[Arm], tuple[Seating, Meter]]]:
    """The layout of each arm, and how our cost is read where there is one."""
    cpus = machine.cpus()
    agent = OwnAgent(scratch, connect)
    floor = scenario.floor * cpus

    def suppressing(groups: MadeGroups, besteffort: str, crowd: Crowd) -> Attended:
        return Suppressing(groups, besteffort, crowd, scenario.peak * cpus)

    others: Mapping[str, Seating] = {
        "kubernetes": KubePods(scratch.pods, cpus, floor),
        "koordinator": KubePods(scratch.pods, cpus, floor, suppressing),
    }

    def chosen(arm: Arm) -> tuple[Seating, Meter]:
        if arm.role == "ours":
            return UnderProfile(agent, arm.name, floor), lambda: cost(agent)
        return others.get(arm.name, AsTheyAre()), None

    yield chosen
