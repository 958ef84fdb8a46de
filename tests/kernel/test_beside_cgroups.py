"""Targets that are no cgroups go the same way: planned, journalled, read back, noticed, given back."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.kernel.guard import Guard
from j10ce.kernel.kernel import Kernel
from j10ce.kernel.node.estate import NodeEstate
from j10ce.kernel.node.sysctl import Sysctls
from j10ce.kernel.record.journal import Journal
from j10ce.model.knob import NODE, ROOT, Setting, Value, resctrl
from j10ce.model.plan import Applied, Bound, Change, Make, Plan, Proposal, Rank, Refused, Remove, ValueChange
from j10ce.model.snapshot import Groups, Snapshot
from j10ce.plan.arbiter import arbitrate
from j10ce.testing import build
from j10ce.testing.fake_estate import FakeEstate
from j10ce.testing.fake_kernel import FakeKernel

BE = resctrl("be")
WAYS = Setting(BE, "resctrl.l3", "0")
FREE = Setting(NODE, "vm.min_free_kbytes")


class Bench:
    """A kernel with cgroups, cache groups and the machine's parameters; a restart keeps the journal alone."""

    def __init__(self, folder: Path) -> None:
        self.sysctl = folder / "vm" / "min_free_kbytes"
        self.sysctl.parent.mkdir()
        self.sysctl.write_text("67584\n")
        (folder / "vm" / "watermark_scale_factor").write_text("10\n")
        self.folder, self.caches, self.cgroups = folder, FakeEstate(), FakeKernel()
        self.start()

    def start(self) -> None:
        journal = Journal.open(self.folder / "journal", "this boot")
        backends = [self.cgroups, self.caches, Sysctls(self.folder)]
        estates = [self.caches, NodeEstate()]
        self.kernel = Kernel(self.cgroups, backends, journal, guard=Guard(), estates=estates)
        self.kernel.track([])

    def snapshot(self) -> Snapshot:
        self.kernel.track([])
        snap = build.snapshot(groups=Groups({ROOT: build.group("", owned=False)}))
        return Snapshot(
            snap.now, snap.wall, snap.node, snap.groups, snap.readings,
            settings=self.kernel.settings, support=self.kernel.support, pieces=self.kernel.pieces,
        )  # fmt: skip

    def decide(self, *proposals: Proposal) -> Plan:
        return arbitrate(proposals, self.snapshot(), (), self.kernel.quantise, originals=self.kernel.owed)

    def run(self, *proposals: Proposal) -> tuple[Change, ...]:
        plan = self.decide(*proposals)
        outcome = self.kernel.apply(plan)
        assert not outcome.refused(), outcome
        return plan.changes


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def want(setting: Setting, value: Value, rank: Rank = Rank.POLICY) -> Proposal:
    return Proposal(setting, Bound.WANT, value, "test", rank, "a test wants it")


def test_a_group_is_made_for_its_first_value_and_the_next_plan_is_empty(bench: Bench) -> None:
    made, *values = bench.run(want(WAYS, frozenset({0, 1})))
    assert isinstance(made, Make)
    assert made.target == BE
    assert [c.new for c in values if isinstance(c, ValueChange)] == [frozenset({0, 1})]
    assert bench.caches.groups["be"][WAYS] == frozenset({0, 1})
    assert bench.decide(want(WAYS, frozenset({0, 1}))).empty


def test_a_group_that_nobody_wants_any_more_is_removed(bench: Bench) -> None:
    bench.run(want(WAYS, frozenset({0})))
    assert [type(c) for c in bench.run()] == [Remove]
    assert not bench.caches.groups
    assert not bench.kernel.originals


def test_a_group_of_someone_else_gets_its_value_back_and_stays(bench: Bench) -> None:
    bench.caches.make(BE, build.handle("be"))
    bench.caches.write(WAYS, frozenset({4, 5}), build.handle("be"))
    bench.run(want(WAYS, frozenset({0})))
    bench.run()
    assert bench.caches.groups["be"][WAYS] == frozenset({4, 5})


def test_each_instance_has_a_value_of_its_own(bench: Bench) -> None:
    other = WAYS._replace(instance="1")
    bench.run(want(WAYS, frozenset({0})), want(other, frozenset({1})))
    assert bench.kernel.settings[WAYS] == frozenset({0})
    assert bench.kernel.settings[other] == frozenset({1})
    bench.run(want(other, frozenset({1})))
    assert bench.kernel.settings[WAYS] == frozenset()


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(Setting(BE, "resctrl.l3"), id="a knob with instances, without one"),
        pytest.param(Setting(BE, "cpu.max"), id="a cgroup's knob beside cgroups"),
        pytest.param(Setting(NODE, "resctrl.l3", "0"), id="a cache group's knob on the node"),
        pytest.param(Setting(NODE, "vm.min_free_kbytes", "0"), id="an instance of a knob that has none"),
    ],
)
def test_a_setting_that_its_target_cannot_have_is_left_out_with_a_note(bench: Bench, setting: Setting) -> None:
    plan = bench.decide(want(setting, 50.0))
    assert plan.empty
    assert any("no valid value" in note for note in plan.notes)


def test_after_a_kill_the_next_agent_gives_everything_back(bench: Bench) -> None:
    bench.run(want(WAYS, frozenset({0})), want(FREE, 131072.0))
    assert bench.sysctl.read_text().strip() == "131072"
    bench.start()
    bench.kernel.revert()
    assert bench.sysctl.read_text().strip() == "67584"
    assert not bench.caches.groups


def test_a_parameter_that_nobody_asks_for_any_more_goes_back(bench: Bench) -> None:
    bench.run(want(FREE, 131072.0))
    bench.run()
    assert bench.sysctl.read_text().strip() == "67584"
    assert not bench.kernel.originals


def test_a_parameter_beyond_its_range_is_moved_into_it(bench: Bench) -> None:
    bench.run(want(FREE, 5.0))
    assert bench.sysctl.read_text().strip() == "10240"


def test_who_else_writes_a_parameter_is_noticed_and_answered(bench: Bench) -> None:
    bench.run(want(FREE, 131072.0))
    bench.sysctl.write_text("99999\n")
    (drift,) = bench.kernel.read_now([NODE])
    assert (drift.ours, drift.theirs) == (131072.0, 99999.0)
    bench.run(want(FREE, 131072.0))
    assert bench.sysctl.read_text().strip() == "131072"


def test_advice_does_not_move_the_machine(bench: Bench) -> None:
    assert bench.decide(want(FREE, 131072.0, Rank.ADVICE)).empty


def test_where_there_is_no_room_the_refusal_says_so_and_nothing_is_owed(bench: Bench) -> None:
    bench.caches.room = 0
    outcome = bench.kernel.apply(bench.decide(want(WAYS, frozenset({0}))))
    (_, refused), *_ = outcome.refused()
    assert refused == Refused("no room for be: the machine has 0 groups")
    bench.start()
    assert not bench.kernel.originals


def test_a_group_that_was_there_is_never_removed(bench: Bench) -> None:
    bench.caches.make(BE, build.handle("be"))
    outcome = bench.kernel.apply(Plan((Remove(BE, "test"),)))
    assert isinstance(outcome.results[0][1], Refused)
    assert bench.kernel.apply(Plan((Make(BE, "be", "test"),))).results[0][1] == Applied("be")
