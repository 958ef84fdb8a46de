"""One value for all tasks of a workload: forks, ends, moves and numbers that change hands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pytest

from j10ce.kernel.backend import Tends
from j10ce.kernel.tasks.backend import TaskBackend
from j10ce.kernel.tasks.cookie import Cookies
from j10ce.kernel.tasks.trait import TaskValue
from j10ce.model.knob import Setting, workload
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle
from j10ce.testing.beside.fake_tasks import FakeCore, FakeTasks

POD = "kubepods/pod1"
AT = Handle(POD)
COOKIE = Setting(workload("shop", "web"), "sched.cookie")
OTHER = Setting(workload("shop", "db"), "sched.cookie")


class Interrupted(Cookies):
    """Something happens right before the n-th giving, as it may at any time."""

    def __init__(self, core: FakeCore) -> None:
        super().__init__(core)
        self.before: list[Callable[[], object]] = []

    def write(self, tasks: Collection[int], value: TaskValue, /) -> Mapping[int, Refused]:
        if self.before:
            self.before.pop(0)()
        return super().write(tasks, value)


@pytest.fixture(params=[False, True], ids=["v2", "v1"])
def tasks(tmp_path: Path, request: pytest.FixtureRequest) -> FakeTasks:
    return FakeTasks(tmp_path, v1=request.param)


class Bench:
    def __init__(self, tasks: FakeTasks, core: FakeCore | None = None) -> None:
        self.tasks = tasks
        self.core = core or FakeCore(tasks)
        self.start()

    def start(self) -> None:
        """Another agent, which knows nothing."""
        self.trait = Interrupted(self.core)
        self.backend = TaskBackend(
            self.tasks.roll, [self.trait], proc=str(self.tasks.proc), clock=lambda: self.tasks.now
        )

    def cookies(self, path: str = POD) -> set[int]:
        return {t.cookie for t in self.tasks.alive.values() if t.path.startswith(path)}


@pytest.fixture
def bench(tasks: FakeTasks) -> Bench:
    for path in (POD, POD, f"{POD}/app"):
        tasks.start(path)
    tasks.now += 1
    return Bench(tasks)


def test_every_thread_of_the_workload_and_below_has_one_cookie(bench: Bench) -> None:
    assert bench.backend.read(COOKIE, AT) == ""
    assert bench.backend.write(COOKIE, "ls", AT) == Applied("ls")
    assert len(bench.cookies()) == 1
    assert bench.cookies() != {0}
    assert bench.backend.read(COOKIE, AT) == "ls"


def test_workloads_of_one_group_share_a_cookie_and_those_of_another_do_not(bench: Bench) -> None:
    bench.tasks.start("kubepods/pod2")
    bench.tasks.start("kubepods/pod3")
    for path, name in ((POD, "ls"), ("kubepods/pod2", "ls"), ("kubepods/pod3", "be")):
        assert bench.backend.write(COOKIE, name, Handle(path)) == Applied(name)
    assert bench.cookies() == bench.cookies("kubepods/pod2") != bench.cookies("kubepods/pod3")


def test_a_newcomer_is_no_drift_and_has_it_after_the_next_look(bench: Bench) -> None:
    bench.backend.write(COOKIE, "ls", AT)
    bench.tasks.now += 1
    bench.tasks.start(POD)  # as `kubectl exec` brings one in
    assert bench.backend.read(COOKIE, AT) == "ls"
    assert bench.backend.tend(COOKIE, "ls", AT) is None
    assert len(bench.cookies()) == 1


def test_a_restarted_container_is_no_drift(bench: Bench) -> None:
    bench.backend.write(COOKIE, "ls", AT)
    for task in list(bench.tasks.alive):
        bench.tasks.end(task)
    assert bench.backend.read(COOKIE, AT) == "ls"
    bench.tasks.now += 1
    bench.tasks.start(POD)
    assert bench.backend.read(COOKIE, AT) == "ls"
    assert bench.backend.tend(COOKIE, "ls", AT) is None
    assert 0 not in bench.cookies()


def test_whoever_had_it_and_has_it_no_more_is_drift(bench: Bench) -> None:
    bench.backend.write(COOKIE, "ls", AT)
    bench.tasks.now += 1
    next(iter(bench.tasks.alive.values())).cookie = 0
    assert bench.backend.read(COOKIE, AT) == ""
    assert bench.backend.tend(COOKIE, "ls", AT) is None
    assert 0 in bench.cookies(), "tending does not fight"


def test_forks_while_it_is_given_have_it_too(bench: Bench) -> None:
    bench.trait.before = [lambda: bench.tasks.start(POD), lambda: bench.tasks.start(POD)]
    assert bench.backend.write(COOKIE, "ls", AT) == Applied("ls")
    assert len(bench.cookies()) == 1


def test_a_workload_that_forks_for_ever_ends_no_loop(bench: Bench) -> None:
    bench.trait.before = [lambda: bench.tasks.start(POD)] * 100
    assert bench.backend.write(COOKIE, "ls", AT) == Applied("ls")
    assert len(bench.trait.before) > 80


def test_the_next_owner_of_a_number_keeps_what_it_had(bench: Bench) -> None:
    first = min(bench.tasks.alive)

    def reuse() -> None:
        bench.tasks.end(first)
        bench.tasks.now += 1
        bench.tasks.start("system.slice/sshd.service", task=first)

    bench.trait.before = [reuse]
    assert bench.backend.write(COOKIE, "ls", AT) == Applied("ls")
    assert bench.tasks.alive[first].cookie == 0


def test_a_number_that_another_thread_of_the_workload_got_is_a_newcomer(bench: Bench) -> None:
    first = min(bench.tasks.alive)
    bench.backend.write(COOKIE, "ls", AT)
    bench.tasks.end(first)
    bench.tasks.now += 1
    bench.tasks.start(POD, task=first)
    assert bench.backend.read(COOKIE, AT) == "ls"
    bench.backend.tend(COOKIE, "ls", AT)
    assert len(bench.cookies()) == 1


def test_one_that_moved_away_leaves_it_behind(bench: Bench) -> None:
    bench.backend.write(COOKIE, "ls", AT)
    moved = min(bench.tasks.alive)
    bench.tasks.move(moved, "user.slice")
    bench.tasks.now += 1
    bench.backend.tend(COOKIE, "ls", AT)
    assert bench.tasks.alive[moved].cookie == 0


def test_one_that_moved_to_a_workload_of_the_same_group_keeps_it(bench: Bench) -> None:
    bench.tasks.start("kubepods/pod2")
    bench.backend.write(COOKIE, "ls", AT)
    bench.backend.write(OTHER, "ls", Handle("kubepods/pod2"))
    moved = min(bench.tasks.alive)
    bench.tasks.move(moved, "kubepods/pod2")
    bench.tasks.now += 1
    bench.backend.tend(OTHER, "ls", Handle("kubepods/pod2"))
    bench.backend.tend(COOKIE, "ls", AT)
    assert bench.cookies("kubepods/pod2") == bench.cookies()
    assert 0 not in bench.cookies("kubepods/pod2")


def test_all_have_none_again_after_a_revert(bench: Bench) -> None:
    before = bench.backend.save(COOKIE, AT)
    bench.backend.write(COOKIE, "ls", AT)
    bench.tasks.now += 1
    bench.tasks.start(POD, parent=min(bench.tasks.alive))
    assert before is not None
    assert bench.backend.restore(COOKIE, before, AT) == Applied("")
    assert bench.cookies() == {0}
    assert bench.backend.save(COOKIE, AT) == before


def test_a_restart_knows_its_own_cookie_again(bench: Bench) -> None:
    bench.backend.write(COOKIE, "ls", AT)
    before = bench.cookies()
    bench.tasks.now += 1
    bench.start()
    bench.backend.recall(COOKIE, "ls", AT)
    assert bench.backend.read(COOKIE, AT) == "ls"
    bench.tasks.start(POD)
    bench.backend.tend(COOKIE, "ls", AT)
    assert bench.cookies() == before


def test_without_its_journal_an_agent_takes_its_own_cookie_for_a_strangers_and_leaves_it(bench: Bench) -> None:
    bench.backend.write(COOKIE, "ls", AT)
    before = bench.cookies()
    bench.start()
    read = bench.backend.read(COOKIE, AT)
    assert isinstance(read, str)
    assert read.startswith("#")
    answer = bench.backend.write(COOKIE, "ls", AT)
    assert isinstance(answer, Refused)
    assert "3 of 3 threads: someone else" in answer.reason
    assert bench.cookies() == before


def test_one_that_lives_outside_our_namespace_is_said(bench: Bench) -> None:
    (bench.tasks.directory(POD) / bench.tasks._list).write_text("0\n")
    answer = bench.backend.write(COOKIE, "ls", AT)
    assert isinstance(answer, Refused)
    assert "hostPID" in answer.reason


def test_one_that_may_not_be_looked_into_is_said(tasks: FakeTasks) -> None:
    first = tasks.start(POD)
    tasks.start(POD)

    class Denying(FakeCore):
        def hand_to(self, task: int, /) -> None:
            if task == first:
                raise PermissionError(1, "denied")
            super().hand_to(task)

    answer = Bench(tasks, Denying(tasks)).backend.write(COOKIE, "ls", AT)
    assert isinstance(answer, Refused)
    assert answer.reason.startswith("1 of 2 threads")
    assert "PTRACE" in answer.reason


@pytest.mark.parametrize(("number", "needs"), [(22, "CONFIG_SCHED_CORE"), (19, "SMT"), (1, "CAP_SYS_PTRACE")])
def test_what_a_machine_lacks_is_named(tasks: FakeTasks, number: int, needs: str) -> None:
    support = Cookies(FakeCore(tasks, fails=number)).support()
    assert not support.ok
    assert needs in support.needs


def test_a_workload_that_is_gone_is_gone(bench: Bench) -> None:
    nowhere = Handle("kubepods/pod9")
    assert bench.backend.read(COOKIE, nowhere) is None
    assert bench.backend.save(COOKIE, nowhere) is None
    assert bench.backend.write(COOKIE, "ls", nowhere) == Gone()
    assert bench.backend.restore(COOKIE, '{"most":""}', nowhere) == Gone()
    assert bench.backend.tend(COOKIE, "ls", nowhere) is None


def test_what_is_no_text_is_refused(bench: Bench) -> None:
    assert isinstance(bench.backend.write(COOKIE, 1.0, AT), Refused)
    assert isinstance(bench.backend.write(COOKIE, frozenset({1}), AT), Refused)


def test_the_back_end_tends(bench: Bench) -> None:
    assert isinstance(bench.backend, Tends)
