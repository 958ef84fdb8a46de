"""Cgroups are made, filled and removed in the right order."""

from __future__ import annotations

import msgspec

from j10ce.model.knob import ROOT, Setting, TargetId, group
from j10ce.model.plan import Enable, Join, Make, Remove, ValueChange
from j10ce.plan.arbiter import arbitrate
from j10ce.testing import build
from tests.plan.world import API, CRUNCH, DB, WEB, World, wish

WAITING = build.workload("web", pids=(41, 42))


def test_a_command_starts_with_its_values_in_force() -> None:
    world = World(workloads=[WAITING], made=False)
    world.kernel.adopt(TargetId("group/shell"), "shell")
    world.kernel["shell"].pids = {41, 42}
    plan = world.settle(wish(WEB.target, "memory.min", 2.0**20), wish(WEB.target, "cpu.max", 1e5))
    kinds = [type(c) for c in plan.changes]
    assert kinds.index(ValueChange) > max(i for i, k in enumerate(kinds) if k in (Make, Enable))
    assert kinds[-2:] == [Join, Join]
    assert world.kernel["j10ce/sensitive/default_web"].pids == {41, 42}


def test_parents_are_made_first() -> None:
    plan = World(workloads=[WEB], made=False).plan()
    made = [c.path for c in plan.changes if isinstance(c, Make)]
    assert made == ["j10ce", "j10ce/sensitive", "j10ce/sensitive/default_web"]


def test_controllers_are_passed_down_only_as_far_as_needed() -> None:
    plan = World(workloads=[WEB], made=False).plan(wish(WEB.target, "cpu.max", 1e5))
    enabled = {c.target: c.controllers for c in plan.changes if isinstance(c, Enable)}
    assert enabled == {group("j10ce"): {"cpu"}, group("j10ce/sensitive"): {"cpu"}}


def test_where_nobody_looked_a_value_that_could_not_be_read_asks_for_its_controller() -> None:
    world = World(workloads=[WEB])
    snap = world.snapshot()
    blind = build.Groups({t: msgspec.structs.replace(g, enabled=None) for t, g in snap.groups.by_target.items()})
    unread = {s: v for s, v in snap.settings.items() if s != Setting(WEB.target, "cpu.max")}

    def enabled(settings: dict[Setting, build.Value]) -> set[TargetId]:
        seen = msgspec.structs.replace(snap, groups=blind, settings=settings)
        plan = arbitrate([wish(WEB.target, "cpu.max", 1e5)], seen, (), world.kernel.quantise)
        return {c.target for c in plan.changes if isinstance(c, Enable)}

    assert enabled(unread) == {ROOT, group("j10ce"), group("j10ce/sensitive")}
    assert enabled(dict(snap.settings)) == set()


def test_on_v1_nothing_needs_enabling() -> None:
    plan = World("v1", workloads=[WEB], made=False).plan(wish(WEB.target, "cpu.max", 1e5))
    assert not [c for c in plan.changes if isinstance(c, Enable)]


def test_the_cgroup_of_a_workload_that_is_gone_is_removed_first() -> None:
    world = World(workloads=[WEB, CRUNCH])
    world.settle(wish(WEB.target, "memory.min", 2.0**20), wish(CRUNCH.target, "memory.min", 2.0**20))
    tree = world.tree()
    del world.workloads[CRUNCH.target]
    snap = msgspec.structs.replace(world.snapshot(), groups=tree)
    plan = arbitrate(
        [wish(WEB.target, "memory.min", 2.0**20)], snap, (), world.kernel.quantise, originals=world.journal
    )
    assert plan.changes[0] == Remove(CRUNCH.target, "its workload is gone")
    for _ in world.apply(plan):
        world.check()
    assert world.value(group("j10ce"), "memory.min") == 2.0**20


def test_an_adopted_cgroup_is_neither_made_nor_removed() -> None:
    world = World(workloads=[DB])
    world.kernel.vanish("system/db")
    plan = world.plan(wish(DB.target, "cpu.max", 1e5))
    assert not [c for c in plan.changes if getattr(c, "target", None) == DB.target or isinstance(c, ValueChange)]


def test_nothing_is_planned_for_a_cgroup_that_vanished_and_whose_workload_nobody_chose() -> None:
    """On v1 a group without a wish follows the CPU set of its parent; one that will not be made does not."""
    world = World("v1", workloads=[WEB, API])
    world.kernel.vanish("j10ce/sensitive/default_web")
    unchosen = {**world.entitlements(), WEB.target: build.entitlement(WEB, tier="sensitive", chosen=False)}
    snap = msgspec.structs.replace(world.snapshot(), entitlements=unchosen)
    wishes = [wish(group("j10ce/sensitive"), "cpuset.cpus", frozenset({0, 1}))]
    plan = arbitrate(wishes, snap, (), world.kernel.quantise)
    assert {c.setting.target for c in plan.changes if isinstance(c, ValueChange)} == {
        group("j10ce/sensitive"),
        API.target,
    }
