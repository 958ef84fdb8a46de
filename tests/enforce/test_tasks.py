"""What every thread has by itself, on real threads: forks while it is given, newcomers, everything back."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from j10ce.kernel.tasks.backend import TaskBackend
from j10ce.kernel.tasks.cookie import Cookies
from j10ce.kernel.tasks.roll import Roll
from j10ce.kernel.tasks.trait import TaskValue, Trait
from j10ce.model.knob import Setting, Support, group
from j10ce.model.plan import Applied, Refused
from j10ce.model.workload import Handle
from tests.enforce.workbench import SPIN, Workbench, until

DIFFERENT = 0.6  # of the CPU time that two threads of one group get on one core
FORKS = """
import os
while True:
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        os._exit(0)
    os.wait()
"""
THREADS = (
    "import threading\nfor _ in range(8): threading.Thread(target=input).start()\nprint('up', flush=True)\ninput()"
)


class Slack:
    """Timer slack: a number that every thread of every kernel has, and that its children inherit."""

    knob = "resctrl.group"
    processes = False
    default: TaskValue = 50_000.0

    def support(self) -> Support:
        return Support(True, "proc")

    def quantise(self, value: TaskValue, /) -> TaskValue:
        return value

    def read(self, tasks: Collection[int], /) -> Mapping[int, TaskValue]:
        held: dict[int, TaskValue] = {}
        for task in tasks:
            with suppress(FileNotFoundError, ProcessLookupError):
                held[task] = float(Path(f"/proc/{task}/timerslack_ns").read_text())
        return held

    def write(self, tasks: Collection[int], value: TaskValue, /) -> Mapping[int, Refused]:
        for task in tasks:
            with suppress(FileNotFoundError, ProcessLookupError):
                Path(f"/proc/{task}/timerslack_ns").write_text(f"{value:.0f}")
        return {}


class Threads:
    def __init__(self, work: Workbench, trait: Trait) -> None:
        self.roll, self.trait = Roll(work.hierarchies), trait
        self.backend = TaskBackend(self.roll, [trait])

    def setting(self, at: Handle) -> Setting:
        return Setting(group(at.path), self.trait.knob)

    def held(self, at: Handle) -> set[TaskValue]:
        return set(self.trait.read(self.roll.tasks(at, processes=False) or ()).values())


@pytest.fixture
def slack(work: Workbench) -> Threads:
    return Threads(work, Slack())


def test_all_threads_of_a_workload_and_below_have_it_and_have_their_own_again(work: Workbench, slack: Threads) -> None:
    at, inner = work.make("pod"), work.make("pod", "app")
    child = work.spawn(inner, THREADS)
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    setting = slack.setting(at)
    before = slack.backend.save(setting, at)
    assert before is not None
    assert slack.backend.write(setting, 70_000.0, at) == Applied(70_000.0)
    assert slack.held(at) == {70_000.0}
    assert len(slack.roll.tasks(at, processes=False) or ()) == 9
    assert slack.backend.restore(setting, before, at) == Applied(50_000.0)
    assert slack.held(at) == {50_000.0}


def test_a_workload_that_forks_all_the_time_has_it_everywhere_in_the_end(work: Workbench, slack: Threads) -> None:
    at = work.make("pod")
    for _ in range(3):
        work.spawn(at, FORKS)
    until(lambda: len(slack.roll.tasks(at, processes=False) or ()) >= 3)
    setting = slack.setting(at)
    assert slack.backend.write(setting, 70_000.0, at) == Applied(70_000.0)
    assert slack.held(at) == {70_000.0}
    mine = slack.trait.read([os.getpid()])[os.getpid()]
    for _ in range(50):
        assert slack.backend.tend(setting, 70_000.0, at) is None
        assert slack.backend.read(setting, at) == 70_000.0
    assert mine == slack.trait.read([os.getpid()])[os.getpid()]


def test_a_newcomer_gets_it_and_is_no_drift(work: Workbench, slack: Threads) -> None:
    at = work.make("pod")
    work.spawn(at, SPIN)
    until(lambda: bool(slack.roll.tasks(at, processes=False)))
    setting = slack.setting(at)
    slack.backend.write(setting, 70_000.0, at)
    work.spawn(at, SPIN)
    until(lambda: len(slack.roll.tasks(at, processes=False) or ()) == 2)
    assert slack.backend.read(setting, at) == 70_000.0
    assert slack.held(at) == {50_000.0, 70_000.0}
    slack.backend.tend(setting, 70_000.0, at)
    assert slack.held(at) == {70_000.0}


def test_hyperthreads_of_one_core_never_run_two_groups_at_a_time(work: Workbench) -> None:
    cookies = Threads(work, Cookies())
    if not (offered := cookies.backend.knobs()["sched.cookie"]).ok:
        pytest.skip(f"Unsupported: core_sched needs {offered.needs}")
    siblings = Path("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list").read_text().replace("-", ",")
    places = [work.make("a"), work.make("b")]
    for at, cpu in zip(places, siblings.split(",")[:2], strict=True):
        work.spawn(at, f"import os\nos.sched_setaffinity(0, {{{int(cpu)}}})\n{SPIN}")
    until(lambda: all(work.cpu_s(at) > 0.3 for at in places))

    def used_while(first: str, second: str) -> float:
        """CPU seconds of both while the clock of the machine runs on by three."""
        for at, name in zip(places, (first, second), strict=True):
            assert cookies.backend.write(cookies.setting(at), name, at) == Applied(name)
            assert cookies.backend.read(cookies.setting(at), at) == name
        begun, before = uptime(), sum(map(work.cpu_s, places))
        until(lambda: uptime() >= begun + 3.0)
        return (sum(map(work.cpu_s, places)) - before) / (uptime() - begun)

    together, apart = used_while("one", "one"), used_while("one", "other")
    assert apart <= DIFFERENT * together
    assert used_while("", "") > apart


def uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])
