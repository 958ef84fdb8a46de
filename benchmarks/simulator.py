"""What a simulated cluster takes: an hour of the published experiment, and a day of 5,000 nodes with a million pods.

    python -m benchmarks simulator
    python -m benchmarks.simulator 100000        so many pods, in a share of the day

Time is CPU time of this process. Pods of the day come at random, one owner each, run for two hours in the mean and ask
for 1.5 CPUs in the mean: about four fifths of what there is.
"""

from __future__ import annotations

import csv
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from benchmarks.facts import machine_facts
from j10ce.sim.cluster.given.source import read_scenario
from j10ce.sim.cluster.given.trace import Trace
from j10ce.sim.cluster.outcome import RunResult
from j10ce.sim.cluster.simulate import Subject, compared

PODS, NODES, DAY_S = 1_000_000, 5_000, 86_400
HOUR_BAR_S, DAY_BAR_S = 1.0, 300.0
EXAMPLE: Final = Path("examples/sim/validation-1.yaml")
CLUSTER: Final = f"""
name: day
horizon: {{lasts}}
classes: {{{{}}}}
nodes: [{{{{name: n, count: {NODES}, cpu: 32, memory: 128Gi}}}}]
"""
SLOS: Final = ("0.5", "0.9", "0.99", "1.0")


def main() -> int:
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else PODS
    machine_facts()
    _, hour_s = timed(lambda: run(Subject(read_scenario(EXAMPLE.name, EXAMPLE.read_bytes()))))
    print(f"validation 1, an hour, lazy: {hour_s:.2f} s (bar {HOUR_BAR_S:g})", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        subject = day(Path(folder) / "trace.csv", pods)
        result, day_s = timed(lambda: run(subject))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{NODES:,} nodes, {result.totals['starts']:,.0f} starts, utilisation {result.totals['utilisation']:.2f}")
    print(f"{DAY_S * pods / PODS:,.0f} s of a cluster in {day_s:.0f} s (bar {DAY_BAR_S * pods / PODS:g}); {peak} MiB")
    missed = hour_s > HOUR_BAR_S or day_s > DAY_BAR_S * pods / PODS
    print("MISSED" if missed else "met")
    return missed


def run(subject: Subject) -> RunResult:
    (outcome,) = compared(subject, ["lazy"], [1], [], lambda _: None)
    return outcome.runs[0]


def timed(work: Callable[[], RunResult]) -> tuple[RunResult, float]:
    began = time.process_time()
    result = work()
    return result, time.process_time() - began


def day(trace: Path, pods: int) -> Subject:
    rng, lasts = random.Random(1), DAY_S * pods / PODS
    with trace.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("arrival", "duration", "cpu", "memory", "class", "slo"))
        for at in sorted(rng.uniform(0.0, lasts) for _ in range(pods)):
            slo = rng.choice(SLOS)
            runs = rng.expovariate(1 / 7200.0) + 1.0
            cpu = rng.choice(("500m", "1", "2", "2500m"))
            rows.writerow((f"{at:.3f}", f"{runs:.1f}", cpu, rng.choice(("1Gi", "2Gi", "4Gi")), f"slo-{slo}", slo))
    nodes = (
        f"name: day\nhorizon: {lasts:g}s\nclasses: {{}}\nnodes: [{{name: n, count: {NODES}, cpu: 32, memory: 128Gi}}]\n"
    )
    scenario = read_scenario("day", nodes.encode())
    read = Trace(trace, scenario.classes)
    return Subject(replace(scenario, classes=read.extent().classes), read.arrivals)


if __name__ == "__main__":
    sys.exit(main())
