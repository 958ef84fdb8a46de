"""One workload in the keeper's care, on a machine that runs threads by their policies."""

from __future__ import annotations

import os

import pytest

from j10ce.kernel.realtime.crowding import Crowding, Use
from j10ce.kernel.realtime.law import REST_S, SHARE, SPIN_S, TICK_S
from j10ce.kernel.realtime.machine import FAIR, OURS
from j10ce.kernel.realtime.spinners import LOOKED_AT_ONCE
from j10ce.kernel.realtime.ward import LISTED_S, TURNED_S, Ward
from j10ce.testing.beside.fake_machine import FakeMachine

WEB, DB = "/cg/web", "/cg/db"


class Care:
    """Wards that are looked at every 20 ms."""

    def __init__(self, machine: FakeMachine) -> None:
        self.machine, self.now = machine, 0.0
        self.whose: dict[int, Ward] = {}
        self.wards: list[Ward] = []
        self.crowding = Crowding(range(machine.cpus))

    def keep(self, top: str, rate: float) -> Ward:
        self.wards.append(Ward(self.machine.place(top), self.machine, self.now, self.whose))
        self.wards[-1].rate = rate
        return self.wards[-1]

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end - 1e-9:
            crowded = self.crowding.crowded(self.now)
            uses = [ward.measure(self.now, crowded=crowded) for ward in self.wards]
            self.crowding.take(use for use in uses if use)
            allowed = self.crowding.allowance(self.now)
            for ward in self.wards:
                ward.act(self.now, self.machine.births(), resting=not allowed)
            span = min(allowed or REST_S, end - self.now)
            self.machine.advance(span)
            self.now += span


@pytest.fixture
def care() -> Care:
    return Care(FakeMachine())


def policies(care: Care, top: str) -> set[int]:
    return {t.policy for t in care.machine.threads_of.values() if t.top == top}


def test_a_resting_workload_without_a_floor_any_more_is_fair(care: Care) -> None:
    care.machine.spawn(WEB, wants=0.0)
    ward = care.keep(WEB, 0.3)
    care.run(1.0)
    assert policies(care, WEB) == {OURS}
    ward.rate = 0.0
    care.run(0.1)
    assert policies(care, WEB) == {FAIR}


def test_a_workload_within_its_floor_is_real_time(care: Care) -> None:
    for _ in range(4):
        care.machine.spawn(WEB, wants=0.2)
    care.keep(WEB, 1.4)
    care.run(1.0)
    assert policies(care, WEB) == {OURS}


def test_a_workload_of_thousands_of_threads_does_not_keep_the_keeper_busy_and_its_spinner_is_caught(care: Care) -> None:
    for _ in range(3000):
        care.machine.spawn(WEB, wants=0.0)
    spinner = care.machine.spawn(WEB, spins=True)
    ward, looks = care.keep(WEB, 1.4), list[int]()
    for _ in range(100):
        before = care.machine.looks
        care.run(TICK_S)
        looks.append(care.machine.looks - before)
    assert 0 < max(looks) <= 2 * LOOKED_AT_ONCE
    assert ward.spinners == {spinner}


def test_a_workload_of_thousands_of_threads_beyond_its_floor_has_its_threads_turned_and_listed_seldom(
    care: Care, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper comes before all others: what it does must not grow with what a workload starts."""
    turned, listed, seconds = list[int](), list[int](), 2.0
    change, threads = care.machine.change, care.machine.threads
    monkeypatch.setattr(care.machine, "change", lambda t, policy: (turned.append(t), change(t, policy))[1])
    monkeypatch.setattr(care.machine, "threads", lambda at: (here := threads(at), listed.append(len(here or ())))[0])
    for _ in range(12_000):
        care.machine.spawn(WEB, wants=0.0)
    care.machine.spawn(WEB, wants=1.0)
    care.keep(WEB, 0.6)
    for _ in range(int(seconds / TICK_S)):
        care.machine.spawn(DB, wants=0.0)
        care.run(TICK_S)
    assert care.machine.realtime_s > 0
    assert len(turned) <= 2 * (12_001 + seconds / TURNED_S)
    assert sum(listed) <= 2 * 12_001 + seconds / LISTED_S


def test_beyond_its_floor_it_is_real_time_for_the_floor_only(care: Care) -> None:
    for _ in range(4):
        care.machine.spawn(WEB, wants=0.5)
    care.keep(WEB, 0.5)
    care.run(20.0)
    assert care.machine.realtime_s / 20.0 == pytest.approx(0.5, abs=0.05)


def test_without_a_floor_it_stays_fair(care: Care) -> None:
    care.machine.spawn(WEB)
    care.keep(WEB, 0.0)
    care.run(1.0)
    assert care.machine.realtime_s == 0.0


def test_threads_with_a_policy_of_their_own_are_left_alone(care: Care) -> None:
    own = {care.machine.spawn(WEB, wants=0.1, policy=p): p for p in (os.SCHED_BATCH, os.SCHED_IDLE, os.SCHED_FIFO)}
    plain = care.machine.spawn(WEB, wants=0.1)
    ward = care.keep(WEB, 1.0)
    care.run(0.5)
    assert ward.realtime == {plain}
    ward.release()
    assert {t: care.machine.threads_of[t].policy for t in own} == own


def test_a_thread_that_gives_up_a_policy_of_its_own_is_real_time(care: Care) -> None:
    thread = care.machine.spawn(WEB, wants=0.1, policy=os.SCHED_BATCH)
    care.keep(WEB, 1.0)
    care.run(0.5)
    care.machine.threads_of[thread].policy = FAIR
    care.run(1.5)
    assert care.machine.threads_of[thread].policy == OURS


def test_a_newcomer_joins_at_the_next_look(care: Care) -> None:
    care.machine.spawn(WEB, wants=0.1)
    ward = care.keep(WEB, 1.0)
    care.run(0.2)
    late = care.machine.spawn(WEB, wants=0.1)
    care.run(2 * TICK_S)
    assert late in ward.realtime


def test_who_does_not_sleep_is_fair_until_he_does(care: Care) -> None:
    spinner, other = care.machine.spawn(WEB, spins=True), care.machine.spawn(WEB, wants=0.2)
    ward = care.keep(WEB, 1.5)
    care.run(0.04 + SPIN_S + 2 * TICK_S)
    assert (ward.spinners, ward.realtime) == ({spinner}, {other})
    care.run(0.5)
    assert care.machine.threads_of[spinner].policy == FAIR
    care.machine.threads_of[spinner].wants = 0.2
    care.machine.threads_of[spinner].spins = False
    care.run(0.3)
    assert ward.realtime == {spinner, other}


@pytest.mark.parametrize("by_cpu", [True, False], ids=["counted by CPU", "by thread"])
def test_a_cpu_always_has_something_left_for_others(by_cpu: bool) -> None:
    care = Care(FakeMachine(1, by_cpu=by_cpu))
    for _ in range(3):
        care.machine.spawn(WEB, wants=1.0)
    fair = care.machine.spawn("/other", wants=0.0)
    care.keep(WEB, 5.0)
    care.run(0.1)
    before = care.machine.realtime_s
    care.run(5.0)
    assert (care.machine.realtime_s - before) / 5.0 <= SHARE + 0.01
    assert care.machine.threads_of[fair].policy == FAIR


def test_a_thread_that_moves_to_another_workload_is_real_time_there(care: Care) -> None:
    mover = care.machine.spawn(WEB, wants=0.1)
    web, db = care.keep(WEB, 0.5), care.keep(DB, 0.5)
    care.machine.spawn(DB, wants=0.1)
    care.run(0.2)
    care.machine.threads_of[mover].top = DB
    care.run(2.0)
    assert (mover in web.realtime, mover in db.realtime) == (False, True)
    assert care.machine.threads_of[mover].policy == OURS


def test_a_thread_that_leaves_is_fair_elsewhere(care: Care) -> None:
    leaver = care.machine.spawn(WEB, wants=0.1)
    care.keep(WEB, 0.5)
    care.run(0.2)
    care.machine.threads_of[leaver].top = "/elsewhere"
    care.run(1.0)
    assert care.machine.threads_of[leaver].policy == FAIR


def test_a_workload_that_is_gone_leaves_nothing_real_time(care: Care) -> None:
    thread = care.machine.spawn(WEB, wants=0.1)
    care.keep(WEB, 0.5)
    care.run(0.2)
    del care.machine.used[WEB]
    with pytest.raises(FileNotFoundError):
        care.run(TICK_S)
    assert care.machine.threads_of[thread].policy == FAIR


def test_a_thread_that_cannot_be_real_time_keeps_nobody_else_from_it(care: Care) -> None:
    """The sandbox of a pod has a cgroup of its own, without a budget."""
    threads = [care.machine.spawn(WEB, wants=0.1) for _ in range(5)]
    ward = care.keep(WEB, 0.9)
    care.machine.refuses, care.machine.able = "EPERM", {*threads[1:]}
    care.run(0.1)
    assert (ward.refused, ward.realtime) == ("", {*threads[1:]})
    care.machine.refuses = ""
    care.run(1.2)
    assert ward.realtime == {*threads}


def test_why_a_thread_could_not_be_real_time_is_kept(care: Care) -> None:
    care.machine.spawn(WEB, wants=0.1)
    ward = care.keep(WEB, 0.5)
    care.machine.refuses = "EPERM"
    care.run(0.1)
    assert (ward.refused, ward.realtime) == ("EPERM", frozenset())
    care.machine.refuses = ""
    care.run(0.2)
    assert ward.refused == ""


def test_a_cpu_that_nobody_knew_of_is_held_for_crowded_as_any_other() -> None:
    crowding = Crowding([0])
    crowding.take([Use(0.0, 0.1, {3: 0.1})])
    assert crowding.allowance(0.1) == 0.0
