"""A service in a kubelet's tree in the minute after its restart, when best effort weighs as much as burstable.

A kubelet writes `kubepods/burstable/cpu.shares` = 2 as it starts, and what its pods ask for a minute later. The tree is
made here, of the same shape and weights, with hogs in pods of class best effort. `idle` is what cpu.idle of the pods
alone is worth, at several weights of the protected class; `ours` is an agent that has adopted the pods.
All arms take turns in each round; figures are medians over the rounds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.facts import machine_facts
from benchmarks.latency import CPU, CPU_US, HOG, HOGS, LOAD, QUIET, THREADS, compile_service

ROUNDS = int(os.environ.get("J10CE_BENCH_ROUNDS", "5"))
SECONDS = 6.0
SETTLE_S = 4.0  # the agent sees the weights at its next tick; a queue that was there before is worked off
OUTSIDE = 65536  # shares of the whole tree: whatever else runs on the machine has little part in the contest
RIGHT, LEAST = 1228, 2  # cpu.shares of burstable: what its pods ask for, and right after a kubelet's start
MOST_RATIO = 1.5
JOIN = "import os,sys; open(sys.argv[1],'w').write(str(os.getpid())); os.execv(sys.argv[2], sys.argv[2:])"


class Arm(NamedTuple):
    name: str
    burstable: int = LEAST
    hogs: bool = True
    idle: bool = False  # by hand
    ours: bool = False


ARMS = (
    Arm("alone", RIGHT, hogs=False),
    Arm("kubernetes"),
    *(Arm(f"idle 1:{n}", LEAST * n, idle=True) for n in (1, 2, 4, 8, RIGHT // 2)),
    Arm("ours", ours=True),
)


class Round(NamedTuple):
    p50: float
    p99: float
    p999: float
    hogs: float  # CPUs


class Tree:
    """As a kubelet lays it out with the cgroupfs driver."""

    def __init__(self, top: Path) -> None:
        self.made: list[Path] = []
        self.top = self._group(top, OUTSIDE)
        self.burstable = self._group(top / "burstable", RIGHT)
        self.service = self._pod(self.burstable, "podservice", RIGHT)
        besteffort = self._group(top / "besteffort", LEAST)
        self.hogs = [self._pod(besteffort, f"podhog{n}", LEAST) for n in range(2)]
        # As the sandbox of a pod does, these keep it from being over.
        self.sandboxes = [subprocess.Popen(inside(p, ["/bin/sleep", "inf"])) for p in (self.service, *self.hogs)]

    def _group(self, path: Path, shares: int) -> Path:
        path.mkdir()
        self.made.append(path)
        weigh(path, shares)
        if (path / "cgroup.subtree_control").exists():
            (path / "cgroup.subtree_control").write_text("+cpu")
        return path

    def _pod(self, above: Path, name: str, shares: int) -> Path:
        self._group(self._group(above / name, shares) / "container", shares)
        return above / name

    def remove(self) -> None:
        for sandbox in self.sandboxes:
            sandbox.kill()
            sandbox.wait()
        for path in reversed(self.made):
            path.rmdir()


def weigh(group: Path, shares: int) -> None:
    if (group / "cpu.shares").exists():
        (group / "cpu.shares").write_text(str(shares))
    else:  # as container runtimes convert shares for cgroup v2
        (group / "cpu.weight").write_text(str(1 + (shares - 2) * 9999 // 262142))


def inside(pod: Path, command: list[str]) -> list[str]:
    return [sys.executable, "-S", "-c", JOIN, str(pod / "container/cgroup.procs"), *command]


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # cgroups are removed
    machine_facts()
    rate = os.cpu_count() * LOAD * 1e6 / CPU_US
    print(f"service: {rate:.0f} requests/s, {THREADS} threads, {CPU_US} µs each = {LOAD:.0%} of the machine")
    print(f"beside {HOGS} hogs in two pods; {ROUNDS} rounds of {SECONDS:.0f} s each, all arms in turn")
    results: dict[str, list[Round]] = {}
    tree = Tree(CPU / f"j10ce-bench-{os.getpid()}")
    try:
        with tempfile.TemporaryDirectory(prefix="j10ce-bench-") as box, agent(Path(box)) as cli:
            program = compile_service(Path(box))
            for number in range(ROUNDS):
                service = [str(program), f"{rate:.0f}", f"{SECONDS}", str(THREADS), str(CPU_US), str(number)]
                for arm in ARMS if number % 2 else reversed(ARMS):
                    results.setdefault(arm.name, []).append(measure(tree, arm, service, cli))
    finally:
        weigh(tree.burstable, RIGHT)
        tree.remove()
    return report(results)


def measure(tree: Tree, arm: Arm, service: list[str], cli: list[str]) -> Round:
    weigh(tree.burstable, arm.burstable)
    with adopted(tree, cli) if arm.ours else idle(tree, arm.idle):
        hogs = [subprocess.Popen(inside(tree.hogs[n % 2], HOG), **QUIET) for n in range(HOGS)] if arm.hogs else []
        try:
            time.sleep(SETTLE_S)
            begun, before = time.monotonic(), cpu_s(hogs)
            out = subprocess.run(inside(tree.service, service), capture_output=True, text=True, check=True).stdout
            used = (cpu_s(hogs) - before) / (time.monotonic() - begun)
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
    p50, p99, p999, _ = map(float, out.split())
    return Round(p50, p99, p999, used)


def cpu_s(processes: list[subprocess.Popen[bytes]]) -> float:
    fields = (Path(f"/proc/{p.pid}/stat").read_text().rpartition(")")[2].split() for p in processes)
    return sum(int(f[11]) + int(f[12]) for f in fields) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def idle(tree: Tree, wanted: bool) -> Iterator[None]:
    for pod in tree.hogs:
        (pod / "cpu.idle").write_text(str(int(wanted)))
    try:
        yield
    finally:
        for pod in tree.hogs:
            (pod / "cpu.idle").write_text("0")
            weigh(pod, LEAST)


@contextlib.contextmanager
def adopted(tree: Tree, cli: list[str]) -> Iterator[None]:
    pods = {"service": ("ls", tree.service)} | {f"hog{n}": ("be", pod) for n, pod in enumerate(tree.hogs)}
    for name, (profile, pod) in pods.items():
        group = str(pod.relative_to(CPU))
        subprocess.run([*cli, "adopt", "--cgroup", group, "--profile", profile, "--name", name], check=True, **QUIET)
    try:
        yield
    finally:
        for name in pods:
            subprocess.run([*cli, "forget", name], check=True, **QUIET)


@contextlib.contextmanager
def agent(box: Path) -> Iterator[list[str]]:
    """The product: an agent of its own for this run."""
    os.environ |= {
        "J10CE_RUN_DIR": f"{box}/run",
        "J10CE_STATE_DIR": f"{box}/state",
        "J10CE_TOP": f"j10cebench{os.getpid()}",
    }
    cli = [sys.executable, "-m", "j10ce.cli.main"]
    process = subprocess.Popen([sys.executable, "-m", "j10ce.agent.main"], **QUIET)
    try:
        subprocess.run([*cli, "run", "-q", "--", "true"], check=True)  # waits until it serves
        yield cli
    finally:
        process.send_signal(2)
        process.wait(30)


def report(results: dict[str, list[Round]]) -> bool:
    """Whether the goal is missed."""
    middle = {arm.name: Round(*(statistics.median(r[i] for r in results[arm.name]) for i in range(4))) for arm in ARMS}
    print(f"{'arm':<12}{'p50 ms':>9}{'p99 ms':>9}{'p99 spread':>20}{'p99.9 ms':>10}{'÷ alone':>9}{'hogs CPUs':>11}")
    for name, m in middle.items():
        p99s = sorted(r.p99 / 1e3 for r in results[name])
        print(
            f"{name:<12}{m.p50 / 1e3:>9.2f}{m.p99 / 1e3:>9.2f}{f'{p99s[0]:.2f} to {p99s[-1]:.2f}':>20}"
            f"{m.p999 / 1e3:>10.2f}{m.p99 / middle['alone'].p99:>9.2f}{m.hogs:>11.2f}"
        )
    ratio = middle["ours"].p99 / middle["alone"].p99
    missed = ratio > MOST_RATIO
    print(f"  {'MISSED' if missed else 'met '} p99 together ÷ p99 alone ≤ {MOST_RATIO}: {ratio:.2f}")
    return missed


if __name__ == "__main__":
    sys.exit(main())
