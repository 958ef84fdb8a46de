"""What observing costs: reading against naive reading of the same files, and how sample + snapshot grow.

Real cgroups under a name of their own, in every hierarchy in use, removed afterwards (root).
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.facts import machine_facts
from j10ce.host.files import HEADROOM, Files
from j10ce.host.handles import Layout
from j10ce.host.mounts import Hierarchies
from j10ce.model.knob import TargetId
from j10ce.model.workload import Handle, Part, Workload
from j10ce.observe.closely import MOST_VICTIMS
from j10ce.observe.groups import GroupTree
from j10ce.observe.observer import Observer
from j10ce.observe.sensors.cgroup import SLOW_EVERY, CgroupSensor
from j10ce.observe.sensors.node import NodeSensor, discover, refresh
from j10ce.observe.sensors.reclaim import ReclaimSensor
from j10ce.observe.sensors.run_queue import RunQueueSensor
from j10ce.observe.siblings import Siblings

GROWTH = (50, 200, 1000)
TIERS = ("sensitive", "standard", "besteffort")
LEAST_RATIO = 5.0
BUDGET_MS = 5.0  # sample + snapshot at 200 workloads
TICKS = 40
TOP = f"j10cebench-{os.getpid()}"

Workloads = dict[TargetId, Workload]


def main() -> int:
    machine_facts()
    if os.geteuid() != 0:
        print("making cgroups needs root", file=sys.stderr)
        return 1
    hierarchies = Hierarchies.discover()
    with cgroups(hierarchies, 200) as workloads:
        ratio = compare(hierarchies, workloads)
    print(f"\n{'workloads':>9} {'descriptors':>11} {'sample ms':>10} {'snapshot ms':>12} {'sum ms':>7} {'most ms':>8}")
    medians: dict[int, float] = {}
    for count in GROWTH:
        with cgroups(hierarchies, count) as workloads:
            medians[count] = grow(hierarchies, workloads, Files())
            if count == max(GROWTH):
                grow(hierarchies, workloads, Files(limit=1024 - HEADROOM))
    met = ratio >= LEAST_RATIO and medians[200] <= BUDGET_MS
    print(f"reads ≥ {LEAST_RATIO:g}× faster, 200 workloads ≤ {BUDGET_MS:g} ms CPU: {'met' if met else 'MISSED'}")
    return not met


def compare(hierarchies: Hierarchies, workloads: Workloads) -> float:
    """Ten samples, in which every file has its turn, against `Path.read_text` and a full parse of the same files."""
    files = RecordingFiles()
    sensor = CgroupSensor(hierarchies, files)
    clock = iter(range(1_000_000))

    def ours() -> None:
        for _ in range(SLOW_EVERY):
            sensor.sample(float(next(clock)), workloads.values())

    ours()
    files.paths.clear()
    ours()
    paths = list(files.paths)
    fast, slow = rounds_ms(ours), rounds_ms(lambda: [parse(Path(path).read_text()) for path in paths])
    ratio = slow / fast
    print(f"{len(paths)} reads of {len(workloads)} cgroups: {fast:.1f} ms, naive {slow:.1f} ms: {ratio:.1f}× faster")
    return ratio


class RecordingFiles(Files):
    def __init__(self) -> None:
        super().__init__()
        self.paths: list[str] = []

    def read(self, path: str) -> bytes | None:
        self.paths.append(path)
        return super().read(path)


def parse(text: str) -> dict[str, float]:
    """Any cgroup file into numbers by name, as one would write it first."""
    by_name: dict[str, float] = {}
    for line in text.splitlines():
        name, *rest = line.split()
        for field in rest or [name]:
            key, _, value = field.rpartition("=")
            by_name[f"{name}.{key}"] = float(value)
    return by_name


def grow(hierarchies: Hierarchies, workloads: Workloads, files: Files) -> float:
    """Print one row; returns the median milliseconds of sample + snapshot."""
    tree = GroupTree(Layout(hierarchies, files, TOP), Siblings(hierarchies))
    closely = frozenset(list(workloads)[:MOST_VICTIMS])  # as many as ever are
    sensors = (
        NodeSensor(files, hierarchies),
        CgroupSensor(hierarchies, files, tree.own, lambda: closely),
        RunQueueSensor(hierarchies, files, lambda: closely),
        ReclaimSensor(),
    )
    facts = discover("bench", hierarchies, files)
    observer = Observer(facts, sensors, tree, lambda known: refresh(known, hierarchies, files))
    sampled: list[float] = []
    shown: list[float] = []
    for tick in range(TICKS + SLOW_EVERY):
        sampled.append(cpu_ms(partial(observer.sample, float(tick), workloads.values())))
        shown.append(cpu_ms(partial(observer.snapshot, float(tick), 0.0, workloads, {}, {}, {})))
    sums = sorted(a + b for a, b in zip(sampled[SLOW_EVERY:], shown[SLOW_EVERY:], strict=True))
    median = statistics.median(sums)
    print(
        f"{len(workloads):9} {len(files):11} {statistics.median(sampled):10.2f} {statistics.median(shown):12.2f} "
        f"{median:7.2f} {sums[-1]:8.2f}"
    )
    files.close()
    return median


def rounds_ms(run: Callable[[], object]) -> float:
    return statistics.median(cpu_ms(run) for _ in range(7))


def cpu_ms(run: Callable[[], object]) -> float:
    """CPU time of this thread: neighbours on the machine do not count."""
    begun = time.thread_time()
    run()
    return (time.thread_time() - begun) * 1e3


@contextmanager
def cgroups(hierarchies: Hierarchies, count: int) -> Iterator[Workloads]:
    """Workloads in their tiers, each with one part: two levels of cgroups."""
    made: list[str] = []

    def make(path: str) -> str:
        for controller in hierarchies.in_use():
            directory = hierarchies.directory(controller, path)
            os.mkdir(directory)
            made.append(directory)
        return path

    try:
        for path in (TOP, *(f"{TOP}/{tier}" for tier in TIERS)):
            make(path)
        by_name: Workloads = {}
        for n in range(count):
            path = make(f"{TOP}/{TIERS[n % 3]}/default_w{n}")
            part = Part("main", Handle(make(f"{path}/main"), made=False))
            w = Workload("default", f"w{n}", handle=Handle(path), parts=(part,))
            by_name[w.target] = w
        yield by_name
    finally:
        for directory in reversed(made):
            os.rmdir(directory)


if __name__ == "__main__":
    sys.exit(main())
