"""CPU knobs have their effect: shares, idle, quota, placement, freezing, measured by the kernel's own counters."""

from __future__ import annotations

import os
import signal

import pytest

from j10ce.model.knob import PERIOD_US
from j10ce.model.plan import Applied
from tests.enforce.workbench import SPIN, Workbench, stat, until

HOGS = 4


@pytest.mark.parametrize(
    ("knob", "value", "floor"),
    [
        pytest.param("cpu.idle", 1.0, 0.90, id="an idle group takes what is left"),
        pytest.param("cpu.weight", 1024.0, 0.65, id="three to one by weight"),
    ],
)
def test_hogs_leave_the_protected_workload_its_cpu(work: Workbench, knob: str, value: float, floor: float) -> None:
    work.set(work.make(), "cpuset.cpus", frozenset({0}))
    protected, besteffort = work.make("protected"), work.make("besteffort")
    work.set(protected, "cpu.weight", 3072.0)
    work.set(besteffort, knob, value)
    work.spawn(protected, SPIN)
    for _ in range(HOGS):
        work.spawn(besteffort, SPIN)
    until(lambda: work.cpu_s(protected) > 0.3)  # interpreters are up
    share, _ = work.race(protected, besteffort, cpu_s=2.0)
    assert share > floor


def test_without_protection_hogs_take_their_share(work: Workbench) -> None:
    """What the tests above would measure if the knobs did nothing."""
    work.set(work.make(), "cpuset.cpus", frozenset({0}))
    victim, hogs = work.make("victim"), work.make("hogs")
    work.spawn(victim, SPIN)
    work.spawn(hogs, SPIN)
    until(lambda: work.cpu_s(victim) > 0.2 and work.cpu_s(hogs) > 0.2)
    share, _ = work.race(victim, hogs, cpu_s=2.0)
    assert 0.35 < share < 0.65


def test_a_quota_throttles(work: Workbench) -> None:
    at = work.make("capped")
    work.set(at, "cpu.max", 0.2 * PERIOD_US)
    work.spawn(at, SPIN)
    counters = work.path(at, "cpu.stat")
    until(lambda: stat(counters)["nr_throttled"] >= 3)
    used, periods = work.cpu_s(at), stat(counters)["nr_periods"]
    until(lambda: stat(counters)["nr_periods"] >= periods + 10)
    share = (work.cpu_s(at) - used) / ((stat(counters)["nr_periods"] - periods) * PERIOD_US / 1e6)
    assert 0.1 < share < 0.3


def test_a_cpuset_places(work: Workbench) -> None:
    at = work.make("pinned")
    work.set(at, "cpuset.cpus", frozenset({1}))
    child = work.spawn(at, "import os; print(os.sched_getaffinity(0))")
    assert child.stdout is not None
    assert child.stdout.read() == "{1}\n"


def test_a_running_workload_goes_back_to_the_cpus_of_its_parent(work: Workbench) -> None:
    at = work.make("pinned")
    before = work.backend.save(work.setting(at, "cpuset.cpus"), at)
    assert before is not None
    work.set(at, "cpuset.cpus", frozenset({1}))
    child = work.spawn(at, "import os\nwhile True: print(sorted(os.sched_getaffinity(0)), flush=True); input()")
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "[1]\n"
    assert work.backend.write(work.setting(at, "cpuset.cpus"), frozenset(), at) == Applied(frozenset())
    print(file=child.stdin, flush=True)
    assert child.stdout.readline() == f"{sorted(os.sched_getaffinity(0))}\n"
    work.set(at, "cpuset.cpus", frozenset({0}))
    assert isinstance(work.backend.restore(work.setting(at, "cpuset.cpus"), before, at), Applied)
    print(file=child.stdin, flush=True)
    assert child.stdout.readline() == f"{sorted(os.sched_getaffinity(0))}\n"


def test_a_narrowed_group_takes_those_along_that_follow_it(work: Workbench) -> None:
    parent, child = work.make("tier"), work.make("tier", "workload")
    work.set(child, "cpuset.cpus", frozenset())
    work.set(parent, "cpuset.cpus", frozenset({1}))
    narrow = work.spawn(child, "import os; print(os.sched_getaffinity(0))")
    assert narrow.stdout is not None
    assert narrow.stdout.read() == "{1}\n"
    work.set(parent, "cpuset.cpus", frozenset())
    wide = work.spawn(child, "import os; print(len(os.sched_getaffinity(0)) > 1)")
    assert wide.stdout is not None
    assert wide.stdout.read() == "True\n"


def test_a_frozen_workload_stands_still_and_a_thawed_one_runs_on(work: Workbench) -> None:
    """The other hog is the clock: while it uses a quarter of a second of CPU time, the frozen one uses none."""
    frozen, other = work.make("frozen"), work.make("other")
    work.spawn(frozen, SPIN)
    work.spawn(other, SPIN)
    until(lambda: work.cpu_s(frozen) > 0.1 and work.cpu_s(other) > 0.1)
    freeze = work.setting(frozen, "cgroup.freeze")
    assert work.backend.write(freeze, 1.0, frozen) == Applied(1.0)
    stopped, begun = work.cpu_s(frozen), work.cpu_s(other)
    until(lambda: work.cpu_s(other) - begun > 0.25)
    assert work.cpu_s(frozen) - stopped < 0.05
    assert work.backend.write(freeze, 0.0, frozen) == Applied(0.0)
    until(lambda: work.cpu_s(frozen) - stopped > 0.1)


def test_parts_are_frozen_with_their_workload_and_hold_no_wish_of_their_own(work: Workbench) -> None:
    pod = work.make("pod")
    container = work.make("pod", "container")
    work.spawn(container, SPIN)
    until(lambda: work.cpu_s(container) > 0.1)
    work.set(pod, "cgroup.freeze", 1.0)
    assert work.backend.read(work.setting(container, "cgroup.freeze"), container) == 0.0
    assert work.backend.read(work.setting(pod, "cgroup.freeze"), pod) == 1.0
    work.set(pod, "cgroup.freeze", 0.0)
    before = work.cpu_s(container)
    until(lambda: work.cpu_s(container) > before)


def test_what_was_asked_of_a_frozen_workload_happens_once_it_is_thawed(work: Workbench) -> None:
    """Why a workload is thawed before it is evicted."""
    at = work.make("frozen")
    child = work.spawn(at, SPIN)
    until(lambda: work.cpu_s(at) > 0.1)
    work.set(at, "cgroup.freeze", 1.0)
    child.send_signal(signal.SIGTERM)
    assert child.poll() is None
    work.set(at, "cgroup.freeze", 0.0)
    assert child.wait(timeout=60) == -signal.SIGTERM
