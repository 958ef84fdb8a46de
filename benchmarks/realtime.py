"""The real-time floor: a service alone, and beside eight CPU hogs that nobody manages: as a fair workload, real-time
within a floor above its demand, with a floor below it, and under SCHED_FIFO. And what the keeper costs.

Arms take turns in each round; ratios are of one round's alone, their medians over the rounds are shown.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.facts import machine_facts
from benchmarks.latency import (
    CPU,
    CPU_US,
    HOGS,
    LOAD,
    QUIET,
    SECONDS,
    THREADS,
    Round,
    Wrap,
    compile_service,
    measure,
    plain,
)
from benchmarks.latency import agent as running_agent
from j10ce.kernel.realtime import wire
from j10ce.kernel.realtime.law import TICK_S
from j10ce.kernel.realtime.machine import WardPlace

ROUNDS = int(os.environ.get("J10CE_BENCH_ROUNDS", "7"))
WORKLOADS, EACH, COST_S = 20, 10, 10.0
ABOVE, BELOW = 0.70, 0.30  # floors, of all CPUs
WAITS = "import threading; [threading.Thread(target=threading.Event().wait).start() for _ in range({})]"
BUSY = """
import threading, time
def work():
    while True:
        time.sleep(0.01)
        sum(range(500))
for _ in range({}): threading.Thread(target=work).start()
"""
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> int:
    machine_facts()
    cpus = os.cpu_count() or 1
    rate = cpus * LOAD * 1e6 / CPU_US
    print(f"service: {rate:.0f} requests/s, {THREADS} threads; {HOGS} unmanaged hogs; {ROUNDS} rounds of {SECONDS} s")
    results: dict[str, list[Round]] = {}
    with tempfile.TemporaryDirectory(prefix="j10ce-bench-") as box, running_agent(Path(box)):
        program = compile_service(Path(box))
        for number in range(ROUNDS):
            command = [str(program), f"{rate:.0f}", f"{SECONDS}", str(THREADS), str(CPU_US), str(number)]
            arms: dict[str, tuple[list[str], Wrap | None]] = {
                "alone": (command, None),
                "fair": (command, under("ls")),
                "real-time": (command, under("realtime", ABOVE * cpus)),
                "floor below demand": (command, under("realtime", BELOW * cpus)),
                "SCHED_FIFO": ([*command, "fifo"], plain),
            }
            for name, (service, wrap) in arms.items():
                results.setdefault(name, []).append(measure(service, wrap, number))
    return report(results) | cost()


def under(profile: str, floor: float = 0.0) -> Wrap:
    """The service by us, the hogs by nobody."""
    minimum = ["--min-cpu", f"{1000 * floor:.0f}m", "--best-effort-minimum"] if floor else []

    def wrap(command: list[str], is_service: bool, number: int) -> list[str]:
        if not is_service:
            return command
        start = [sys.executable, "-m", "j10ce.cli.main", "run", "-q", "--profile", profile, *minimum]
        return [*start, "--name", f"service-{number}", "--", *command]

    return wrap


def report(results: dict[str, list[Round]]) -> bool:
    """Whether a goal is missed."""
    alone, ratios = results["alone"], {}
    print(f"{'arm':<20}{'p50 ms':>9}{'p99 ms':>9}{'p99.9 ms':>10}{'p99 ÷ alone':>13}{'p99.9 ÷ alone':>15}{'busy':>7}")
    for name, rounds in results.items():
        p50, p99, p999, busy = (statistics.median(r[i] for r in rounds) for i in range(4))
        of = [statistics.median(r[i] / a[i] for r, a in zip(rounds, alone, strict=True)) for i in (1, 2)]
        ratios[name] = of
        print(
            f"{name:<20}{p50 / 1e3:>9.2f}{p99 / 1e3:>9.2f}{p999 / 1e3:>10.2f}{of[0]:>13.2f}{of[1]:>15.2f}{busy:>7.0%}"
        )
    ours, fifo = ratios["real-time"], ratios["SCHED_FIFO"]
    goals = [("p99 ÷ SCHED_FIFO's ≤ 1.25", ours[0] / fifo[0], 1.25)]
    if fifo[0] <= 0.6:
        goals += [("p99 ÷ alone ≤ 0.75", ours[0], 0.75), ("p99.9 ÷ alone ≤ 0.85", ours[1], 0.85)]
    goals.append(("floor below demand: p99 ÷ fair ≤ 1.25", ratios["floor below demand"][0] / ratios["fair"][0], 1.25))
    for goal, got, most in goals:
        print(f"  {'met ' if got <= most else 'MISSED'} {goal}: {got:.2f}")
    return any(got > most for _, got, most in goals)


def cost() -> bool:
    """Of a keeper with twenty workloads of ten threads, at rest and with all of them at work."""
    missed = False
    for name, code, most in (("at rest", WAITS, 0.01), ("all at work", BUSY, 0.03)):
        with workloads(code) as places:
            share, memory = watched(places)
        print(f"keeper, {WORKLOADS} workloads of {EACH} threads {name}: {share:.2%} of a core, {memory / 1024:.1f} MiB")
        missed |= share > most or memory > 18 << 10
    print(f"  {'MISSED' if missed else 'met '} at most 1 % at rest, 3 % at work, 18 MiB")
    return missed


@contextlib.contextmanager
def workloads(code: str) -> Iterator[list[WardPlace]]:
    accounts = CPU.parent / "cpuacct" if (CPU.parent / "cpuacct").is_dir() else CPU
    names = [f"j10ce-bench-{os.getpid()}-{n}" for n in range(WORKLOADS)]
    folders = [root / name for name in names for root in dict.fromkeys((CPU, accounts))]
    for folder in folders:
        folder.mkdir()
    children = []
    try:
        for name in names:
            child = subprocess.Popen([sys.executable, "-S", "-c", code.format(EACH - 1)], **QUIET)
            children.append(child)
            for root in dict.fromkeys((CPU, accounts)):
                (root / name / "cgroup.procs").write_text(str(child.pid))
        time.sleep(1.0)  # until their threads run
        yield [place(CPU / name, accounts / name) for name in names]
    finally:
        for child in children:
            child.kill()
            child.wait()
        time.sleep(0.1)
        for folder in folders:
            folder.rmdir()


def place(cpu: Path, accounts: Path) -> WardPlace:
    if (cpu / "tasks").exists():
        (cpu / "cpu.rt_runtime_us").write_text("20000") if (cpu / "cpu.rt_runtime_us").exists() else None
        return WardPlace(str(cpu), "tasks", f"{accounts}/cpuacct.usage", f"{accounts}/cpuacct.usage_percpu")
    return WardPlace(str(cpu), "cgroup.threads", f"{cpu}/cpu.stat")


def watched(places: list[WardPlace]) -> tuple[float, int]:
    """Its share of a core, and KiB in memory."""
    ours, theirs = wire.pair()
    command = [sys.executable, "-m", "j10ce.kernel.realtime.keeper", str(theirs.fileno())]
    keeper = subprocess.Popen(command, pass_fds=[theirs.fileno()])
    over = threading.Event()
    beats = threading.Thread(target=lambda: [wire.send(ours, wire.BEAT) for _ in iter(lambda: over.wait(TICK_S), True)])
    beats.start()
    try:
        for here in places:
            wire.send(ours, wire.KEEP, here.top, "0.07", "0.9", *here)
        time.sleep(1.0)
        before, begun = cpu_s(keeper.pid), time.monotonic()
        time.sleep(COST_S)
        share = (cpu_s(keeper.pid) - before) / (time.monotonic() - begun)
        status = Path(f"/proc/{keeper.pid}/status").read_text().splitlines()
        return share, next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    finally:
        over.set()
        beats.join()
        ours.close()
        keeper.wait(10)


def cpu_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


if __name__ == "__main__":
    sys.exit(main())
