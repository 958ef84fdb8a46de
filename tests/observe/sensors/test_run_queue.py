"""How long threads wait for a CPU, where cgroups have no pressure: on trees written by hand, and on the real kernel."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from j10ce.host.files import Files
from j10ce.host.mounts import Hierarchies
from j10ce.model.workload import Workload
from j10ce.observe.sensors.counters import CLOSE_EVERY
from j10ce.observe.sensors.run_queue import MOST_THREADS, RunQueueSensor
from j10ce.testing.build import handle, workload
from j10ce.testing.cgroup_tree import cgroup_tree

V1 = ("cpu", "cpuacct", "cpuset", "memory")
WEB = workload("web", handle=handle("web"))
SPIN = "while True: pass"


class Machine:
    """One cgroup and a /proc, on disk."""

    def __init__(self, root: Path, *, pressure: str = "") -> None:
        files = {"tasks": ""} | ({"cpu.pressure": pressure} if pressure else {})
        self.hierarchies = cgroup_tree(root / "cg", {"web": files}, v1=V1, unified=bool(pressure))
        self.tasks, self.proc = root / "cg/cpu/web/tasks", root / "proc"
        self.sensor = RunQueueSensor(self.hierarchies, Files(), lambda: {WEB.target}, str(self.proc))

    def run(self, waited_ns: dict[int, int]) -> None:
        self.tasks.write_text("".join(f"{tid}\n" for tid in waited_ns))
        for tid, ns in waited_ns.items():
            (self.proc / str(tid)).mkdir(parents=True, exist_ok=True)
            (self.proc / str(tid) / "schedstat").write_text(f"77 {ns} 3\n")

    def sample(self, now: float) -> float | None:
        """On the sample on which it reads."""
        for _ in range(CLOSE_EVERY - 1):
            assert not list(self.sensor.sample(now, [WEB]))
        return next((s.value for s in self.sensor.sample(now, [WEB])), None)


def test_it_is_the_sum_over_threads_per_second(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.run({10: 5, 11: 0})
    assert machine.sample(1.0) is None
    machine.run({10: 500_000_005, 11: 1_500_000_000})
    assert machine.sample(3.0) == pytest.approx(1.0)


def test_threads_that_came_or_went_do_not_count_between_two_looks(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.run({10: 0, 11: 9_000_000_000})
    machine.sample(1.0)
    machine.run({10: 1_000_000_000, 12: 7_000_000_000})
    assert machine.sample(2.0) == pytest.approx(1.0)


def test_a_number_that_another_thread_has_now_is_no_negative_wait(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.run({10: 9_000_000_000})
    machine.sample(1.0)
    machine.run({10: 5})
    assert machine.sample(2.0) == 0.0


def test_of_many_threads_some_stand_for_all(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    many = range(1000, 1000 + 4 * MOST_THREADS)
    machine.run(dict.fromkeys(many, 0))
    machine.sample(1.0)
    machine.run(dict.fromkeys(many, 100_000_000))
    assert machine.sample(2.0) == pytest.approx(0.1 * len(many))


def test_where_the_cgroup_has_pressure_no_thread_is_read(tmp_path: Path) -> None:
    machine = Machine(tmp_path, pressure="some avg10=0.00 avg60=0.00 avg300=0.00 total=5")
    machine.run({10: 0})
    machine.sample(1.0)
    machine.run({10: 10**9})
    assert machine.sample(2.0) is None


def test_two_spinners_on_one_cpu_wait_for_each_other(own_tree: tuple[Hierarchies, str]) -> None:
    """The real kernel. They spin until it shows, however busy the machine is."""
    hierarchies, path = own_tree
    if hierarchies.version("cpu") != 1:
        pytest.skip("Unsupported: needs the cpu controller on cgroup v1, whose groups may lack pressure")
    bare = Hierarchies(hierarchies.by_controller, None)
    spinners = [subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", SPIN]) for _ in range(2)]
    try:
        for spinner in spinners:
            Path(bare.file("cpu", path, "tasks")).write_text(str(spinner.pid))
        w: Workload = workload("web", handle=handle(path))
        sensor, deadline, wait = RunQueueSensor(bare, Files(), lambda: {w.target}), time.monotonic() + 30, 0.0
        while wait < 0.3 and time.monotonic() < deadline:
            time.sleep(0.2)
            wait = next((s.value for s in sensor.sample(time.monotonic(), [w])), wait)
        assert wait >= 0.3
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
        _wait_empty(bare.file("cpu", path, "tasks"))


def _wait_empty(tasks: str) -> None:
    deadline = time.monotonic() + 10
    while os.path.exists(tasks) and Path(tasks).read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
