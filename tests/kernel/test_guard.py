"""What is never touched stays untouched even when a plan says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.kernel.guard import Guard, GuardedTarget
from j10ce.kernel.process import process
from j10ce.model.knob import ROOT, Setting, TargetId, Value, group, part, workload
from j10ce.model.plan import Applied, Pending, Refused, ValueChange
from j10ce.model.workload import Handle, Part, Workload
from j10ce.testing.fake_kernel import FakeKernel
from tests.kernel.rig import DB, WEB, Rig

GIB = float(1 << 30)
MANAGED = GuardedTarget(owned=False, managed=True)


def change(target: TargetId, knob: str, value: Value) -> ValueChange:
    return ValueChange(Setting(target, knob), None, value, "test", "test")


@pytest.mark.parametrize(
    ("target", "at", "seen", "says"),
    [
        pytest.param(ROOT, Handle(""), MANAGED, "root's own limits", id="the root"),
        pytest.param(
            DB.target, Handle("x", paths={"cpu": ""}), MANAGED, "root's own limits", id="the root of one v1 tree"
        ),
        pytest.param(group("init.scope"), Handle("init.scope"), MANAGED, "init.scope", id="init"),
        pytest.param(group("init.scope/x"), Handle("init.scope/x"), MANAGED, "init.scope", id="below init"),
        pytest.param(DB.target, Handle("us"), MANAGED, "this agent runs in", id="our own cgroup"),
        pytest.param(
            group("a"), Handle("a"), GuardedTarget(owned=False, managed=False), "not managed", id="a stranger"
        ),
    ],
)
def test_never_touched(target: TargetId, at: Handle, seen: GuardedTarget, says: str) -> None:
    guard = Guard(own=frozenset({"us"}))
    assert says in guard.objection(change(target, "cpu.weight", 512.0), at, seen)


@pytest.mark.parametrize(
    ("target", "path", "says"),
    [
        pytest.param(group("j10ce/standard"), "j10ce/standard", "only workloads", id="a group"),
        pytest.param(DB.target, "us", "holds this agent", id="our own cgroup"),
        pytest.param(DB.target, "us/above", "", id="beside it"),
        pytest.param(WEB.target, "us/inner", "holds this agent", id="above our own"),
    ],
)
def test_nothing_is_frozen_that_holds_whoever_thaws_it(target: TargetId, path: str, says: str) -> None:
    guard, at = Guard(own=frozenset({"us/inner/agent"})), Handle(path)
    why = guard.objection(change(target, "cgroup.freeze", 1.0), at, GuardedTarget(owned=True, managed=True))
    assert says in why if says else not why
    assert not guard.objection(change(target, "cgroup.freeze", 0.0), at, GuardedTarget(owned=True, managed=True))


@pytest.mark.parametrize(
    ("knob", "value", "original", "refused"),
    [
        pytest.param("memory.low", GIB, 0.0, False, id="a guarantee is raised"),
        pytest.param("memory.min", 0.0, GIB, True, id="a guarantee is never lowered"),
        pytest.param("cpu.weight", 2048.0, 1024.0, False, id="a share is raised"),
        pytest.param("cpu.weight", 512.0, 1024.0, True, id="a share is never lowered"),
        pytest.param("cpu.max", 20_000.0, None, True, id="no cap"),
        pytest.param("memory.max", GIB, None, True, id="no limit"),
        pytest.param("cpuset.cpus", frozenset({0}), None, True, id="no placement"),
        pytest.param("cpu.idle", 1.0, 0.0, True, id="no switch"),
    ],
)
def test_an_ancestor_that_is_not_ours(knob: str, value: Value, original: Value | None, refused: bool) -> None:
    seen = GuardedTarget(owned=False, managed=True, original=original)
    objection = Guard().objection(change(group("system.slice"), knob, value), Handle("system.slice"), seen)
    assert bool(objection) is refused


@pytest.mark.parametrize("knob", ["memory.max", "memory.high"])
def test_no_cap_below_what_is_in_use(knob: str) -> None:
    seen = GuardedTarget(owned=True, managed=True, usage=2 * GIB)
    asked = change(DB.target, knob, GIB)
    assert "below the 2Gi in use" in Guard().objection(asked, Handle("x"), seen)
    assert not Guard().objection(change(DB.target, knob, 3 * GIB), Handle("x"), seen)


def test_the_machine_keeps_memory_for_itself() -> None:
    guard = Guard(memory=lambda: 16 * GIB)
    seen = GuardedTarget(owned=True, managed=True, minimum_elsewhere=10 * GIB)
    assert not guard.objection(change(group("j10ce"), "memory.min", 5 * GIB), Handle("j10ce"), seen)
    assert "can promise" in guard.objection(change(group("j10ce"), "memory.min", 5.5 * GIB), Handle("j10ce"), seen)


def test_less_may_be_claimed_however_much_is_claimed_already() -> None:
    guard = Guard(memory=lambda: 16 * GIB)
    seen = GuardedTarget(owned=True, managed=True, present=4 * GIB, minimum_elsewhere=15 * GIB)
    assert not guard.objection(change(group("j10ce"), "memory.min", 3 * GIB), Handle("j10ce"), seen)
    assert guard.objection(change(group("j10ce"), "memory.min", 5 * GIB), Handle("j10ce"), seen)


def test_memory_that_was_added_can_be_promised() -> None:
    machine = [8 * GIB]
    guard, seen = Guard(memory=lambda: machine[0]), GuardedTarget(owned=True, managed=True)
    asked = change(group("j10ce"), "memory.min", 10 * GIB)
    assert guard.objection(asked, Handle("j10ce"), seen)
    machine[0] = 16 * GIB
    assert not guard.objection(asked, Handle("j10ce"), seen)


def test_this_process_knows_its_own_cgroups() -> None:
    me = process(1)
    assert me is not None
    assert Guard.of_this_process().own


def test_the_facade_asks_the_guard(rig: Rig) -> None:
    rig.adopt()
    rig.fake.adopt(group("user.slice"), "user.slice")
    rig.kernel.track([DB])
    assert isinstance(rig.write(group("user.slice"), "cpu.weight", 512.0), Refused)
    assert isinstance(rig.write(group("system.slice"), "cpu.weight", 512.0), Refused)
    assert isinstance(rig.write(group("system.slice"), "cpu.weight", 2048.0), Applied)
    assert isinstance(rig.write(group("system.slice"), "cpu.weight", 1024.0), Applied)  # back, not below the original
    assert isinstance(rig.write(DB.target, "cpu.weight", 512.0), Applied)


def test_minimums_of_all_top_level_groups_are_added_up(tmp_path: Path) -> None:
    rig = Rig(tmp_path, guard=Guard(memory=lambda: 16 * GIB))
    rig.adopt()
    rig.build()
    rig.kernel.track([DB, WEB])
    rig.fake.adopt(group("user.slice"), "user.slice", {"memory.min": 8 * GIB})  # the agent does not know it
    assert isinstance(rig.write(group("system.slice"), "memory.min", 10 * GIB), Refused), "an ancestor counts, too"
    assert isinstance(rig.write(group("system.slice"), "memory.min", 2 * GIB), Applied)
    assert isinstance(rig.write(group("j10ce"), "memory.min", 6 * GIB), Refused)
    assert isinstance(rig.write(group("j10ce"), "memory.min", 5 * GIB), Applied)


class Metered(FakeKernel):
    """Uses a gibibyte everywhere; with `surge`, from the second look on."""

    surge = False

    def usage(self, s: Setting, at: Handle, /) -> float | None:
        used, self.surge = (0.0 if self.surge else GIB), False
        return used


def test_a_cap_that_must_reclaim_first_is_pending_until_read_back(tmp_path: Path) -> None:
    fake = Metered()
    rig = Rig(tmp_path, fake)
    rig.build()
    limit = Setting(WEB.target, "memory.max")
    fake.surge = True  # it grew after the guard had looked
    assert rig.write(WEB.target, "memory.max", GIB / 2) == Pending()
    late: list[object] = []
    while not late:
        late += [r for c, r in rig.apply().results if isinstance(c, ValueChange) and c.setting == limit]
    assert late == [Applied(GIB / 2)]
    assert rig.kernel.settings[limit] == GIB / 2
    assert not rig.kernel.revert().refused()


def test_a_cap_above_the_usage_is_written_at_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path, Metered())
    rig.build()
    assert rig.write(WEB.target, "memory.max", 2 * GIB) == Applied(2 * GIB)


def test_a_part_of_a_workload_is_managed(rig: Rig) -> None:

    rig.adopt()
    rig.fake.enable(DB.target, frozenset({"cpu"}))
    rig.fake.adopt(part("default", "db", "main"), f"{DB.handle.path}/main")
    pod = Workload("default", "db", handle=DB.handle, parts=(Part("main", Handle(path=f"{DB.handle.path}/main")),))
    rig.kernel.track([pod])
    assert isinstance(rig.write(part("default", "db", "main"), "cpu.weight", 512.0), Applied)
    rig.kernel.track([])
    assert isinstance(rig.write(workload("default", "db"), "cpu.weight", 512.0), Refused)
