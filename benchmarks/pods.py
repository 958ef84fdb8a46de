"""A real kubelet starts pods that have a reservation: how long after the cgroup of a pod exists are its knobs written?

The agent polls the tree while it awaits a cgroup, so a pod whose binding it has heard of waits for nothing else. Both
moments are taken by looking at the files every millisecond. Root only; see tests/lab/kube/node.py for what is started.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.facts import machine_facts
from tests.kube.agent.installed import Installed, PodAgent
from tests.lab.kube.cluster import running
from tests.lab.kube.node import CGROUPS, joined, pod

PODS = int(os.environ.get("J10CE_BENCH_PODS", "30"))
REQUESTED = "10\n"  # cpu.shares as the kubelet writes them for 10m
FRESH = "1024\n"  # as the kernel makes it
LOOK_S = 0.001
PATIENCE_S = 60.0


class Times(NamedTuple):
    """Seconds since the pod was made."""

    cgroup: float
    ours: float


class Watcher(threading.Thread):
    """Of one pod's cpu.shares."""

    def __init__(self, uid: str) -> None:
        super().__init__()
        self.file = CGROUPS / f"cpu/kubepods/burstable/pod{uid}/cpu.shares"
        self.begun = time.monotonic()
        self.times: Times | None = None

    def run(self) -> None:
        cgroup = 0.0
        while (passed := time.monotonic() - self.begun) < PATIENCE_S:
            try:
                text = self.file.read_text()
            except OSError:
                text = ""
            cgroup = cgroup or (passed if text else 0.0)
            if text not in ("", FRESH, REQUESTED):
                self.times = Times(cgroup, passed)
                return
            time.sleep(LOOK_S)


def measure(lab: Installed) -> list[Times]:
    collected = []
    for number in range(PODS):
        body = pod(f"db-{number}", labels={"app": "db"}, requests={"cpu": "10m"})
        made = lab.cluster.call("POST", "/api/v1/namespaces/default/pods", body)
        watcher = Watcher(made["metadata"]["uid"])
        watcher.start()
        watcher.join()
        if watcher.times is None:
            raise SystemExit(f"db-{number}: its knobs were not written within {PATIENCE_S:g} s")
        collected.append(watcher.times)
        lab.node.delete(f"db-{number}")
    return collected


def main() -> int:
    machine_facts()
    clone = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory(prefix="pods-") as folder, running(Path(folder)) as cluster:
        with joined(cluster) as node:
            lab = Installed(cluster, node)
            lab.install()
            lab.policy("db", selector={"matchLabels": {"app": "db"}}, minimum={"cpu": "150m"})
            node.run("heavy", requests={"cpu": "1"})  # without a rival no floor needs a weight
            agent = PodAgent(Path(folder, "agent"), clone, lab)
            (Path(folder) / "agent").mkdir()
            agent.begin()
            try:
                times = measure(lab)
            finally:
                agent.clean()
    waits = sorted(t.ours - t.cgroup for t in times)
    p90 = waits[int(len(waits) * 0.9)]
    print(f"{len(waits)} pods: knobs written after the cgroup exists: p50 {statistics.median(waits) * 1000:.0f} ms,")
    print(f"p90 {p90 * 1000:.0f} ms, worst {waits[-1] * 1000:.0f} ms")
    print(f"the cgroup exists after p50 {statistics.median(t.cgroup for t in times) * 1000:.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
