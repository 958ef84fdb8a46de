"""A latency-sensitive pod of a real kubelet beside best effort, with an agent that understands Koordinator's classes
and without: p99 beside the same pod alone, medians of rounds in turns, with the 90 % interval of each ratio.

`besteffort` are eight spinners in two pods without requests; `burstable` the same eight in one pod that requests 600m
of CPU and is chosen as BE. The service and the spinners are processes of this machine that join the pods' cgroups.
Root only; see tests/lab/kube/node.py for what is started. J10CE_BENCH_KIND chooses one of the two.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.facts import machine_facts
from benchmarks.kubepods import JOIN
from benchmarks.latency import CPU_US, HOG, HOGS, LOAD, QUIET, THREADS, busy_and_total, compile_service
from tests.agent.process import eventually
from tests.kube.agent.installed import Installed, PodAgent
from tests.lab.kube.cluster import running
from tests.lab.kube.node import joined

ROUNDS: Final = int(os.environ.get("J10CE_BENCH_ROUNDS", "9"))
SECONDS: Final = 6.0
SETTLE_S: Final = 2.0
DRAWS: Final = 2000  # of rounds, for an interval
CLASS: Final = "koordinator.sh/qosClass"
MOST_BESIDE_ALONE: Final = 1.15
MOST_BESIDE_NATIVE: Final = {"besteffort": 0.5, "burstable": 0.15}
LEAST_BUSY: Final = 0.95
ARMS: Final = ("alone", "native", "ours")


class Sample(NamedTuple):
    p50: float
    p99: float
    busy: float


class Pods(NamedTuple):
    """The cgroups of their containers, as `cgroup.procs` of the CPU hierarchy."""

    service: Path
    hogs: Sequence[Path]


def main() -> int:
    machine_facts()
    kinds = [os.environ["J10CE_BENCH_KIND"]] if "J10CE_BENCH_KIND" in os.environ else [*MOST_BESIDE_NATIVE]
    missed = False
    with tempfile.TemporaryDirectory(prefix="colocation-") as box, running(Path(box)) as cluster:
        with joined(cluster) as node:
            lab = Installed(cluster, node)
            lab.install()
            program = compile_service(Path(box))
            for kind in kinds:
                missed |= report(kind, rounds(lab, kind, program, Path(box)))
                lab.tidy()
    return int(missed)


def rounds(lab: Installed, kind: str, program: Path, box: Path) -> dict[str, list[Sample]]:
    pods, results = started(lab, kind), {arm: list[Sample]() for arm in ARMS}
    rate = (os.cpu_count() or 1) * LOAD * 1e6 / CPU_US
    for number in range(ROUNDS):
        service = [str(program), f"{rate:.0f}", f"{SECONDS}", str(THREADS), str(CPU_US), str(number)]
        for arm in ARMS if number % 2 else reversed(ARMS):
            with agent(lab, box / f"{kind}-{number}") if arm == "ours" else nothing():
                results[arm].append(measure(pods, service, hogs=arm != "alone"))
    return results


def started(lab: Installed, kind: str) -> Pods:
    made = {"svc": lab.node.run("svc", labels={CLASS: "LS"}, requests={"cpu": "1"})}
    if kind == "burstable":
        made["hog"] = lab.node.run("hog", labels={CLASS: "BE"}, requests={"cpu": "600m"})
    else:
        made |= {name: lab.node.run(name, labels={CLASS: "BE"}) for name in ("hog-0", "hog-1")}
    groups = {name: next(iter(lab.node.containers(uid, name).values())) for name, uid in made.items()}
    return Pods(groups.pop("svc"), [*groups.values()])


@contextmanager
def nothing() -> Iterator[None]:
    yield


@contextmanager
def agent(lab: Installed, folder: Path) -> Iterator[None]:
    """Until it is stopped as Ctrl-C does, which gives every value back."""
    folder.mkdir()
    one = PodAgent(folder, Path(__file__).resolve().parent.parent, lab)
    one.configure(kubelet=f"https://127.0.0.1:{lab.node.kubelet_port}", dialects=["koordinator"])
    one.begin()
    try:
        hogs = [p["metadata"] for p in lab.cluster.call("GET", "/api/v1/namespaces/default/pods")["items"]]
        files = [lab.node.cgroup(m["uid"]) / "cpu.idle" for m in hogs if m["name"].startswith("hog")]
        if not eventually(lambda: all(file.read_text().strip() == "1" for file in files)):
            raise SystemExit("best effort is not idle beside an agent")
        yield
        one.stop(signal.SIGINT)
    finally:
        one.clean()


def measure(pods: Pods, service: list[str], *, hogs: bool) -> Sample:
    beside = [subprocess.Popen(inside(pods.hogs[n % len(pods.hogs)], HOG), **QUIET) for n in range(HOGS if hogs else 0)]
    try:
        time.sleep(SETTLE_S)
        before = busy_and_total()
        out = subprocess.run(inside(pods.service, service), capture_output=True, text=True, check=True).stdout
        after = busy_and_total()
    finally:
        for hog in beside:
            hog.kill()
            hog.wait()
    p50, p99, *_ = map(float, out.split())
    return Sample(p50, p99, (after[0] - before[0]) / (after[1] - before[1]))


def inside(group: Path, command: list[str]) -> list[str]:
    return [sys.executable, "-S", "-c", JOIN, str(group / "cgroup.procs"), *command]


def interval(above: Sequence[float], below: Sequence[float]) -> tuple[float, float]:
    """Of the ratio of medians, 90 %: by drawing rounds anew, the same ones for both."""
    chance, ratios = random.Random(1), []
    for _ in range(DRAWS):
        drawn = [chance.randrange(len(above)) for _ in above]
        ratios.append(statistics.median(above[n] for n in drawn) / statistics.median(below[n] for n in drawn))
    ordered = sorted(ratios)
    return ordered[DRAWS // 20], ordered[-DRAWS // 20]


def report(kind: str, results: dict[str, list[Sample]]) -> bool:
    """Whether a goal is missed: where the whole interval lies above it."""
    print(f"{kind}: {ROUNDS} rounds of {SECONDS:.0f} s, {HOGS} spinners")
    for arm, samples in results.items():
        p50, p99, busy = (statistics.median(s[n] for s in samples) for n in range(3))
        spread = sorted(s.p99 / 1e3 for s in samples)
        ends = f"({spread[0]:.2f} to {spread[-1]:.2f})"
        print(f"  {arm:<8} p50 {p50 / 1e3:7.2f}  p99 {p99 / 1e3:8.2f} ms {ends}  busy {busy:.0%}")
    p99s = {arm: [s.p99 for s in samples] for arm, samples in results.items()}
    missed = statistics.median(s.busy for s in results["ours"]) < LEAST_BUSY
    for beside, most in (("alone", MOST_BESIDE_ALONE), ("native", MOST_BESIDE_NATIVE[kind])):
        ratio = statistics.median(p99s["ours"]) / statistics.median(p99s[beside])
        low, high = interval(p99s["ours"], p99s[beside])
        missed |= low > most
        verdict = "MISSED" if low > most else "met" if ratio <= most else "open"
        print(f"  {verdict} p99 of ours ÷ {beside} ≤ {most}: {ratio:.2f} ({low:.2f} to {high:.2f})")
    return missed


if __name__ == "__main__":
    sys.exit(main())
