"""A failing controller keeps its last word for a grace time, then falls silent; a steady one is not asked twice."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from j10ce.agent.ring.contained import Contained
from j10ce.model.knob import Setting, group, workload
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot
from j10ce.testing import build

WISH = Proposal(Setting(workload("default", "web"), "cpu.max"), Bound.WANT, 50000.0, "test", Rank.POLICY, "because")


class Moody:
    name = "moody"

    def __init__(self, steady: bool = False) -> None:
        self.steady = steady
        self.fails = False
        self.asked = 0
        self.reads: list[Setting] = []

    def propose(self, snap: Snapshot, /) -> Iterable[Proposal]:
        self.asked += 1
        yield WISH
        if self.fails:
            raise RuntimeError("out of ideas")


def at(now: float, epoch: int = 0) -> Snapshot:
    return replace(build.snapshot(), now=now, epoch=epoch)


def test_what_it_said_last_stays_for_the_grace_time_and_then_lapses() -> None:
    moody = Moody()
    guard = Contained(moody, grace_s=30)
    assert guard.propose(at(0)) == (WISH,)
    moody.fails = True
    assert guard.propose(at(30)) == (WISH,)
    assert "out of ideas" in guard.fault
    assert guard.propose(at(31)) == ()


def test_one_that_never_worked_has_no_last_word() -> None:
    moody = Moody()
    moody.fails = True
    assert Contained(moody).propose(at(0)) == ()


def test_a_recovered_one_is_heard_again() -> None:
    moody = Moody()
    guard = Contained(moody)
    moody.fails = True
    guard.propose(at(0))
    moody.fails = False
    assert guard.propose(at(100)) == (WISH,)
    assert not guard.fault


def test_a_steady_one_is_asked_only_when_the_epoch_moves() -> None:
    moody = Moody(steady=True)
    guard = Contained(moody)
    for now, epoch in ((0, 1), (1, 1), (2, 1), (3, 2)):
        guard.propose(at(now, epoch))
    assert moody.asked == 2


def test_a_steady_one_is_asked_again_when_a_setting_that_it_reads_is_another() -> None:
    moody = Moody(steady=True)
    weight, quota = Setting(group("system.slice"), "cpu.weight"), Setting(group("system.slice"), "cpu.max")
    moody.reads = [weight]
    guard = Contained(moody)
    for values in ({weight: 1024.0}, {weight: 1024.0, quota: 5.0}, {weight: 2.0}, {weight: 2.0}):
        guard.propose(replace(at(0, epoch=1), settings=values))
    assert moody.asked == 2


def test_a_steady_one_that_failed_is_asked_again_at_once() -> None:
    moody = Moody(steady=True)
    moody.fails = True
    guard = Contained(moody)
    guard.propose(at(0, epoch=1))
    moody.fails = False
    assert guard.propose(at(1, epoch=1)) == (WISH,)


def test_an_unchanged_answer_is_the_same_object() -> None:
    guard = Contained(Moody())
    assert guard.propose(at(0)) is guard.propose(at(1))
