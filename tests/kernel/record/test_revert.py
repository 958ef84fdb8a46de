"""Revert gives everything back, also after a kill, and only what is still ours to give."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.model.knob import ROOT, Setting, Value, group, workload
from j10ce.model.plan import Applied, Change, Enable, Gone, Join, Make, Outcome, Refused, Remove, Result, ValueChange
from j10ce.model.workload import Handle
from j10ce.testing.fake_kernel import Answer, FakeKernel
from tests.kernel.rig import BUILD, CONTROLLERS, DB, WEB, Killed, Mortal, Rig, machine

WEIGHT = Setting(DB.target, "cpu.weight")


def result_of(outcome: Outcome, setting: Setting) -> Result:
    return next(r for c, r in outcome.results if isinstance(c, ValueChange) and c.setting == setting)


@pytest.fixture
def adopted(rig: Rig) -> Rig:
    """DB with a weight of its own, to which we gave another."""
    rig.adopt(cpu__weight=2048.0)
    rig.kernel.track([DB])
    rig.write(DB.target, "cpu.weight", 512.0)
    return rig


def test_the_original_comes_back(adopted: Rig) -> None:
    assert result_of(adopted.kernel.revert(), WEIGHT) == Applied(2048.0)
    assert adopted.held(DB.target, "cpu.weight") == 2048.0
    assert adopted.kernel.settings[WEIGHT] == 2048.0


class Coarse(FakeKernel):
    """Counts memory in larger pages than its back end knows of."""

    def write(self, s: Setting, v: Value, at: Handle, /) -> Answer:
        return super().write(s, v // 65536 * 65536 if isinstance(v, float) else v, at)


def test_a_value_of_which_the_kernel_made_another_is_still_ours_to_give_back(tmp_path: Path) -> None:
    rig, low = Rig(tmp_path, Coarse()), Setting(DB.target, "memory.low")
    rig.adopt()
    rig.kernel.track([DB])
    rig.write(DB.target, "memory.low", 5 * 65536.0 + 4096)
    assert rig.held(DB.target, "memory.low") == 5 * 65536.0
    assert rig.sweep() == []
    rig.start()
    assert result_of(rig.kernel.revert(), low) == Applied(0.0)


def test_a_second_revert_has_nothing_to_do(adopted: Rig) -> None:
    adopted.kernel.revert()
    assert adopted.kernel.revert().results == ()


def test_what_someone_else_changed_is_left_and_reported(adopted: Rig) -> None:
    adopted.meddle(DB.target, "cpu.weight", 4096.0)
    result = result_of(adopted.kernel.revert(), WEIGHT)
    assert isinstance(result, Refused)
    assert "4096" in result.reason
    assert adopted.held(DB.target, "cpu.weight") == 4096.0
    assert result_of(adopted.kernel.revert(force=True), WEIGHT) == Applied(2048.0)


def test_a_held_setting_is_left_unless_forced(adopted: Rig) -> None:
    held = {WEIGHT: "by ann: incident 42"}
    refusal = Refused("held at 512 by ann: incident 42; left as it is (--force overrides)")
    assert result_of(adopted.kernel.revert(held=held), WEIGHT) == refusal
    assert adopted.held(DB.target, "cpu.weight") == 512.0
    assert isinstance(result_of(adopted.kernel.revert(held=held, force=True), WEIGHT), Applied)


def test_nothing_is_left_of_a_cgroup_that_goes_with_what_is_held_and_changed_in_it(rig: Rig) -> None:
    rig.build()
    weight, low = Setting(WEB.target, "cpu.weight"), Setting(WEB.target, "memory.low")
    rig.write(WEB.target, "cpu.weight", 512.0)
    rig.write(WEB.target, "memory.low", 4096.0)
    rig.meddle(WEB.target, "memory.low", 8192.0)
    outcome = rig.kernel.revert(held={weight: "by ann: incident 42"})
    assert (result_of(outcome, weight), result_of(outcome, low)) == (Gone(), Gone())
    assert rig.start().revert().results == ()


def ending(setting: Setting, original: Value) -> ValueChange:
    return ValueChange(setting, None, original, "journal", "nobody asks for it any more", ends=True)


def test_one_setting_goes_back_by_a_plan_and_is_ours_no_more(adopted: Rig) -> None:
    adopted.write(DB.target, "memory.low", 4096.0)
    adopted.apply(ending(WEIGHT, 2048.0))
    assert adopted.held(DB.target, "cpu.weight") == 2048.0
    assert adopted.held(DB.target, "memory.low") == 4096.0
    assert WEIGHT not in adopted.kernel.originals
    assert adopted.kernel.remains() == {}


def test_what_someone_else_has_made_of_it_is_left_and_not_tried_again(adopted: Rig) -> None:
    adopted.meddle(DB.target, "cpu.weight", 777.0)
    ((_, result),) = adopted.apply(ending(WEIGHT, 2048.0)).results
    assert isinstance(result, Refused)
    assert WEIGHT not in adopted.kernel.owed
    assert WEIGHT in adopted.kernel.originals, "an operator may still force it"
    assert result_of(adopted.kernel.revert(force=True), WEIGHT) == Applied(2048.0)


def test_what_a_workload_leaves_behind_is_known_until_it_is_back(adopted: Rig) -> None:
    slice_ = group("system.slice")
    assert isinstance(adopted.write(slice_, "memory.min", 4096.0 * 16), Applied)
    assert adopted.kernel.remains() == {}
    adopted.build()  # another one is managed now, and this one is not
    assert adopted.kernel.remains().keys() == {DB.target, slice_}
    assert adopted.kernel.settings[WEIGHT] == 512.0
    adopted.start().track([])  # also after a restart
    assert adopted.kernel.remains().keys() == {DB.target, slice_, WEB.target}
    adopted.apply(ending(WEIGHT, 2048.0), ending(Setting(slice_, "memory.min"), 0.0))
    assert adopted.kernel.remains().keys() == {WEB.target}


@pytest.mark.parametrize("restarted", [False, True])
def test_nothing_is_owed_to_a_cgroup_of_ours_that_someone_else_removed(rig: Rig, restarted: bool) -> None:
    rig.build()
    rig.write(WEB.target, "memory.min", 4096.0)
    del rig.fake.cgroups.by_path[WEB.handle.path]
    if restarted:
        rig.start()
    rig.kernel.track([])
    assert rig.kernel.remains() == {}
    assert Setting(WEB.target, "memory.min") not in rig.kernel.owed


def test_what_is_owed_to_a_cgroup_that_is_gone_from_one_hierarchy_only_stays_owed(rig: Rig) -> None:
    rig.build()
    rig.write(WEB.target, "memory.min", 4096.0)
    rig.kernel.track([])
    whole = rig.fake.identity
    rig.fake.identity = lambda at, c, /: None if c == "cpu" else whole(at, c)  # type: ignore[method-assign]
    assert rig.kernel.remains().keys() == {WEB.target}


def test_the_memory_that_the_kernel_keeps_for_a_workload_is_what_we_added(rig: Rig) -> None:
    rig.adopt(memory__min=4096.0)
    rig.kernel.track([DB])
    rig.write(group("system.slice"), "memory.min", 4096.0 * 11)
    rig.write(DB.target, "memory.min", 4096.0 * 10)
    assert rig.kernel.kept() == {DB.target: 4096.0 * 9}


def test_a_name_that_comes_back_elsewhere_leaves_nothing_behind(rig: Rig) -> None:
    rig.build()
    rig.write(WEB.target, "cpu.weight", 512.0)
    again = replace(WEB, handle=Handle(path="j10ce_besteffort/default_web"))
    rig.kernel.track([again])
    rig.apply(
        Make(group("j10ce_besteffort"), "j10ce_besteffort", "test"),
        Enable(group("j10ce_besteffort"), CONTROLLERS, "test"),
        Make(again.target, again.handle.path, "test"),
    )
    rig.write(again.target, "cpu.weight", 2048.0)
    assert not rig.start().revert().refused()
    assert set(rig.fake.cgroups.by_path) == {""}


def test_a_name_that_is_adopted_elsewhere_gives_the_first_cgroup_its_values_back(adopted: Rig) -> None:
    adopted.fake.adopt(workload("default", "other"), "other", {"cpu.weight": 4096.0})
    adopted.kernel.track([replace(DB, handle=Handle(path="other", made=False))])
    adopted.write(DB.target, "cpu.weight", 300.0)
    assert not adopted.start().revert().refused()
    assert adopted.fake["system.slice/db.service"].values["cpu.weight"] == 2048.0
    assert adopted.fake["other"].values["cpu.weight"] == 4096.0


def test_another_boot_is_none_of_our_business(adopted: Rig) -> None:
    adopted.boot = "the next boot"
    assert adopted.start().revert().results == ()
    assert adopted.fake["system.slice/db.service"].values["cpu.weight"] == 512.0


def test_another_cgroup_at_the_path_is_none_of_our_business(adopted: Rig) -> None:
    adopted.fake.vanish(DB.handle.path)
    adopted.fake.adopt(DB.target, DB.handle.path, {"cpu.weight": 512.0})
    adopted.start()
    assert result_of(adopted.kernel.revert(), WEIGHT) == Gone()
    assert adopted.fake[DB.handle.path].values["cpu.weight"] == 512.0


def test_another_cgroup_at_the_path_has_an_original_of_its_own(adopted: Rig) -> None:
    adopted.fake.vanish(DB.handle.path)
    adopted.fake.adopt(DB.target, DB.handle.path, {"cpu.weight": 3072.0})
    adopted.write(DB.target, "cpu.weight", 512.0)
    assert result_of(adopted.kernel.revert(), WEIGHT) == Applied(3072.0)


def test_populated_cgroups_are_left_and_reported(rig: Rig) -> None:
    rig.build()
    rig.apply(Join(WEB.target, 4711, "test"))
    outcome = rig.kernel.revert()
    refused = [c.target for c, _ in outcome.refused() if isinstance(c, Remove)]
    assert refused == [WEB.target, group("j10ce/standard"), group("j10ce")]
    assert rig.fake[WEB.handle.path].pids == {4711}
    rig.fake[WEB.handle.path].pids.clear()
    assert not rig.kernel.revert().refused()
    assert set(rig.fake.cgroups.by_path) == {""}


def test_controllers_that_others_use_stay_enabled(rig: Rig) -> None:
    rig.build()
    rig.fake.adopt(group("theirs"), "theirs")
    rig.fake["theirs"].enabled = frozenset({"memory"})
    outcome = rig.kernel.revert()
    assert [c.target for c, _ in outcome.refused() if not isinstance(c, ValueChange)] == [ROOT]
    assert rig.fake[""].enabled >= {"memory"}


def test_an_idle_group_gets_its_own_weight_back(rig: Rig) -> None:
    rig.adopt(cpu__weight=2048.0)
    rig.kernel.track([DB])
    rig.write(DB.target, "cpu.idle", 1.0)
    rig.start()
    rig.kernel.revert()
    assert rig.held(DB.target, "cpu.idle") == 0.0
    assert rig.held(DB.target, "cpu.weight") == 2048.0


# ---------------------------------------------------------------- architecture, invariant 4


NUMBERS = {
    "cpu.weight": st.sampled_from([102.0, 512.0, 3072.0]),
    "cpu.idle": st.sampled_from([0.0, 1.0]),
    "cpu.max": st.sampled_from([20_000.0, 150_000.0, math.inf]),
    "memory.max": st.sampled_from([float(1 << 26), float(1 << 30), math.inf]),
    "memory.low": st.sampled_from([0.0, float(1 << 20)]),
    "cpuset.cpus": st.sampled_from([frozenset(), frozenset({1}), frozenset({0, 1})]),
}
TIERS = [group("j10ce"), group("j10ce/standard")]
WRITES = st.sampled_from([DB.target, WEB.target, *TIERS]).flatmap(
    lambda target: st.sampled_from(sorted(NUMBERS)).flatmap(
        lambda knob: NUMBERS[knob].map(lambda v: ValueChange(Setting(target, knob), None, v, "test", "test"))
    )
)
PLANS = st.lists(st.lists(WRITES, max_size=6, unique_by=lambda c: c.setting), max_size=4)  # as the arbiter makes them
ORIGINALS = st.fixed_dictionaries({}, optional={k.replace(".", "__"): v for k, v in NUMBERS.items() if k != "cpu.idle"})


def test_a_kill_right_after_idle_was_cleared_loses_no_weight(tmp_path: Path) -> None:
    for lives in range(1, 9):
        fake = Mortal("v1")
        mortal = Rig(tmp_path / str(lives), fake)
        mortal.adopt(cpu__weight=512.0)
        mortal.kernel.track([DB])
        mortal.write(DB.target, "cpu.idle", 1.0)
        fake.lives = lives
        try:
            mortal.write(DB.target, "cpu.idle", 0.0)
            mortal.write(DB.target, "cpu.weight", 4096.0)
        except Killed:
            pass
        fake.lives = math.inf
        assert not mortal.start().revert().refused()
        assert fake.cgroups.value("cpu.weight", DB.handle.path) == 512.0


@given(
    originals=ORIGINALS,
    plans=PLANS,
    lives=st.integers(0, 60),
    version=st.sampled_from(["v1", "v2"]),
)
def test_revert_restores_the_machine_after_a_kill_at_any_point(
    tmp_path_factory: pytest.TempPathFactory,
    originals: dict[str, Value],
    plans: list[list[Change]],
    lives: int,
    version: str,
) -> None:
    fake = Mortal(version)  # type: ignore[arg-type]
    rig = Rig(tmp_path_factory.mktemp("kill"), fake)
    if version == "v1":
        originals.pop("cpuset__cpus", None)  # whoever uses a v1 cpuset has given it a set
    rig.adopt(**originals)
    before, enabled = machine(fake), fake[""].enabled
    fake.lives = lives
    try:
        rig.kernel.track([DB, WEB])
        rig.apply(*BUILD)
        for changes in plans:
            rig.apply(*changes)
    except Killed:
        pass
    fake.lives = math.inf
    outcome = rig.start().revert()
    assert not outcome.refused()
    assert machine(fake) == before
    assert fake[""].enabled == enabled
    assert rig.start().revert().results == ()


def test_revert_can_itself_be_killed(tmp_path: Path) -> None:
    for lives in range(18):
        fake = Mortal("v2")
        rig = Rig(tmp_path / str(lives), fake)
        rig.adopt(cpu__weight=2048.0)
        before = machine(fake)
        rig.kernel.track([DB, WEB])
        rig.apply(*BUILD)
        rig.write(DB.target, "cpu.weight", 512.0)
        rig.write(DB.target, "memory.low", 4096.0)
        fake.lives = lives
        try:
            rig.kernel.revert()
        except Killed:
            pass
        fake.lives = math.inf
        assert not rig.start().revert().refused()
        assert machine(fake) == before
