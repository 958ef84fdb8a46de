"""Apply: journal, write, read back; whatever the machine does is an answer, never an exception."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.kernel.process import proof
from j10ce.model.knob import KNOBS, ROOT, Setting, group, workload
from j10ce.model.plan import (
    Applied,
    Enable,
    Gone,
    Join,
    Make,
    Plan,
    Refused,
    Remove,
    Unchanged,
    ValueChange,
)
from j10ce.testing.fake_kernel import FakeKernel
from tests.kernel.rig import BUILD, CONTROLLERS, DB, WEB, Rig, full_disk, machine

WEIGHT = Setting(WEB.target, "cpu.weight")


def test_a_plan_is_carried_out_in_its_order(rig: Rig) -> None:
    rig.kernel.track([WEB])
    write = ValueChange(WEIGHT, None, 512.0, "floors", "why")
    outcome = rig.apply(*BUILD, write)
    assert [change for change, _ in outcome.results] == [*BUILD, write]
    assert outcome.refused() == []
    assert rig.held(WEB.target, "cpu.weight") == 512.0


def test_settings_are_what_was_read_back(rig: Rig) -> None:
    rig.build()
    rig.write(WEB.target, "memory.max", float((1 << 30) + 5))
    assert rig.kernel.settings[Setting(WEB.target, "memory.max")] == float(1 << 30)
    assert rig.kernel.settings[WEIGHT] == KNOBS["cpu.weight"].default


def test_settings_that_were_handed_out_do_not_change(rig: Rig) -> None:
    rig.build()
    before = rig.kernel.settings
    rig.write(WEB.target, "cpu.weight", 512.0)
    assert before[WEIGHT] == 1024.0
    assert rig.kernel.settings[WEIGHT] == 512.0


def test_clearing_idle_shows_the_weight_that_the_kernel_left(rig: Rig) -> None:
    rig.build()
    rig.write(WEB.target, "cpu.weight", 512.0)
    rig.write(WEB.target, "cpu.idle", 1.0)
    rig.write(WEB.target, "cpu.idle", 0.0)
    assert rig.kernel.settings[WEIGHT] == 1024.0


def test_the_first_write_records_the_original_once(rig: Rig) -> None:
    rig.build()
    rig.write(WEB.target, "cpu.weight", 512.0, owner="floors")
    rig.write(WEB.target, "cpu.weight", 256.0, owner="limits")
    assert rig.kernel.originals[WEIGHT] == 1024.0
    assert rig.kernel.owners[WEIGHT] == "limits"


def test_an_unsupported_knob_is_refused_with_what_it_needs(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FakeKernel("v1"))
    rig.build()
    result = rig.write(WEB.target, "memory.low", 1e6)
    assert result == Refused("memory.low is not available here; it needs cgroup v2")


def test_an_unknown_target_is_gone(rig: Rig) -> None:
    assert rig.write(workload("default", "stranger"), "cpu.weight", 512.0) == Gone()


@pytest.mark.parametrize("error", ["EBUSY", "EINVAL", "ENOSPC", "EROFS", "EACCES"])
def test_a_refused_write_leaves_the_setting_known_as_it_was(rig: Rig, error: str) -> None:
    rig.build()
    rig.fake.fail(error)
    result = rig.write(WEB.target, "cpu.weight", 512.0)
    assert isinstance(result, Refused)
    assert error in result.reason
    assert rig.kernel.settings[WEIGHT] == 1024.0
    assert isinstance(rig.write(WEB.target, "cpu.weight", 512.0), Applied)


@pytest.mark.parametrize("step", range(1, len(BUILD) + 2))
@pytest.mark.parametrize("error", ["gone", "EBUSY"])
def test_a_failure_at_any_step_is_reported_and_the_rest_goes_on(rig: Rig, step: int, error: str) -> None:
    rig.kernel.track([WEB])
    for done in BUILD[:step]:
        rig.apply(done)
    rig.fake.fail(error)
    rest = (
        *BUILD[step:],
        ValueChange(WEIGHT, None, 512.0, "test", "test"),
        ValueChange(Setting(WEB.target, "memory.max"), None, 1e9, "test", "test"),
    )
    outcome = rig.apply(*rest)
    assert len(outcome.results) == len(rest)
    assert isinstance(outcome.results[0][1], Refused | Gone)
    rig.fake.faults.clear()
    assert not rig.kernel.revert().refused()
    assert set(rig.fake.cgroups.by_path) == {""}


def test_a_cgroup_that_vanishes_takes_its_settings_along(rig: Rig) -> None:
    rig.build()
    rig.fake.vanish(WEB.handle.path)
    assert rig.write(WEB.target, "cpu.weight", 512.0) == Gone()
    assert WEIGHT not in rig.kernel.settings
    assert rig.sweep() == []
    assert not [s for s in rig.kernel.settings if s.target == WEB.target]


def test_enabling_what_is_enabled_changes_nothing(rig: Rig) -> None:
    rig.build()
    ((_, result),) = rig.apply(Enable(group("j10ce"), CONTROLLERS, "again")).results
    assert isinstance(result, Unchanged)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(Make(group("elsewhere"), "elsewhere", "test"), id="made elsewhere"),
        pytest.param(Remove(group("user.slice"), "test"), id="removed what is not ours, though it is empty"),
        pytest.param(Enable(group("user.slice"), CONTROLLERS, "test"), id="enabled for strangers"),
    ],
)
def test_structure_outside_our_tree_is_refused(rig: Rig, change: Make | Remove | Enable) -> None:
    rig.adopt()
    rig.fake.adopt(group("user.slice"), "user.slice")
    before = machine(rig.fake)
    ((_, result),) = rig.apply(change).results
    assert isinstance(result, Refused)
    assert machine(rig.fake) == before


def test_a_number_that_another_process_has_by_now_moves_nobody(rig: Rig) -> None:
    rig.build()
    stale, true = f"1/{os.getuid()}", proof(os.getpid())
    ((_, result),) = rig.apply(Join(WEB.target, os.getpid(), "test", stale)).results
    assert isinstance(result, Gone)
    assert rig.fake[WEB.handle.path].pids == set()
    rig.apply(Join(WEB.target, os.getpid(), "test", true))
    assert rig.fake[WEB.handle.path].pids == {os.getpid()}


def test_processes_join_and_keep_their_cgroup_from_being_removed(rig: Rig) -> None:
    rig.build()
    joined, removed = rig.apply(Join(WEB.target, 4711, "test"), Remove(WEB.target, "test")).results
    assert isinstance(joined[1], Applied)
    assert isinstance(removed[1], Refused)
    assert rig.fake[WEB.handle.path].pids == {4711}


def test_a_removed_workload_is_forgotten(rig: Rig) -> None:
    rig.build()
    rig.write(WEB.target, "cpu.weight", 512.0)
    rig.apply(Remove(WEB.target, "it ended"))
    assert rig.kernel.originals == {}
    assert not [s for s in rig.kernel.settings if s.target == WEB.target]


def test_tracking_reads_workloads_and_the_groups_above_them(rig: Rig) -> None:
    rig.adopt(cpu__weight=2048.0)
    rig.kernel.track([DB])
    assert rig.kernel.settings[Setting(DB.target, "cpu.weight")] == 2048.0
    assert rig.kernel.settings[Setting(group("system.slice"), "cpu.max")] == math.inf
    rig.kernel.track([])
    assert rig.kernel.settings == {}


def test_a_moved_workload_is_read_at_its_new_place(rig: Rig) -> None:
    rig.adopt(cpu__weight=2048.0)
    rig.kernel.track([WEB, DB])
    rig.fake.adopt(group("system.slice/other"), "system.slice/other", {"cpu.weight": 3072.0})
    rig.kernel.track([replace(DB, handle=replace(DB.handle, path="system.slice/other"))])
    assert rig.kernel.settings[Setting(DB.target, "cpu.weight")] == 3072.0


def test_a_journal_that_cannot_grow_stops_every_write(rig: Rig) -> None:
    rig.build()
    with full_disk(rig.path, 60):
        result = rig.write(WEB.target, "cpu.weight", 512.0)
        ((_, made),) = rig.apply(Make(group("j10ce/other"), "j10ce/other", "test")).results
    assert isinstance(result, Refused)
    assert "nothing was written" in result.reason
    assert rig.held(WEB.target, "cpu.weight") == 1024.0
    assert isinstance(made, Refused)
    assert "j10ce/other" not in rig.fake.cgroups.by_path
    assert isinstance(rig.write(WEB.target, "cpu.weight", 512.0), Applied)
    rig.start()
    assert rig.kernel.originals[WEIGHT] == 1024.0


def test_applying_nothing_does_nothing(rig: Rig) -> None:
    assert rig.kernel.apply(Plan()).results == ()
    assert rig.fake.places.keys() == {ROOT}
