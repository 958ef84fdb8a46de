"""CPU floors hold when everyone is runnable, as an independent model of weighted sharing sees it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from j10ce.control.cpu_idle import CpuIdle
from j10ce.control.floors import Floors
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import Setting, TargetId
from j10ce.model.plan import Bound, Proposal
from j10ce.model.snapshot import Foreign, Snapshot
from j10ce.testing import build
from tests.control.sharing import kernel_v1, kernel_v2, millicores, weights_after

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
@settings(max_examples=150, deadline=None)
@given(rows=rows, foreign=foreigns, promised=st.floats(0, 0.9), idle=st.booleans())
def test_every_floor_holds_when_all_are_runnable(
    via: str, rows: list[Row], foreign: list[int], promised: float, idle: bool
) -> None:
    snap = machine(rows, foreign, promised, via, idle)
    assert missed(snap, wishes(snap)) == {}


@pytest.mark.parametrize("via", KERNELS)
@settings(max_examples=150, deadline=None)
@given(rows=rows, foreign=st.lists(st.integers(2, 262144), max_size=6), promised=st.floats(0, 1.2))
def test_a_floor_that_cannot_hold_is_said_to(via: str, rows: list[Row], foreign: list[int], promised: float) -> None:
    snap = machine(rows, foreign, promised, via)
    proposals = wishes(snap)
    broken = {p.setting.target for p in proposals if "cannot hold" in p.reason}
    for target in missed(snap, proposals):
        assert broken & {target, *snap.groups.ancestors(target)}


@pytest.mark.parametrize("via", KERNELS)
@settings(max_examples=100, deadline=None)
@given(rows=rows, foreign=foreigns, promised=st.floats(0, 1.1))
def test_each_weight_is_wanted_once_and_an_idle_group_gets_none(
    via: str, rows: list[Row], foreign: list[int], promised: float
) -> None:
    proposals = wishes(machine(rows, foreign, promised, via))
    wanted = [p.setting for p in proposals if p.bound is Bound.WANT]
    assert len(wanted) == len(set(wanted))
    idle = {s.target for s in wanted if s.knob == "cpu.idle"}
    assert not idle & {p.setting.target for p in proposals if p.setting.knob == "cpu.weight"}


@settings(max_examples=100, deadline=None)
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
        "group/j10ce": 4096 + 1024,
        "group/j10ce/sensitive": 4096,
        "group/j10ce/standard": 1024,
        "workload/default/w0": 500,
        "workload/default/w1": 2048,
    }


def test_a_floor_buys_shares_at_a_price_that_is_a_power_of_two() -> None:
    web, job = build.workload("web"), build.workload("job")
    cpu = CpuSection(weight=1024)
    entitled = [
        build.entitlement(web, tier="standard", floor_cpu="1", cpu=cpu),
        build.entitlement(job, tier="standard", cpu=cpu),
    ]
    snap = build.snapshot(*entitled, workloads=[web, job], on=build.node(2))
    fine = msgspec.structs.replace(snap, support=build.support(via="cgroup1"))
    # Inside the tier 1000m of 2000m are left for 2048 shares: 0.488m a share, rounded down to 1/4.
    assert weights(fine)["workload/default/web"] == 1024 + 1000 * 4
    assert weights(fine)["workload/default/job"] == 1024
    # On v2, 5024 shares is weight 490.6: up to 491, which the scheduler takes as 5028.
    assert weights(snap)["workload/default/web"] == 5028


def test_a_weight_without_a_profile_follows_the_request() -> None:
    web = build.workload("web", cpu="500m")
    snap = build.snapshot(build.entitlement(web), workloads=[web])
    assert weights(snap)["workload/default/web"] == 512


def test_an_adopted_workload_that_nobody_weighs_keeps_its_weight() -> None:
    unit = build.workload("unit", handle=build.handle("system.slice/unit"))
    snap = build.snapshot(build.entitlement(unit), workloads=[unit])
    assert weights(snap) == {}


def test_an_ancestor_that_is_not_ours_is_only_raised() -> None:
    unit = build.workload("unit", handle=build.handle("system.slice/unit"))
    root = build.group("", owned=False, foreign=[Foreign("user.slice", 10240)])
    e = build.entitlement(unit, floor_cpu="2")
    snap = build.snapshot(e, workloads=[unit], groups=build.tree([unit], {e.target: e}, groups=[root]))
    above = [p for p in Floors(Floors.Config()).propose(snap) if p.setting.target == "group/system.slice"]
    assert [p.bound for p in above] == [Bound.AT_LEAST]
    # 2000m are left for 10240 + 1024 + 1024 shares, an eighth a share; 1 % more than 2000m at that price
    # is 16160 shares, and weight 1579 is the next that v2 can hold.
    assert above[0].value == 16169
    assert not missed(snap, wishes(snap))


def test_small_changes_of_foreign_weights_move_nothing() -> None:
    floors = Floors(Floors.Config())
    rows: list[Row] = [("sensitive", 0, 1024, 1), ("standard", 0, 1024, 1)]
    before = weights(machine(rows, [2000], 0.5, "cgroup1"), floors)
    for foreign in (2100, 1900, 2500, 1500):
        assert weights(machine(rows, [foreign], 0.5, "cgroup1"), floors) == before


def test_an_arrival_leaves_the_other_workloads_weights_alone() -> None:
    floors = Floors(Floors.Config())
    rows: list[Row] = [("standard", 0, 1024, 1)] * 8
    before = weights(machine(rows, [1024], 0.4, "cgroup1"), floors)
    after = weights(machine([*rows, ("standard", 0, 1024, 0)], [1024], 0.4, "cgroup1"), floors)
    assert {t: after[t] for t in before} == before


def test_a_quota_above_us_limits_what_can_be_promised() -> None:
    unit = build.workload("unit", handle=build.handle("system.slice/unit"))
    quota = {Setting(TargetId("group/system.slice"), "cpu.max"): 50_000.0}
    snap = build.snapshot(build.entitlement(unit, floor_cpu="1"), workloads=[unit], values=quota)
    reasons = [p.reason for p in Floors(Floors.Config()).propose(snap) if p.setting.target == unit.target]
    assert reasons == ["cannot hold the floor 1: 1925 of 1925 shares is 500m of 500m"]


def test_a_best_effort_workload_with_a_floor_is_not_idle() -> None:
    snap = machine([("besteffort", 0, 2, 1), ("besteffort", 0, 2, 0)], [1024], 0.2, "cgroup2")
    proposals = wishes(snap)
    assert [p.setting.target for p in proposals if p.setting.knob == "cpu.idle"] == ["workload/default/w1"]
    assert not missed(snap, proposals)
