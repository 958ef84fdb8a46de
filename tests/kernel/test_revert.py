"""Revert gives everything back, also after a kill, and only what is still ours to give."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.model.knob import KNOBS, ROOT, Setting, Value, group
from j10ce.model.plan import Applied, Change, Gone, Join, Outcome, Refused, Remove, Result, ValueChange
from j10ce.testing.fake_kernel import FakeKernel
from tests.kernel.rig import BUILD, DB, WEB, Rig

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
    assert isinstance(result_of(adopted.kernel.revert(held={WEIGHT}), WEIGHT), Refused)
    assert adopted.held(DB.target, "cpu.weight") == 512.0
    assert isinstance(result_of(adopted.kernel.revert(held={WEIGHT}, force=True), WEIGHT), Applied)


def test_only_the_named_targets_are_reverted(adopted: Rig) -> None:
    adopted.kernel.track([DB, WEB])
    adopted.apply(*BUILD[1:])
    adopted.write(WEB.target, "cpu.weight", 512.0)
    adopted.kernel.revert(only={WEB.target})
    assert adopted.held(DB.target, "cpu.weight") == 512.0
    assert WEB.handle.path not in adopted.fake.cgroups.by_path


def test_a_group_raised_for_a_workload_is_abandoned_with_it(adopted: Rig) -> None:
    slice_ = group("system.slice")
    assert isinstance(adopted.write(slice_, "memory.low", 4096.0 * 16), Applied)
    assert adopted.kernel.abandoned() == frozenset()
    adopted.build()
    assert adopted.kernel.abandoned() == {slice_}, "our own groups are kept or removed by the plan"
    adopted.kernel.revert(only=adopted.kernel.abandoned())
    assert (adopted.held(slice_, "memory.low"), adopted.kernel.abandoned()) == (0.0, frozenset())


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


class Killed(Exception):
    """The process ends here, without any of its own clean-up."""


class Mortal(FakeKernel):
    """Ends the process before the n-th change that it makes."""

    lives = math.inf

    def _fault(self, what: str, path: str) -> Refused | Gone | None:
        self.lives -= 1
        if self.lives < 0:
            raise Killed
        return super()._fault(what, path)


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
ORIGINALS = st.fixed_dictionaries({}, optional={k.replace(".", "__"): v for k, v in NUMBERS.items() if k != "cpu.idle"})


def machine(fake: FakeKernel) -> dict[str, dict[str, Value]]:
    """Every cgroup with the values that differ from those of a fresh one."""
    everything = fake.cgroups
    return {
        path: {
            knob: everything.value(knob, path)
            for knob in KNOBS
            if path and everything.value(knob, path) != KNOBS[knob].default
        }
        for path in everything.by_path
    }


@given(
    originals=ORIGINALS,
    plans=st.lists(st.lists(WRITES, max_size=6), max_size=4),
    lives=st.integers(0, 40),
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
    for lives in range(12):
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
