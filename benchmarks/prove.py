"""`prove` itself: is its load the same as benchmarks/service.c, and does what it shows reach the goals?

    python -m benchmarks.prove [SCENARIO…]

The load: p99 of both alone, in turns, in the fair class and under SCHED_FIFO. The goals: scenarios as a user runs
them, with more rounds, and with those arms that a goal is about. Where the ceiling is hardly better than alone, real
time is compared with the ceiling only.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from benchmarks.facts import machine_facts
from benchmarks.latency import compile_service
from j10ce.bench.figures import of_rounds
from j10ce.bench.layouts.layout import AsTheyAre
from j10ce.bench.measure import measure
from j10ce.bench.report.text import drawn
from j10ce.bench.run import run
from j10ce.bench.scenarios import NO_QOS, SCENARIOS
from j10ce.bench.taken import ALONE, Arm, Load
from j10ce.bench.verdict import Proof
from j10ce.cli.client import Client
from j10ce.cli.prove.watching import ProgressLine
from j10ce.errors import Unsupported

ROUNDS = int(os.environ.get("J10CE_BENCH_ROUNDS", "7"))
SECONDS = 4.0
MOST_APART = 0.10
ABOUT = {ALONE, NO_QOS, "ls", "realtime", "ceiling"}  # arms that a goal, or the picture of it, is about
MOST_ROUNDS = {"diurnal": 3}  # of twenty seconds each
WIDTH = 100
MET, MISSED = "met ", "MISSED"


class Goal(NamedTuple):
    says: str
    got: float
    met: bool


def main() -> int:
    machine_facts()
    wanted = sys.argv[1:] or [*GOALS]
    met = [shown(loads())] if not sys.argv[1:] else []
    for name in wanted:
        scenario = SCENARIOS[name]
        arms = scenario.arms if name == "cpu" else [arm for arm in scenario.arms if arm.name in ABOUT]
        rounds = min(ROUNDS, MOST_ROUNDS.get(name, ROUNDS))
        try:
            proof = run(
                replace(scenario, arms=arms), rounds, max(SECONDS, scenario.seconds), ProgressLine(name), Client
            )
        except Unsupported as e:
            print(f"{name}: {e}")
            continue
        print(drawn(proof, WIDTH))
        met.append(shown(GOALS[name](proof)))
    return int(not all(met))


def shown(goals: Iterable[Goal]) -> bool:
    """Whether all are met."""
    made = [*goals]
    for goal in made:
        print(f"  {MET if goal.met else MISSED} {goal.says}: {goal.got:.2f}", flush=True)
    return all(goal.met for goal in made)


def loads() -> list[Goal]:
    scenario = SCENARIOS["cpu"]
    with tempfile.TemporaryDirectory(prefix="j10ce-bench-") as box:
        load, program = scenario.load(os.cpu_count() or 1, SECONDS), compile_service(Path(box))
        return [same_load(arm, load, program) for arm in (scenario.arms[0], scenario.arms[-1])]


def same_load(arm: Arm, load: Load, program: Path) -> Goal:
    """Without antagonists; under SCHED_FIFO hardly anything else that runs here matters."""
    solo = replace(arm, beside=False)
    theirs, ours = [], []
    for number in range(ROUNDS):
        theirs.append(in_c(solo, load, program, number))
        taken = measure(solo, load, AsTheyAre(), number, lambda *_: None)
        ours.append(of_rounds([taken.seconds], 0.99) * 1e3)
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"p99 {arm.name}: service.c {statistics.median(theirs):.2f} ms, prove {statistics.median(ours):.2f} ms")
    return Goal(
        f"{arm.name}, nobody beside it: prove's p99 ÷ service.c's within {MOST_APART:.0%}",
        ratio,
        abs(ratio - 1) <= MOST_APART,
    )


def in_c(arm: Arm, load: Load, program: Path, seed: int) -> float:
    """p99 in ms."""
    words = [program, f"{load.rate:.0f}", f"{load.seconds}", str(load.workers), str(load.cpu_us), str(seed)]
    words += ["fifo"] if arm.priority else []
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[1]) / 1e3


def goals_of(proof: Proof) -> Iterator[Goal]:
    lines = {line.arm: line for line in proof.lines}
    alone, ls, realtime, ceiling = (lines.get(name) for name in (ALONE, "ls", "realtime", "ceiling"))
    if not alone or not ls or not ls.ratio or not ls.ratio_p999:
        raise SystemExit("the service could not be measured alone and under ls")
    yield most("ls: p99 ÷ alone", ls.ratio.middle, 1.15)
    yield most("ls: p99.9 ÷ alone", ls.ratio_p999.middle, 1.25)
    yield least("ls: machine busy", ls.busy, 0.97)
    yield least("ls: best effort ÷ free", ls.filled or 0.0, 0.90)
    if realtime and realtime.ratio and realtime.ratio_p999 and ceiling and ceiling.ratio:
        yield most("realtime: p99 ÷ ceiling", realtime.p99 / ceiling.p99, 1.25)
        if ceiling.ratio.middle <= 0.6:
            yield most("realtime: p99 ÷ alone", realtime.ratio.middle, 0.75)
            yield most("realtime: p99.9 ÷ alone", realtime.ratio_p999.middle, 0.85)


def disturbed_goals(proof: Proof) -> Iterator[Goal]:
    """Beside those that the fair class cannot keep off."""
    realtime, ceiling = proof.line("realtime"), proof.line("ceiling")
    if realtime and realtime.ratio:
        denied = f" (the ceiling has {ceiling.ratio.middle:.2f})" if ceiling and ceiling.ratio else ""
        yield most(f"{proof.scenario}: realtime: p99 ÷ alone{denied}", realtime.ratio.middle, 1.0)


def diurnal_goals(proof: Proof) -> Iterator[Goal]:
    for name in ("ls", "realtime"):
        if (line := proof.line(name)) and line.above_slo:
            yield least(f"diurnal: {name}: machine busy", line.busy, 0.90)
            yield most(f"diurnal: {name}: seconds above the SLO", line.above_slo[0], 0)


def memory_goals(proof: Proof) -> Iterator[Goal]:
    alone, ls = proof.line(ALONE), proof.line("ls")
    if alone and ls and alone.served:
        yield least("memory: ls: requests served in time ÷ alone", ls.served / alone.served, 0.95)
        yield most("memory: ls: refaults more than alone", (ls.refaults or 0) - (alone.refaults or 0), 0)


def most(says: str, got: float, bar: float) -> Goal:
    return Goal(f"{says} ≤ {bar:.2f}", got, got <= bar)


def least(says: str, got: float, bar: float) -> Goal:
    return Goal(f"{says} ≥ {bar:.2f}", got, got >= bar)


GOALS: Mapping[str, Callable[[Proof], Iterator[Goal]]] = {
    "cpu": goals_of,
    "wakers": disturbed_goals,
    "forkers": disturbed_goals,
    "unmanaged": disturbed_goals,
    "diurnal": diurnal_goals,
    "memory": memory_goals,
}


if __name__ == "__main__":
    sys.exit(main())
