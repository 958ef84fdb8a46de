"""CPU floors hold when everyone is runnable, as an independent model of weighted sharing sees it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.cpu.idle import CpuIdle
from j10ce.control.cpu.needs import TierWeights, standing
from j10ce.control.cpu.weights import FINE
from j10ce.control.floors import Floors
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import Setting, TargetId, group
from j10ce.model.plan import Bound, Proposal
from j10ce.model.snapshot import Foreign, Snapshot
from j10ce.testing import build
from tests.control.cpu.sharing import kernel_v1, kernel_v2, millicores, weights_after

KERNELS = {"cgroup1": kernel_v1, "cgroup2": kernel_v2}
CPUS = 4
LEDGER = CPUS * 1000 * 0.95  # what the ledger may promise

Row = tuple[str, int, int, int]  # tier, place, weight, parts of what is promised
tiers = st.sampled_from(["system", "reserved", "sensitive", "standard", "besteffort"])
rows = st.lists(st.tuples(tiers, st.integers(0, 2), st.integers(2, 10_000), st.integers(0, 5)), min_size=1, max_size=12)
foreigns = st.lists(st.integers(2, 2048), max_size=4)


def machine(rows: list[Row], foreign: list[int], promised: float, via: str, idle: bool = True) -> Snapshot:
    """`promised` of the ledger, divided by the parts. Place 0 is our tree, 1 and 2 are slices that are not ours."""
    parts = sum(row[3] for row in rows) or 1
    workloads, entitled = [], []
    for n, (tier, place, weight, part) in enumerate(rows):
        handle = build.handle(f"slice{place}/w{n}") if place else build.handle("", made=True)
        w = build.workload(f"w{n}", handle=handle)
        cpu = CpuSection(weight=weight, idle=tier == "besteffort")
        floor = f"{int(LEDGER * promised * part / parts)}m"
        workloads.append(w)
        entitled.append(build.entitlement(w, tier=tier, floor_cpu=floor, cpu=cpu))
    root = build.group("", owned=False, foreign=[Foreign(f"f{n}", w) for n, w in enumerate(foreign)])
    groups = build.tree(workloads, {e.target: e for e in entitled}, groups=[root])
    lacking = () if idle else ("cpu.idle",)
    snap = build.snapshot(*entitled, workloads=workloads, groups=groups, on=build.node(CPUS), lacking=lacking)
    return msgspec.structs.replace(snap, support=build.support(*lacking, via=via))


def wishes(snap: Snapshot, floors: Floors | None = None) -> list[Proposal]:
    return [
        *(floors or Floors(Floors.Config())).propose(snap),
        *CpuIdle(CpuIdle.Config()).propose(snap),
    ]


def missed(snap: Snapshot, proposals: list[Proposal]) -> dict[TargetId, tuple[float, int]]:
    got = millicores(snap, weights_after(snap, proposals, KERNELS[snap.support["cpu.weight"].via]))
    return {t: (got[t], e.floor.cpu) for t, e in snap.entitlements.items() if got[t] < e.floor.cpu * (1 - 1e-9)}


@pytest.mark.parametrize("via", KERNELS)
@given(rows=rows, foreign=foreigns, promised=st.floats(0, 0.9), idle=st.booleans())
def test_every_floor_of_ours_holds_when_all_are_runnable(
    via: str, rows: list[Row], foreign: list[int], promised: float, idle: bool
) -> None:
    snap = machine([(tier, 0, weight, part) for tier, _, weight, part in rows], foreign, promised, via, idle)
    assert missed(snap, wishes(snap)) == {}


@pytest.mark.parametrize("via", KERNELS)
@given(rows=rows, foreign=st.lists(st.integers(2, 262144), max_size=6), promised=st.floats(0, 1.2))
def test_a_floor_that_cannot_hold_is_said_to(via: str, rows: list[Row], foreign: list[int], promised: float) -> None:
    snap = machine(rows, foreign, promised, via)
    proposals = wishes(snap)
    broken = {p.setting.target for p in proposals if "cannot hold" in p.reason}
    for target in missed(snap, proposals):
        assert broken & {target, *snap.groups.ancestors(target)}


@pytest.mark.parametrize("via", KERNELS)
@given(rows=rows, foreign=foreigns, promised=st.floats(0, 1.1))
def test_each_weight_is_wanted_once_and_an_idle_group_gets_none(
    via: str, rows: list[Row], foreign: list[int], promised: float
) -> None:
    proposals = wishes(machine(rows, foreign, promised, via))
    wanted = [p.setting for p in proposals if p.bound is Bound.WANT]
    assert len(wanted) == len(set(wanted))
    idle = {s.target for s in wanted if s.knob == "cpu.idle"}
    assert not idle & {p.setting.target for p in proposals if p.setting.knob == "cpu.weight"}


@given(rows=rows, foreign=foreigns, promised=st.floats(0, 0.9))
def test_applied_wishes_are_wished_again(rows: list[Row], foreign: list[int], promised: float) -> None:
    """What was raised above us does not raise itself further."""
    snap, floors = machine(rows, foreign, promised, "cgroup2"), Floors(Floors.Config())
    first = wishes(snap, floors)
    after = weights_after(snap, first, kernel_v2)
    present = {**snap.settings, **{Setting(t, "cpu.weight"): w for t, w in after.items()}}
    again = msgspec.structs.replace(snap, settings=present, epoch=2)
    values = [(p.setting, p.bound, p.value) for p in first]
    assert [(p.setting, p.bound, p.value) for p in wishes(again, floors)] == values
    assert [(p.setting, p.bound, p.value) for p in wishes(again)] == values


def weights(snap: Snapshot, floors: Floors | None = None) -> dict[str, float]:
    return {
        str(p.setting.target): p.value
        for p in (floors or Floors(Floors.Config())).propose(snap)
        if p.setting.knob == "cpu.weight" and isinstance(p.value, float)
    }


def test_without_floors_the_profile_weights_stand() -> None:
    snap = machine([("sensitive", 0, 500, 0), ("standard", 0, 2048, 0)], [1024], 0.0, "cgroup1")
    assert weights(snap) == {
        "group/j10ce": 1024,  # as any other cgroup
        "group/j10ce/sensitive": 4096,
        "group/j10ce/standard": 1024,
        "workload/default/w0": 500,
        "workload/default/w1": 2048,
    }


def test_a_floor_raises_a_weight_only_where_it_must() -> None:
    web, job = build.workload("web"), build.workload("job")
    root = build.group("", owned=False, foreign=[Foreign("stranger", 1024)])
    cpu = CpuSection(weight=1024)
    for floor, raised in (("400m", 1024), ("1400m", 4721)):
        entitled = [
            build.entitlement(web, tier="standard", floor_cpu=floor, cpu=cpu),
            build.entitlement(job, tier="standard", cpu=cpu),
        ]
        groups = build.tree([web, job], {e.target: e for e in entitled}, groups=[root])
        snap = build.snapshot(*entitled, workloads=[web, job], groups=groups, on=build.node(2))
        fine = msgspec.structs.replace(snap, support=build.support(via="cgroup1"))
        assert weights(fine)["workload/default/web"] == raised
        assert weights(fine)["workload/default/job"] == 1024
        assert not missed(fine, wishes(fine))


def test_a_weight_without_a_profile_follows_the_request() -> None:
    web = build.workload("web", cpu="500m")
    snap = build.snapshot(build.entitlement(web), workloads=[web])
    assert weights(snap)["workload/default/web"] == 512


def test_an_adopted_workload_that_nobody_weighs_keeps_its_weight() -> None:
    unit = build.workload("unit", handle=build.handle("system.slice/unit"))
    snap = build.snapshot(build.entitlement(unit), workloads=[unit])
    assert unit.target not in weights(snap)


def test_an_adopted_workload_with_a_floor_is_only_ever_raised() -> None:
    """Its maker weighs it as well: whatever is more than the floor needs stays."""
    unit = build.workload("unit", handle=build.handle("system.slice/unit"))
    snap = build.snapshot(build.entitlement(unit, floor_cpu="1"), workloads=[unit])
    bounds = [p.bound for p in wishes(snap) if p.setting == Setting(unit.target, "cpu.weight")]
    assert bounds == [Bound.AT_LEAST]


@pytest.mark.parametrize(("requested", "shares"), [("2", 0.0), ("3", 1024.0)])
def test_beside_strangers_our_group_weighs_floors_once_and_requests_beyond_them(requested: str, shares: float) -> None:
    """The floor itself is kept by what is needed for it; counted again, it would be taken from the strangers."""
    web = build.workload("web", cpu=requested)
    snap = build.snapshot(build.entitlement(web, floor_cpu="2"), workloads=[web])
    assert standing(snap, TierWeights(), FINE)[group("j10ce")].also == shares


def test_an_ancestor_that_is_not_ours_keeps_its_weight() -> None:
    unit = build.workload("unit", handle=build.handle("system.slice/unit"))
    root = build.group("", owned=False, foreign=[Foreign("user.slice", 512)])
    inside = build.group("system.slice", owned=False, foreign=[Foreign("other.service", 1024)])
    e = build.entitlement(unit, floor_cpu="2")
    groups = build.tree([unit], {e.target: e}, groups=[root, inside])
    snap = build.snapshot(e, workloads=[unit], groups=groups)
    assert "group/system.slice" not in weights(snap)
    assert not missed(snap, wishes(snap))


def test_foreign_weights_that_come_and_go_move_nothing_after_the_first_time() -> None:
    floors = Floors(Floors.Config())
    rows: list[Row] = [("sensitive", 0, 1024, 1), ("standard", 0, 1024, 1)]
    coming_and_going = (2100, 2020, 2150, 2000, 2050)
    seen = [weights(machine(rows, [w], 0.5, "cgroup1"), floors) for w in coming_and_going * 2]
    assert all(again == seen[4] for again in seen[5:])


def test_workloads_that_come_and_go_move_nothing_of_the_others_after_the_first_time() -> None:
    floors = Floors(Floors.Config())
    rows: list[Row] = [("standard", 0, 1024, 1), ("standard", 0, 1024, 0)] * 20
    more: list[Row] = [*rows, ("standard", 0, 1024, 0)]
    seen = [weights(machine(r, [1024], 0.4, "cgroup1"), floors) for r in (rows, more, rows, more)]
    inside = [t for t in seen[0] if t.startswith("workload/")]
    assert {t: seen[2][t] for t in inside} == {t: seen[1][t] for t in inside} == {t: seen[3][t] for t in inside}


def test_a_quota_above_us_limits_what_can_be_promised() -> None:
    unit = build.workload("unit", handle=build.handle("system.slice/unit"))
    quota = {Setting(TargetId("group/system.slice"), "cpu.max"): 50_000.0}
    snap = build.snapshot(build.entitlement(unit, floor_cpu="1"), workloads=[unit], values=quota)
    reasons = [p.reason for p in Floors(Floors.Config()).propose(snap) if p.setting.target == unit.target]
    assert reasons == ["cannot hold the floor 1: 1024 of 1024 shares is 500m of 500m"]


def test_a_best_effort_workload_with_a_floor_is_not_idle() -> None:
    snap = machine([("besteffort", 0, 2, 1), ("besteffort", 0, 2, 0)], [1024], 0.2, "cgroup2")
    proposals = wishes(snap)
    assert [p.setting.target for p in proposals if p.setting.knob == "cpu.idle"] == ["workload/default/w1"]
    assert not missed(snap, proposals)
