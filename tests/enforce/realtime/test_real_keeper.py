"""The keeper of real-time floors as a process of its own, on the real scheduler."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from j10ce.host import child
from j10ce.kernel.realtime import watch, wire
from j10ce.kernel.realtime.law import SHARE, TICK_S
from j10ce.kernel.realtime.machine import FAIR, OURS, Linux, WardPlace
from j10ce.model.workload import Handle
from tests.enforce.workbench import SPIN, Workbench, kill_all, removed, until

RT_BUDGET_US = 100_000  # of each second, where the kernel has budgets: this machine is others', too
NAPS = "import time\nwhile True:\n    time.sleep(0.002)\n    sum(range(2000))"
RAISED = """
import os, time
os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(5))
time.sleep(600)
"""
BOMB = """
import os
for _ in range(400):
    if os.fork() == 0:
        if os.fork() == 0:
            sum(range(20000))
        os._exit(0)
    os.wait()
print('done', flush=True)
input()
"""


class Beating:
    """The agent's side: a socket, and a beat while it is wanted."""

    def __init__(self) -> None:
        self.socket, there = wire.pair()
        environ = child.environ(os.environ) | {"PYTHONPATH": ":".join(child.search_path())}
        command = child.python("j10ce.kernel.realtime.keeper", str(there.fileno()))
        self.process = subprocess.Popen(command, pass_fds=[there.fileno()], env=environ, cwd=child.FOLDER)
        there.close()
        self.alive = threading.Event()
        self._over = threading.Event()
        self.alive.set()
        self._thread = threading.Thread(target=self._beat)
        self._thread.start()

    def _beat(self) -> None:
        while not self._over.wait(TICK_S):
            with suppress(wire.Ended, OSError):
                if self.alive.is_set():
                    wire.send(self.socket, wire.BEAT)

    def keep(self, place: WardPlace, rate: float) -> None:
        wire.send(self.socket, wire.KEEP, place.top, str(rate), "0.9", *place)

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self.socket.close()
        self.process.kill()
        self.process.wait()


def place(work: Workbench, at: Handle) -> WardPlace:
    top = work.hierarchies.directory("cpu", at.path)
    if work.hierarchies.version("cpu") == 1:
        counter = work.hierarchies.file("cpuacct", at.path, "cpuacct.usage")
        return WardPlace(top, "tasks", counter, f"{counter}_percpu")
    return WardPlace(top, "cgroup.threads", f"{top}/cpu.stat")


def allow_realtime(work: Workbench, at: Handle, budget_us: int = RT_BUDGET_US) -> None:
    """Of all that is above it, too; a group that was removed a moment ago holds its budget for some 20 ms."""
    steps = at.path.split("/")
    for path in ("/".join(steps[: n + 1]) for n in range(len(steps))):
        budget = work.path(path, "cpu.rt_runtime_us")
        wanted = budget_us if path == at.path else RT_BUDGET_US
        if budget.exists() and budget.read_text().strip() != str(wanted):
            try:
                until(lambda budget=budget, wanted=wanted: given(budget, wanted))
            except AssertionError:
                pytest.skip("Unsupported: cpu.rt_runtime_us of this machine is given out")


def given(budget: Path, wanted: int) -> bool:
    with suppress(OSError):
        return bool(budget.write_text(str(wanted)))
    return False


@pytest.fixture
def keeper(work: Workbench) -> Iterator[Beating]:
    beating = Beating()
    yield beating
    beating.close()


def policies(at: WardPlace) -> set[int | None]:
    linux = Linux()
    return {linux.policy(thread) for thread in linux.threads(at) or ()} - {None}


def keeping(
    work: Workbench, keeper: Beating, code: str, rate: float = 0.5, name: str = "web", budget_us: int = RT_BUDGET_US
) -> WardPlace:
    """One workload that runs the code, some thread of which is real-time by now."""
    at = work.make(name)
    allow_realtime(work, at, budget_us)
    work.spawn(at, code)
    keeper.keep(place(work, at), rate)
    return place(work, at)


def test_a_workload_within_its_floor_is_real_time_and_fair_once_it_is_dropped(work: Workbench, keeper: Beating) -> None:
    at = keeping(work, keeper, NAPS)
    until(lambda: policies(at) == {OURS})
    wire.send(keeper.socket, wire.DROP, at.top)
    until(lambda: policies(at) == {FAIR})


def test_where_all_threads_spin_others_run_and_they_run_themselves(work: Workbench, keeper: Beating) -> None:
    at = keeping(work, keeper, SPIN, rate=0.1)
    for _ in range(3):
        work.spawn(Handle(f"{work.top}/web"), SPIN)
    beside = work.make("beside")
    work.spawn(beside, SPIN)
    linux = Linux()
    for _ in range(3):
        before = linux.usage_s(at) or 0.0, linux.usage_s(place(work, beside)) or 0.0
        until(lambda b=before: (linux.usage_s(at) or 0.0) > b[0])
        until(lambda b=before: (linux.usage_s(place(work, beside)) or 0.0) > b[1] + 0.05)
    assert keeper.process.poll() is None


def test_forks_begin_fair_and_join(work: Workbench, keeper: Beating) -> None:
    at = work.make("web")
    allow_realtime(work, at)
    bomb = work.spawn(at, BOMB)
    keeper.keep(place(work, at), 0.3)
    assert bomb.stdout is not None
    assert bomb.stdout.readline() == "done\n"
    until(lambda: policies(place(work, at)) == {OURS})
    keeper.keep(place(work, at), 0.0)
    until(lambda: policies(place(work, at)) == {FAIR})


def test_a_workload_that_comes_again_to_the_same_path_is_real_time_again(work: Workbench, keeper: Beating) -> None:
    """While another one keeps the keeper alive, as when one of two services is restarted."""
    other = keeping(work, keeper, NAPS, name="other", budget_us=RT_BUDGET_US // 3)
    for _ in range(2):
        at = keeping(work, keeper, NAPS, budget_us=RT_BUDGET_US // 3)
        until(lambda at=at: policies(at) == {OURS})
        kill_all(Path(at.top))
        until(lambda at=at: removed(Path(at.top)) and removed(Path(at.usage).parent))
        wire.send(keeper.socket, wire.DROP, at.top)
    until(lambda: policies(other) == {OURS})


def test_a_thread_with_a_priority_of_its_own_keeps_it(work: Workbench, keeper: Beating) -> None:
    at = keeping(work, keeper, NAPS)
    own = work.spawn(Handle(f"{work.top}/web"), RAISED)
    until(lambda: os.sched_getscheduler(own.pid) == OURS)
    until(lambda: OURS in policies(at))
    wire.send(keeper.socket, wire.DROP, at.top)
    until(lambda: OURS not in policies(at))
    assert (os.sched_getscheduler(own.pid), os.sched_getparam(own.pid).sched_priority) == (OURS, 5)


@pytest.mark.parametrize("way", ["silent", "gone"])
def test_without_the_agent_all_are_fair_and_the_keeper_ends(work: Workbench, keeper: Beating, way: str) -> None:
    at = keeping(work, keeper, NAPS)
    until(lambda: policies(at) == {OURS})
    if way == "silent":
        keeper.alive.clear()
    else:
        keeper.socket.close()
    until(lambda: policies(at) == {FAIR})
    assert keeper.process.wait(60) == 0


def test_a_keeper_that_is_asked_to_end_leaves_all_fair(work: Workbench, keeper: Beating) -> None:
    at = keeping(work, keeper, NAPS)
    until(lambda: policies(at) == {OURS})
    keeper.process.terminate()
    assert keeper.process.wait(60) == 0
    assert policies(at) == {FAIR}


def test_what_the_kernel_counts_is_read(work: Workbench) -> None:
    at, linux = work.make("web"), Linux()
    here = place(work, at)
    assert linux.usage_s(here) is not None
    spinner = work.spawn(at, SPIN).pid
    until(lambda: (linux.usage_s(here) or 0.0) > 0.05)
    assert linux.threads(here) == {spinner}
    assert (linux.sleeps(spinner), linux.cpu(spinner)) != (None, None)
    by_cpu = linux.per_cpu_s(here)
    assert by_cpu is None or sum(by_cpu) > 0.05
    gone = WardPlace("/nonexistent", "tasks", "/nonexistent/usage")
    assert (linux.threads(gone), linux.usage_s(gone), linux.per_cpu_s(gone)) == (None, None, None)
    no_thread = (1 << 22) + 1
    assert {linux.ran_s(no_thread), linux.sleeps(no_thread), linux.cpu(no_thread), linux.policy(no_thread)} == {None}
    assert linux.change(no_thread, FAIR) == ""


def test_while_the_ring_hangs_nobody_is_made_real_time_again(work: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "RING_S", 1.0)
    at = work.make("web")
    allow_realtime(work, at)
    work.spawn(at, NAPS)
    here, watching = place(work, at), watch.RealtimeWatch()
    watching.keep("web", here, 0.5, SHARE)
    until(lambda: policies(here) == {OURS})
    until(lambda: not watching.pid)
    for _ in range(50):
        assert (watching.pid, policies(here)) == (0, {FAIR})
        time.sleep(TICK_S)
    watching.keep("web", here, 0.5, SHARE)
    until(lambda: policies(here) == {OURS})
    watching.drop("web", here)
    assert policies(here) == {FAIR}
