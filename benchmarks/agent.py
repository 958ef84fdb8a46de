"""A real agent on real cgroups: CPU of a quiet tick, latency of an arrival, resident memory.

Workloads are sleeping processes placed over the socket, below a top cgroup of their own, removed at the end.
CPU times are the ring's own (they hold on a busy machine); latencies are wall time and need a quiet one.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from benchmarks.facts import machine_facts
from j10ce.agent.cache import Cache
from j10ce.bench.figures import percentile
from j10ce.cli.client import Client
from j10ce.host.mounts import Hierarchies
from j10ce.policy.document.document import FORMAT, NodeDocument, digest
from j10ce.policy.profiles import builtin
from j10ce.testing.build import strategy

SIZES = (50, 200, 1000)
MEASURED = 200
ARRIVALS = 200
PROFILES = ("ls", "burstable", "be", "ls")
QUIET_TICKS = 10
MOST_MS, MOST_ALL_ON_MS, MOST_MIB = 10.0, 14.0, 50.0  # of a quiet tick at 200 workloads
# As users have it: development tools bring `rich`, which structlog imports wherever it is, and which is 6 MiB.
AGENT = "import sys; sys.modules['rich'] = None; from j10ce.agent.main import main; sys.exit(main())"
# Every controller that a strategy can switch on and that this machine has the files for; nothing of it evicts anybody.
ALL_ON = {
    "suppress": {"mode": "quota", "thresholdPercent": 90},
    "burst": {"policy": "auto"},
    "eviction": {
        "memory": {"thresholdPercent": 95},
        "cpu": {"thresholdPercent": 95, "satisfactionLowerPercent": 30, "satisfactionUpperPercent": 60},
    },
    "interference": {"mode": "act"},
    "profiles": {
        name: {"memory": {"lowPercent": 20, "throttlingPercent": 90, "reclaim": {"enabled": True}, "oomPriority": -1}}
        for name in ("ls", "burstable", "be")
    },
}


class Agent:
    def __init__(self, folder: Path) -> None:
        self.top = f"j10cebench-{os.getpid()}"
        self.folder = folder
        self.client = Client(f"unix:{folder}/run/agent.sock")
        self.kids: list[subprocess.Popen[bytes]] = []
        self.process: subprocess.Popen[bytes]

    def start(self) -> None:
        names = {"J10CE_RUN_DIR": "run", "J10CE_STATE_DIR": "state", "J10CE_CONFIG_DIR": "etc"}
        environ = {**os.environ, **{k: str(self.folder / v) for k, v in names.items()}, "J10CE_TOP": self.top}
        address = str(self.folder / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(address)
            command = [sys.executable, "-c", AGENT]
            self.process = subprocess.Popen(command, env={**environ, "NOTIFY_SOCKET": address, "PYTHONPATH": "src"})
            while b"READY=1" not in s.recv(4096):
                pass

    def configure(self, said: Mapping[str, Any], dialects: Sequence[str]) -> None:
        (self.folder / "etc").mkdir()
        config = {"nodeName": "bench", "dialects": [*dialects]}
        (self.folder / "etc/bench.yaml").write_text(json.dumps(config))
        document = NodeDocument(
            node="bench", format=FORMAT, profiles=builtin(), strategies=(strategy("bench", said),) if said else ()
        )
        (self.folder / "state").mkdir(mode=0o700)
        Cache(self.folder / "run", self.folder / "state").keep_document(replace(document, hash=digest(document)))

    def place(self, n: int, *, inhabited: bool = True) -> float:
        """Seconds until every knob is written and, unless nobody lives in it, the process is in."""
        profile = PROFILES[n % len(PROFILES)]
        fields: dict[str, object] = {"name": f"w{n}", "profile": profile, "requests": {"cpu": "1m", "memory": "1Mi"}}
        if inhabited:
            self.kids.append(subprocess.Popen(["sleep", "100000"]))
            fields["pid"] = self.kids[-1].pid
        if profile == "ls":
            fields["minimum"] = {"cpu": "1m", "memory": "1Mi"}
        return self.ask(json.dumps(fields).encode())

    def ask(self, body: bytes) -> float:
        """From the first byte of a request to the answer. By hand: a client library would add its own millisecond."""
        head = f"POST /v1/workloads HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        request = head.encode() + body
        begun = time.perf_counter()
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(f"{self.folder}/run/agent.sock")
            sock.sendall(request)
            answer = sock.recv(65536)
            taken = time.perf_counter() - begun
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answer.decode())
        return taken

    def remove(self, n: int, *, inhabited: bool = True) -> None:
        if inhabited:
            kid = self.kids.pop()
            kid.kill()
            kid.wait()
        self.client.delete(f"/v1/workloads/default/w{n}", **({"ended": "1"} if inhabited else {}))

    def metric(self, name: str) -> float:
        lines = self.client.get("/metrics").splitlines()
        return next((float(line.split()[1]) for line in lines if line.startswith(name + " ")), 0.0)

    def settle(self) -> None:
        """Until a tick has nothing to write."""
        while self.client.get("/v1/status")["lastPlan"] != "nothing to change":
            time.sleep(0.5)

    def memory_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def end(self) -> None:
        for kid in self.kids:
            kid.kill()
            kid.wait()
        self.process.kill()
        self.process.wait()
        for mount in Hierarchies.discover().in_use().values():
            for top in (self.top, f"{self.top}_besteffort"):
                for folder, _, _ in os.walk(f"{mount.path}/{top}", topdown=False):
                    os.rmdir(folder)


class Tick(NamedTuple):
    workloads: int
    cpu_ms: float
    memory_mib: float


@contextmanager
def running(said: Mapping[str, Any] | None = None, dialects: Sequence[str] = ()) -> Iterator[Agent]:
    """`said`: what a strategy says of this node, as if a control plane had sent it. `dialects`: whose words count."""
    with tempfile.TemporaryDirectory(prefix="j10cebench-") as folder:
        agent = Agent(Path(folder))
        agent.configure(said or {}, dialects)
        agent.start()
        try:
            yield agent
        finally:
            agent.end()


def quiet_tick(agent: Agent, count: int) -> Tick:
    """CPU per tick when nothing is to be written, over several ticks."""
    agent.settle()
    runs, cpu = 'j10ce_ring_runs_total{cause="tick"}', "j10ce_ring_cpu_seconds_total"
    first, spent = agent.metric(runs), agent.metric(cpu)
    while agent.metric(runs) < first + QUIET_TICKS:
        time.sleep(0.2)
    per_tick = (agent.metric(cpu) - spent) / (agent.metric(runs) - first)
    return Tick(count, per_tick * 1000, agent.memory_mib())


def arrivals(agent: Agent, others: int, *, inhabited: bool) -> list[float]:
    """Milliseconds each, with `others` there all the time."""
    taken: list[float] = []
    for _ in range(ARRIVALS):
        taken.append(agent.place(others, inhabited=inhabited) * 1000)
        agent.remove(others, inhabited=inhabited)
        time.sleep(0.02)
    return sorted(taken)


def main() -> int:
    machine_facts()
    ticks: list[Tick] = []
    with running() as agent:
        here = 0
        for size in SIZES:
            for n in range(here, size):
                agent.place(n)
            here = size
            ticks.append(quiet_tick(agent, size))
            if size == MEASURED:
                report_arrivals("all knobs written", arrivals(agent, size, inhabited=False), size)
                report_arrivals("and its process moved in", arrivals(agent, size, inhabited=True), size)
    all_on = everything_on()
    report_ticks([*ticks, all_on])
    return _missed(next(t for t in ticks if t.workloads == MEASURED), all_on)


def everything_on() -> Tick:
    with running(ALL_ON) as agent:
        for n in range(MEASURED):
            agent.place(n)
        return quiet_tick(agent, MEASURED)


def _missed(default: Tick, all_on: Tick) -> bool:
    goals = (
        (f"default controllers at {MEASURED}: CPU ms", default.cpu_ms, MOST_MS),
        (f"all switched on at {MEASURED}: CPU ms", all_on.cpu_ms, MOST_ALL_ON_MS),
        (f"all switched on at {MEASURED}: MiB", all_on.memory_mib, MOST_MIB),
    )
    for what, got, most in goals:
        print(f"  {'met   ' if got <= most else 'MISSED'} {what} {got:.1f}  (at most {most:g})")
    return any(got > most for _, got, most in goals)


def report_arrivals(what: str, taken: list[float], others: int) -> None:
    median, p99 = statistics.median(taken), percentile(taken, 0.99)
    print(f"arrival beside {others}, {what}: median {median:.1f} ms, p99 {p99:.1f} ms  (wanted: 5 and 20)")


def report_ticks(ticks: list[Tick]) -> None:
    print("workloads   CPU per quiet tick   per workload   of a core at 1 s   RSS")
    for t in ticks:
        each = t.cpu_ms * 1000 / t.workloads
        print(
            f"{t.workloads:9}   {t.cpu_ms:15.2f} ms   {each:9.1f} µs   {t.cpu_ms / 10:14.2f} %   {t.memory_mib:.1f} MiB"
        )
    small, large = min(ticks), max(ticks)
    ratio = (large.cpu_ms / small.cpu_ms) / (large.workloads / small.workloads)
    print(f"growth from {small.workloads} to {large.workloads}: {ratio:.2f} of linear  (wanted: 1, and 10 ms at 200)")


if __name__ == "__main__":
    sys.exit(main())
