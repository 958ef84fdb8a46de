"""A latency-sensitive service beside eight CPU hogs: alone, unmanaged, with Kubernetes' shares, with us, and a ceiling.

All arms take turns in each round, so that whatever else the machine does meets them alike; the figures are medians
over the rounds. `ours` is the product as a user runs it: an agent, `run --profile ls`, and `run --profile be`.

`python -m benchmarks.latency docs/images/protection.json` also writes the medians to that file. `make generate` draws
the picture from it, and writes the numbers of README.md and docs/numbers.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.facts import machine_facts

ROUNDS = int(os.environ.get("J10CE_BENCH_ROUNDS", "5"))
SECONDS = 6.0
THREADS, CPU_US, HOGS, LOAD = 8, 400, 8, 0.60
HOG = [sys.executable, "-S", "-c", "while True: pass"]
CPU = Path("/sys/fs/cgroup/cpu") if Path("/sys/fs/cgroup/cpu").is_dir() else Path("/sys/fs/cgroup")


class Round(NamedTuple):
    p50: float
    p99: float
    p999: float
    busy: float


Wrap = Callable[[list[str], bool, int], list[str]]  # (command, is the service, number) -> command to start


def main() -> int:
    machine_facts()
    rate = os.cpu_count() * LOAD * 1e6 / CPU_US
    print(f"service: {rate:.0f} requests/s, {THREADS} threads, {CPU_US} µs each = {LOAD:.0%} of the machine")
    print(f"beside {HOGS} hogs; {ROUNDS} rounds of {SECONDS:.0f} s each, all arms in turn")
    results: dict[str, list[Round]] = {}
    with tempfile.TemporaryDirectory(prefix="j10ce-bench-") as box, agent(Path(box)) as ours, kube() as shares:
        program = compile_service(Path(box))
        for number in range(ROUNDS):
            command = [str(program), f"{rate:.0f}", f"{SECONDS}", str(THREADS), str(CPU_US), str(number)]
            arms: dict[str, tuple[list[str], Wrap | None]] = {
                "alone": (command, None), "no QoS": (command, plain), "kubernetes": (command, shares),
                "ours": (command, ours), "ceiling": ([*command, "fifo"], plain),
            }  # fmt: skip
            for name, (service, wrap) in arms.items():
                results.setdefault(name, []).append(measure(service, wrap, number))
    for path in sys.argv[1:]:
        Path(path).write_text(json.dumps(kept(results), indent=2) + "\n")
    return report(results)


def measure(service: list[str], wrap: Wrap | None, number: int) -> Round:
    hogs = [subprocess.Popen(wrap(HOG, False, i), **QUIET) for i in range(HOGS)] if wrap else []
    before = busy_and_total()
    try:
        out = subprocess.run((wrap or plain)(service, True, number), capture_output=True, text=True, check=True).stdout
    finally:
        after = busy_and_total()
        for hog in hogs:
            hog.terminate()
        for hog in hogs:
            hog.wait()
    p50, p99, p999, _ = map(float, out.split())
    return Round(p50, p99, p999, (after[0] - before[0]) / (after[1] - before[1]))


QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def plain(command: list[str], is_service: bool, number: int) -> list[str]:
    return command


@contextlib.contextmanager
def kube() -> Iterator[Wrap]:
    """As kubelet lays it out: a burstable pod of 1024 shares, and a best-effort pod of 2 for each hog."""
    top = CPU / f"j10ce-bench-{os.getpid()}"
    made: list[Path] = []

    def group(path: Path, shares: int) -> Path:
        path.mkdir()
        made.append(path)
        if (path / "cpu.shares").exists():
            (path / "cpu.shares").write_text(str(shares))
        else:  # as container runtimes convert shares for cgroup v2
            (path / "cpu.weight").write_text(str(1 + (shares - 2) * 9999 // 262142))
            (path / "cgroup.subtree_control").write_text("+cpu")
        return path

    def pod(above: Path, name: str, shares: int) -> Path:
        return group(group(above / name, shares) / "container", shares)

    pods = group(top, 1024 * (os.cpu_count() or 1))
    service = pod(group(pods / "burstable", 1024), "pod", 1024)
    besteffort = group(pods / "besteffort", 2)
    hogs = [pod(besteffort, f"pod{n}", 2) for n in range(HOGS)]
    join = "import os,sys; open(sys.argv[1],'w').write(str(os.getpid())); os.execv(sys.argv[2], sys.argv[2:])"

    def wrap(command: list[str], is_service: bool, number: int) -> list[str]:
        inside = service if is_service else hogs[number]
        return [sys.executable, "-S", "-c", join, str(inside / "cgroup.procs"), *command]

    try:
        yield wrap
    finally:
        for path in reversed(made):
            path.rmdir()


@contextlib.contextmanager
def agent(box: Path) -> Iterator[Wrap]:
    """The product: an agent of its own for this run, and `run` for every process."""
    environ = {
        "J10CE_RUN_DIR": f"{box}/run",
        "J10CE_STATE_DIR": f"{box}/state",
        "J10CE_TOP": f"j10cebench{os.getpid()}",
    }
    os.environ |= environ
    cli = [sys.executable, "-m", "j10ce.cli.main"]
    process = subprocess.Popen([sys.executable, "-m", "j10ce.agent.main"], **QUIET)

    def wrap(command: list[str], is_service: bool, number: int) -> list[str]:
        name = f"service-{number}" if is_service else f"hog-{number}"
        return [*cli, "run", "-q", "--profile", "ls" if is_service else "be", "--name", name, "--", *command]

    try:
        subprocess.run([*cli, "run", "-q", "--", "true"], check=True)  # waits until it serves, or starts another
        yield wrap
    finally:
        process.send_signal(2)
        process.wait(30)


def compile_service(box: Path) -> Path:
    if not shutil.which("cc"):
        sys.exit("the latency benchmark needs a C compiler: apt-get install gcc libc6-dev")
    program = box / "service"
    subprocess.run(["cc", "-O2", "-pthread", "-o", program, Path(__file__).with_name("service.c"), "-lm"], check=True)
    return program


def busy_and_total() -> tuple[int, int]:
    fields = [int(f) for f in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def medians(results: dict[str, list[Round]]) -> dict[str, Round]:
    return {
        name: Round(*(statistics.median(r[i] for r in rounds) for i in range(4))) for name, rounds in results.items()
    }


def kept(results: dict[str, list[Round]]) -> dict[str, object]:
    """What the documentation shows; times in ms."""
    arms = {
        name: {
            "p50": round(m.p50 / 1e3, 2),
            "p99": round(m.p99 / 1e3, 2),
            "p99.9": round(m.p999 / 1e3, 2),
            "busy": round(m.busy, 2),
        }
        for name, m in medians(results).items()
    }
    machine = f"{os.cpu_count()} CPUs, Linux {'.'.join(platform.release().split('.')[:2])}"
    rounds = len(next(iter(results.values())))
    return {"machine": machine, "hogs": HOGS, "rounds": rounds, "seconds": SECONDS, "load": LOAD, "arms": arms}


def report(results: dict[str, list[Round]]) -> bool:
    """Whether a goal is missed."""
    middle = medians(results)
    print(
        f"{'arm':<12}{'p50 ms':>9}{'p99 ms':>9}{'p99 spread':>17}{'p99.9 ms':>10}{'÷ alone':>9}{'÷ kube':>8}{'busy':>7}"
    )
    for name, m in middle.items():
        p99s = sorted(r.p99 / 1e3 for r in results[name])
        print(
            f"{name:<12}{m.p50 / 1e3:>9.2f}{m.p99 / 1e3:>9.2f}"
            f"{f'{p99s[0]:.2f} to {p99s[-1]:.2f}':>17}{m.p999 / 1e3:>10.2f}"
            f"{m.p99 / middle['alone'].p99:>9.2f}{m.p99 / middle['kubernetes'].p99:>8.2f}{m.busy:>7.0%}"
        )
    ours = middle["ours"]
    goals = (
        ("p99 together ÷ p99 alone ≤ 1.30", ours.p99 / middle["alone"].p99, ours.p99 <= 1.30 * middle["alone"].p99),
        ("p99 ≤ 0.85 of Kubernetes'", ours.p99 / middle["kubernetes"].p99, ours.p99 <= 0.85 * middle["kubernetes"].p99),
        ("machine busy ≥ 95 %", ours.busy, ours.busy >= 0.95),
    )
    for goal, got, met in goals:
        print(f"  {'met ' if met else 'MISSED'} {goal}: {got:.2f}")
    return not all(met for _, _, met in goals)


if __name__ == "__main__":
    sys.exit(main())
