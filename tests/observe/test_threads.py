"""Threads that sit in a group beside ours: who of them is a rival."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from j10ce.model import knob
from j10ce.model.knob import ROOT
from j10ce.observe.groups import LOOK_AT_THREADS_EVERY_S, LOOK_EVERY_S
from j10ce.observe.siblings import TASKS
from j10ce.testing.cgroup_tree import fresh
from tests.observe.test_groups import World, adopted, made, names


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, {"system": fresh(1)})


def test_tasks_in_the_group_itself_compete_and_kernel_threads_do_not(world: World) -> None:
    world.tasks("", users=8, kernel=30)
    world.tree.arrived(made("web"))
    assert names(world.groups(), ROOT)[TASKS] == 8 * 1024.0


def test_threads_that_sleep_are_no_rivals(world: World) -> None:
    world.tasks("", users=200, busy=0.0)
    world.tree.arrived(made("web"))
    assert TASKS not in names(world.groups(), ROOT)


def test_threads_count_by_the_time_that_they_run_or_wait(world: World) -> None:
    world.tasks("", users=84, busy=0.0)
    world.tree.arrived(made("web"))
    world.groups()
    world.spent(1, 2.0)  # of two seconds
    world.spent(2, 1.0)
    world.spent(3, 1.0)
    assert names(world.groups(after_s=LOOK_AT_THREADS_EVERY_S), ROOT)[TASKS] == 2 * 1024.0


@pytest.mark.parametrize(
    ("nice", "policy", "shares"),
    [
        pytest.param(-20, "SCHED_OTHER", 88761, id="the most urgent"),
        pytest.param(-15, "SCHED_OTHER", 29154, id="urgent"),
        pytest.param(5, "SCHED_OTHER", 335, id="nice"),
        pytest.param(5, "SCHED_BATCH", 335, id="a batch thread"),
        pytest.param(19, "SCHED_OTHER", 15, id="the nicest"),
        pytest.param(-20, "SCHED_IDLE", 3, id="an idle thread, whatever its nice value"),
    ],
)
def test_a_thread_beside_an_adopted_group_weighs_what_the_kernel_gives_its_nice_value_and_policy(
    tmp_path: Path, nice: int, policy: str, shares: int
) -> None:
    world = World(tmp_path, {"system": {**fresh(1), "db": fresh(1)}})
    world.tasks("system", users=8)
    for tid in range(1, 9):
        world.schedule(tid, nice=nice, policy=getattr(os, policy))
    world.tree.arrived(adopted("db", "system/db"))
    counted = names(world.groups(), knob.group("system"))[TASKS]
    assert 8 * shares - 1 <= counted <= 8 * shares * 2 ** (1 / 8) + 1  # in steps of an eighth of a doubling


def test_a_thread_whose_nice_value_changes_weighs_so_at_the_next_look(world: World) -> None:
    world.tasks("", users=1)
    world.tree.arrived(made("web"))
    assert names(world.groups(), ROOT)[TASKS] == 1024.0
    world.schedule(1, nice=-15)
    assert names(world.groups(after_s=LOOK_AT_THREADS_EVERY_S), ROOT)[TASKS] >= 29154.0


def test_threads_of_one_session_weigh_as_one_in_the_root_where_the_scheduler_groups_them(world: World) -> None:
    world.tasks("", users=6, busy=0.0)
    (world.proc / "sys/kernel").mkdir(parents=True)
    (world.proc / "sys/kernel/sched_autogroup_enabled").write_text("1\n")
    for tid in range(1, 7):
        (world.proc / str(tid) / "autogroup").write_text(f"/autogroup-{7 if tid < 6 else 8} nice 0\n")
    world.tree.arrived(made("web"))
    world.groups()
    for tid in range(1, 7):
        world.spent(tid, 2.0)
    assert names(world.groups(after_s=LOOK_AT_THREADS_EVERY_S), ROOT)[TASKS] == 2 * 1024.0


def test_a_session_in_the_root_weighs_by_its_own_nice_value_not_by_those_of_its_threads(world: World) -> None:
    world.tasks("", users=4)
    (world.proc / "sys/kernel").mkdir(parents=True)
    (world.proc / "sys/kernel/sched_autogroup_enabled").write_text("1\n")
    for tid in range(1, 5):
        world.schedule(tid, nice=19)
        (world.proc / str(tid) / "autogroup").write_text("/autogroup-7 nice -15\n")
    world.tree.arrived(made("web"))
    assert 29154.0 <= names(world.groups(), ROOT)[TASKS] <= 29154 * 2 ** (1 / 8) + 1


def test_a_first_look_takes_the_mean_of_each_life(world: World) -> None:
    world.tasks("", users=4, busy=50.0)  # of the 100 s since the machine started
    world.tree.arrived(made("web"))
    assert names(world.groups(), ROOT)[TASKS] == 2 * 1024.0


def test_a_thread_that_rests_for_a_moment_is_still_counted(world: World) -> None:
    world.tasks("", users=2, busy=0.0)
    world.tree.arrived(made("web"))
    world.groups()
    world.spent(1, 2.0)
    world.groups(after_s=LOOK_AT_THREADS_EVERY_S)
    version = world.tree.version
    assert names(world.groups(after_s=LOOK_AT_THREADS_EVERY_S), ROOT)[TASKS] == 1024.0
    assert world.tree.version == version
    for _ in range(20):
        world.groups(after_s=LOOK_AT_THREADS_EVERY_S)
    assert TASKS not in names(world.groups(), ROOT)


def test_a_number_that_belongs_to_another_thread_now_is_no_negative_time(world: World) -> None:
    world.tasks("", users=1, busy=50.0)
    world.tree.arrived(made("web"))
    world.groups()
    world.spent(1, 2.0)
    assert names(world.groups(after_s=LOOK_AT_THREADS_EVERY_S), ROOT)[TASKS] == 1024.0


def test_processes_that_come_and_go_between_two_looks_count_by_how_many_are_ready_at_once(world: World) -> None:
    """A build starts one compiler after the other: each is young, and has run for a moment only."""
    world.tasks("", users=2, busy=0.0)
    world.tree.arrived(made("web"))
    world.groups()
    world.tasks("", users=19, busy=0.01)
    for tid in range(3, 19):  # 17 are new; one of them sleeps
        world.schedule(tid, state="R")
    counted = names(world.groups(after_s=LOOK_AT_THREADS_EVERY_S), ROOT)[TASKS]
    assert 16 * 1024 <= counted <= 16 * 1024 * 2 ** (1 / 8) + 1


def test_a_few_threads_more_or_less_move_nothing(world: World) -> None:
    world.tasks("", users=80)
    world.tree.arrived(made("web"))
    held = names(world.groups(), ROOT)[TASKS]
    version = world.tree.version
    for users in (81, 74, 82):
        world.tasks("", users=users)
        assert names(world.groups(after_s=LOOK_EVERY_S), ROOT)[TASKS] == held >= 82 * 1024.0
    assert world.tree.version == version
    world.tasks("", users=200)
    assert names(world.groups(after_s=LOOK_EVERY_S), ROOT)[TASKS] >= 200 * 1024.0
    assert world.tree.version > version
