"""What the node agent does about CPU time on this kernel, beside the literal laws of Koordinator's.

burst     a service whose CPU limit throttles it, with a burst and without, in turns: throttled periods, and p99
suppress  a step, a noisy and a diurnal load beside spinners of best effort: changes of their quota, CPU time that the
          load wanted and did not get, and what best effort did; our agent, then the literal law

`python -m benchmarks.node_agent [burst | step | noisy | diurnal]…`: all of them where none is named.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.agent import Agent, running
from benchmarks.facts import machine_facts
from benchmarks.latency import CPU, compile_service
from j10ce.model.knob import PERIOD_US
from tests.koordinator.theirs.laws.suppress import Suppression, Use, allowed_milli, stepped_quota

CPUS = os.cpu_count() or 1
ROUNDS = int(os.environ.get("J10CE_BENCH_ROUNDS", "3"))
WARM_S, MEASURED_S = 6, 15
RATE, THREADS, CPU_US, LIMIT = 20, 8, 15_000, "400m"  # 0.3 CPUs of 0.4, in requests that come by chance
LOAD_S, THRESHOLD = int(os.environ.get("J10CE_BENCH_SECONDS", "80")), 65
HALF_S = LOAD_S // 4
EMPTY_S = 10.0  # until killed processes have left their cgroup

# argv: what it wants in each second, in CPUs of one thread. Prints the CPU seconds that it wanted and did not get.
DEMAND = """
import sys, time
wants, slot = [float(w) for w in sys.argv[1:]], 0.05
input()
begun, missed = time.perf_counter(), 0.0
for n in range(int(len(wants) / slot)):
    due, want = begun + n * slot, wants[int(n * slot)] * slot
    time.sleep(max(0.0, due - time.perf_counter()))
    spent = time.thread_time() + want
    while time.thread_time() < spent and time.perf_counter() < due + slot: pass
    missed += max(0.0, spent - time.thread_time())
print(missed, flush=True)
input()
"""
SPIN = "while True: pass"


class Throttling(NamedTuple):
    share: float
    p99_ms: float


class Suppressed(NamedTuple):
    changes: int
    missed_s: float
    work_s: float


def step(n: int) -> float:
    return 0.6 * CPUS if n // HALF_S % 2 else 0.05 * CPUS


def noisy(n: int) -> float:
    return (0.3 + random.Random(n).uniform(-0.0625, 0.0625)) * CPUS


def diurnal(n: int) -> float:
    return (0.325 + 0.25 * math.sin(2 * math.pi * n / LOAD_S) + random.Random(n).uniform(-0.0125, 0.0125)) * CPUS


LOADS: dict[str, Callable[[int], float]] = {"step": step, "noisy": noisy, "diurnal": diurnal}


def main() -> int:
    machine_facts()
    wanted = sys.argv[1:] or ["burst", *LOADS]
    missed = [_burst() if name == "burst" else _suppress(name) for name in wanted]
    return any(missed)


# ---------------------------------------------------------------------------------------------- burst


def _burst() -> bool:
    results: dict[str, list[Throttling]] = {"none": [], "auto": []}
    said = {"suppress": {"mode": "quota"}}
    with tempfile.TemporaryDirectory(prefix="j10ce-bench-") as box, running(said, dialects=("koordinator",)) as agent:
        program = compile_service(Path(box))
        for number in range(ROUNDS):
            for policy in results:
                results[policy].append(_throttling(agent, program, policy, number))
    before, after = (
        Throttling(*(statistics.median(column) for column in zip(*rows, strict=True))) for rows in results.values()
    )
    ratio = after.p99_ms / before.p99_ms
    print(f"burst: throttled periods {before.share:.1%} -> {after.share:.1%}  (wanted: at least 30 %, at most 1 %)")
    print(f"burst: p99 {before.p99_ms:.0f} -> {after.p99_ms:.0f} ms, {ratio:.2f} of without  (wanted: 0.65)")
    return before.share < 0.3 or after.share > 0.01 or ratio > 0.65


def _throttling(agent: Agent, program: Path, policy: str, number: int) -> Throttling:
    words = f"{program} {RATE} {{}} {THREADS} {CPU_US} {number}"
    script = f"read x; {words.format(WARM_S)} >/dev/null; echo warm; {words.format(MEASURED_S)}; read y"
    name = f"service-{policy}-{number}"
    annotation = json.dumps({"policy": policy, "sharePoolThresholdPercent": 100})
    with _placed(
        agent, name, ["sh", "-c", script], limits={"cpu": LIMIT}, annotations={"koordinator.sh/cpuBurst": annotation}
    ) as child:
        counters = _cgroup(child) / "cpu.stat"
        _say(child)
        _hear(child)
        first = _stat(counters)
        p99 = float(_hear(child).split()[1])
        last = _stat(counters)
    periods = last["nr_periods"] - first["nr_periods"]
    return Throttling((last["nr_throttled"] - first["nr_throttled"]) / max(1, periods), p99 / 1000)


# ---------------------------------------------------------------------------------------------- suppress


def _suppress(name: str) -> bool:
    here, there = _ours(LOADS[name]), _theirs(LOADS[name])
    for who, one in (("ours", here), ("theirs", there)):
        print(f"{name}: {who}: {one.changes} changes, {one.missed_s:.2f} CPU s missed, {one.work_s:.1f} of best effort")
    fewer, as_much = here.changes * 3 <= there.changes, here.work_s >= 0.95 * there.work_s
    no_worse = here.missed_s <= there.missed_s + 0.005 * LOAD_S * CPUS  # what a slot more or less is worth
    print(f"{name}: a third of the changes, no more missed, 95 % of the work: {fewer}, {no_worse}, {as_much}")
    return not (fewer and no_worse and as_much)


def _ours(load: Callable[[int], float]) -> Suppressed:
    said = {"suppress": {"mode": "quota", "thresholdPercent": THRESHOLD}}
    with running(said) as agent, _placed(agent, "hog", _spinner(), profile="be") as hog:
        agent.settle()
        quotas = _cgroup(hog)
        with _placed(agent, "load", _demand(load)) as child:
            return _watched(child, hog, lambda: (_quota(quotas), _quota(quotas.parent)))


def _theirs(load: Callable[[int], float]) -> Suppressed:
    """Their loop once a second, on a cgroup of best effort that has the least weight, as theirs have."""
    top = CPU / f"j10cebench-theirs-{os.getpid()}"
    hogs, rest = top / "besteffort", top / "load"
    made = [_group(top, 1024), _group(hogs, 2), _group(rest, 1024)]
    try:
        with _child(_spinner(), hogs) as hog, _child(_demand(load), rest) as child:
            law = _Literal(hogs, rest)
            return _watched(child, hog, law.look)
    finally:
        for path in reversed(made):
            for place in {path, _accounts(path)}:
                place.rmdir()


class _Literal:
    def __init__(self, hogs: Path, rest: Path) -> None:
        self.hogs, self.rest = hogs, rest
        self.quota = -1
        self.at, self.before = time.perf_counter(), self._usage()

    def _usage(self) -> tuple[float, float, float]:
        return (_cpu_s(self.hogs), _cpu_s(self.rest), _busy_s())

    def look(self) -> int:
        now = time.perf_counter()
        if now - self.at >= 1.0:
            usage = self._usage()
            hogs, rest, node = (
                round((b - a) * 1000 / (now - self.at)) for a, b in zip(self.before, usage, strict=True)
            )
            self.at, self.before = now, usage
            uses = (Use(rest), Use(hogs, best_effort=True))
            allowed = allowed_milli(Suppression(CPUS * 1000, node, THRESHOLD, uses))
            self.quota = stepped_quota(allowed, self.quota, CPUS)
            _write_quota(self.hogs, self.quota)
        return self.quota


def _watched(child: subprocess.Popen[str], hog: subprocess.Popen[str], look: Callable[[], object]) -> Suppressed:
    """From the beginning of the load to its end, looked at five times a second."""
    _say(child)
    place, seen, changes = _cgroup(hog), look(), 0
    begun, first = time.perf_counter(), _cpu_s(place)
    while time.perf_counter() - begun < LOAD_S:
        time.sleep(0.2)
        now = look()
        changes, seen = changes + (now != seen), now
    return Suppressed(changes, float(_hear(child)), _cpu_s(place) - first)


def _demand(load: Callable[[int], float]) -> list[str]:
    """Two processes, each wanting half; what they missed together is said once."""
    wants = [f"{min(0.98, load(n) / 2):.4f}" for n in range(LOAD_S)]
    code = f"""
import subprocess, sys
input()
kids = [subprocess.Popen([sys.executable, "-S", "-c", {DEMAND!r}, *{wants!r}], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True) for _ in range(2)]
for kid in kids: print(file=kid.stdin, flush=True)
print(sum(float(kid.stdout.readline()) for kid in kids), flush=True)
input()
"""
    return [sys.executable, "-S", "-c", code]


def _spinner() -> list[str]:
    kids = f"import subprocess, sys\nfor _ in range({CPUS}): subprocess.Popen([sys.executable, '-S', '-c', {SPIN!r}])\n"
    return [sys.executable, "-S", "-c", f"input()\n{kids}\ninput()"]


# ---------------------------------------------------------------------------------------------- processes and files


@contextmanager
def _placed(agent: Agent, name: str, command: list[str], **fields: object) -> Iterator[subprocess.Popen[str]]:
    with _child(command) as child:
        asked = {"name": name, "profile": "ls", "pid": child.pid, "requests": {"cpu": "100m"}, **fields}
        agent.ask(json.dumps(asked).encode())
        if fields.get("profile") == "be":
            _say(child)
        place = _cgroup(child)
        try:
            yield child
        finally:
            os.killpg(child.pid, signal.SIGKILL)
            _emptied(place)


@contextmanager
def _child(command: list[str], group: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        if group is not None:
            for place in {group, _accounts(group)}:
                (place / "cgroup.procs").write_text(str(child.pid))
            if group.name == "besteffort":
                _say(child)
        yield child
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if group is not None:
            _emptied(group)


def _emptied(group: Path) -> None:
    deadline = time.monotonic() + EMPTY_S
    with suppress(FileNotFoundError):  # the agent was quicker
        while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.02)


def _say(child: subprocess.Popen[str]) -> None:
    print(file=child.stdin, flush=True)


def _hear(child: subprocess.Popen[str]) -> str:
    if child.stdout is None or not (line := child.stdout.readline()):
        raise RuntimeError("it ended early")
    return line


def _cgroup(child: subprocess.Popen[str]) -> Path:
    """Of the CPU controller."""
    for line in Path(f"/proc/{child.pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or "cpu" in controllers.split(","):
            return CPU / path.lstrip("/")
    raise RuntimeError(f"{child.pid} is in no cgroup of the CPU controller")


def _group(path: Path, shares: int) -> Path:
    for place in {path, _accounts(path)}:
        place.mkdir()
    if (path / "cpu.shares").exists():
        (path / "cpu.shares").write_text(str(shares))
    else:
        (path / "cpu.weight").write_text(str(1 + (shares - 2) * 9999 // 262142))
        (path / "cgroup.subtree_control").write_text("+cpu")
    return path


def _stat(path: Path) -> dict[str, int]:
    return {key: int(value) for key, value in (line.split() for line in path.read_text().splitlines())}


def _quota(group: Path) -> str:
    old = group / "cpu.cfs_quota_us"
    return old.read_text() if old.exists() else (group / "cpu.max").read_text()


def _write_quota(group: Path, quota_us: int) -> None:
    old = group / "cpu.cfs_quota_us"
    spelled = "max" if quota_us < 0 else f"{quota_us} {PERIOD_US}"
    (old if old.exists() else group / "cpu.max").write_text(str(quota_us) if old.exists() else spelled)


def _cpu_s(group: Path) -> float:
    old = _accounts(group) / "cpuacct.usage"
    return int(old.read_text()) / 1e9 if old.exists() else _stat(group / "cpu.stat")["usage_usec"] / 1e6


def _accounts(group: Path) -> Path:
    """Where its CPU time is counted: elsewhere on cgroup v1 with a hierarchy for each controller."""
    apart = Path("/sys/fs/cgroup/cpuacct")
    return apart / group.relative_to(CPU) if apart.is_dir() and apart != CPU else group


def _busy_s() -> float:
    fields = [int(f) for f in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
