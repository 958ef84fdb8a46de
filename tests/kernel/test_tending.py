"""What all threads of a workload have goes the way of every value, and newcomers are looked after on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.record.journal import Journal
from j10ce.kernel.tasks.backend import TaskBackend
from j10ce.kernel.tasks.cookie import Cookies
from j10ce.model.knob import Setting, Value, group
from j10ce.model.plan import Outcome, Plan, Refused, ValueChange
from j10ce.model.workload import Handle, Workload
from j10ce.testing.beside.fake_tasks import FakeCore, FakeTasks
from j10ce.testing.fake_kernel import FakeKernel

PATH = "system.slice/web.service"
WEB = Workload("default", "web", handle=Handle(PATH, made=False))
COOKIE = Setting(WEB.target, "sched.cookie")


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder, self.tasks = folder, FakeTasks(folder)
        self.core, self.cgroups = FakeCore(self.tasks), FakeKernel()
        self.cgroups.adopt(group("system.slice"), "system.slice")
        self.cgroups.adopt(WEB.target, PATH)
        self.tasks.start(PATH)
        self.tasks.now += 1
        self.start()

    def start(self) -> None:
        journal = Journal.open(self.folder / "journal", "this boot")
        threads = TaskBackend(
            self.tasks.roll, [Cookies(self.core)], proc=str(self.tasks.proc), clock=lambda: self.tasks.now
        )
        self.kernel = Kernel(
            self.cgroups, [self.cgroups, threads], journal, guard=Guard(), clock=lambda: self.tasks.now
        )
        self.kernel.track([WEB])

    def write(self, value: Value) -> Outcome:
        old = self.kernel.settings.get(COOKIE)
        return self.kernel.apply(Plan((ValueChange(COOKIE, old, value, "core-sched", "test"),)))

    def cookies(self) -> set[int]:
        return {t.cookie for t in self.tasks.alive.values()}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_newcomer_has_it_after_the_next_plan_whatever_that_holds(bench: Bench) -> None:
    assert not bench.write("ls").refused()
    bench.tasks.now += 1
    bench.tasks.start(PATH)
    assert bench.kernel.read_now([WEB.target]) == []
    assert bench.kernel.apply(Plan(())).results == ()
    assert len(bench.cookies()) == 1
    assert 0 not in bench.cookies()


def test_an_agent_that_comes_after_a_kill_goes_on_and_gives_all_back(bench: Bench) -> None:
    bench.write("ls")
    before = bench.cookies()
    bench.kernel.close()
    bench.tasks.now += 1
    bench.tasks.start(PATH)
    bench.start()
    assert bench.kernel.settings[COOKIE] == "ls"
    assert bench.kernel.read_now([WEB.target]) == []
    bench.kernel.apply(Plan(()))
    assert bench.cookies() == before
    assert not bench.kernel.revert().refused()
    assert bench.cookies() == {0}


def test_what_someone_else_changes_is_drift_and_never_tended(bench: Bench) -> None:
    bench.write("ls")
    bench.tasks.now += 1
    next(iter(bench.tasks.alive.values())).cookie = 0
    assert [d.theirs for d in bench.kernel.read_now([WEB.target])] == [""]
    bench.kernel.apply(Plan(()))
    assert bench.cookies() == {0}
    assert not bench.write("ls").refused()
    assert 0 not in bench.cookies()


def test_what_newcomers_refuse_is_said_with_the_plan(bench: Bench) -> None:
    bench.write("ls")
    bench.tasks.now += 1
    bench.tasks.alive[bench.tasks.start(PATH)].cookie = 0xF00D
    ((change, result),) = bench.kernel.apply(Plan(())).results
    assert isinstance(change, ValueChange)
    assert change.setting == COOKIE
    assert change.owner == "core-sched"
    assert isinstance(result, Refused)
    assert "1 of 2 threads: someone else gave them a cookie" in result.reason


def test_threads_that_may_not_be_looked_into_are_said_and_break_nothing(bench: Bench) -> None:
    bench.core.denied = frozenset(bench.tasks.alive)
    ((_, result),) = bench.write("ls").results
    assert isinstance(result, Refused)
    assert "CAP_SYS_PTRACE" in result.reason
    bench.core.denied = frozenset()
    bench.write("ls")
    bench.kernel.close()
    bench.core.denied = frozenset(bench.tasks.alive)
    bench.start()
    bench.kernel.sweep(bench.tasks.now)
    bench.kernel.apply(Plan(()))
    assert bench.kernel.revert().refused()


def test_hundreds_of_workloads_are_looked_after_in_turn(bench: Bench) -> None:
    bench.write("ls")
    bench.tasks.now += 1
    bench.tasks.start(PATH)
    assert bench.kernel._tending.run(bench.tasks.now, most=0) == []
    assert 0 in bench.cookies()
    assert bench.kernel._tending.run(bench.tasks.now, most=1) == []
    assert 0 not in bench.cookies()
