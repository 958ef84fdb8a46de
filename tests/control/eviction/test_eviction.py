"""The controller: what it proposes and asks for at each stage, and what it takes back."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.control.eviction.eviction import Eviction
from j10ce.model.knob import NODE, Deed, Support, TargetId
from j10ce.model.plan import Action, Proposal
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Workload
from j10ce.testing import build

MIB, GIB = 1 << 20, 1 << 30
MEMORY = {"memory": {"thresholdPercent": 80, "lowerPercent": 70}}
DEEDS = {deed.value: Support(True, via="cgroup2") for deed in (Deed.RECLAIM, Deed.KILL)}
A, B, WEB = build.workload("a"), build.workload("b"), build.workload("web")


def snapshot(
    now: float,
    percent: float,
    *,
    pressure: float | None = 0.3,
    said: dict[str, Any] | None = None,
    workloads: tuple[Workload, ...] = (A, B, WEB),
    lacking: tuple[str, ...] = (),
    **fields: Any,
) -> Snapshot:
    """16 GiB; `a` uses 4 GiB, `b` 3 GiB."""
    readings: dict[tuple[TargetId, str], float] = {
        (NODE, "memory.working_set"): percent * 16 * GIB / 100,
        (A.target, "memory.current"): 4.0 * GIB,
        (B.target, "memory.current"): 3.0 * GIB,
        (WEB.target, "memory.current"): 6.0 * GIB,
        **({} if pressure is None else {(NODE, "memory.pressure"): pressure}),
    }
    tiers = {A.target: "besteffort", B.target: "besteffort", WEB.target: "sensitive"}
    entitled = [build.entitlement(w, tier=tiers[w.target]) for w in workloads]
    on = build.node(cpus=8, memory="16Gi")
    snap = build.snapshot(*entitled, workloads=workloads, readings=readings, on=on, now=now, wall=build.WALL + now)
    known = {k: s for k, s in (snap.support | DEEDS).items() if k not in lacking}
    strategy = build.strategy("s", {"eviction": {**MEMORY, **(said or {})}}).spec
    return replace(snap, support=known, strategy=strategy, **fields)


def look(controller: Eviction, snap: Snapshot) -> tuple[dict[str, list[Proposal]], list[Action]]:
    proposals: dict[str, list[Proposal]] = {}
    for p in controller.propose(snap):
        proposals.setdefault(p.setting.knob, []).append(p)
    return proposals, list(controller.act(snap))


def after(
    seconds: int, percent: float = 85.0, **fields: Any
) -> tuple[dict[str, list[Proposal]], list[Action], Eviction]:
    controller = Eviction(Eviction.Config())
    for now in range(seconds):
        look(controller, snapshot(float(now), percent, **fields))
    return *look(controller, snapshot(float(seconds), percent, **fields)), controller


def deeds(actions: list[Action]) -> set[tuple[Deed, str]]:
    return {(a.deed, a.target.rpartition("/")[2]) for a in actions}


def test_a_strategy_that_says_nothing_moves_nothing() -> None:
    controller = Eviction(Eviction.Config())
    quiet = replace(snapshot(0, 99), strategy=build.strategy("s").spec)
    assert look(controller, quiet) == ({}, [])
    assert controller.ladders == ()


def test_first_memory_of_the_first_victim_is_taken_back() -> None:
    proposals, actions, controller = after(0)
    assert proposals == {}
    assert deeds(actions) == {(Deed.RECLAIM, "a")}
    assert actions[0].amount == 4 * GIB / 8
    assert controller.ladders[0].stage == "reclaim"


def test_then_it_may_grow_no_further() -> None:
    proposals, _, _ = after(5)
    assert {p.setting.target: p.value for p in proposals["memory.high"]} == {A.target: 4.0 * GIB}
    assert "cgroup.freeze" not in proposals


def test_then_it_stands_still() -> None:
    proposals, actions, _ = after(15)
    assert [(p.setting.target, p.value) for p in proposals["cgroup.freeze"]] == [(A.target, 1.0)]
    assert Deed.EVICT not in {a.deed for a in actions}


@pytest.mark.parametrize(("mode", "enforced"), [("propose", False), ("enforce", True)])
def test_in_the_end_it_is_thawed_and_has_to_leave_where_the_strategy_says_so(mode: str, enforced: bool) -> None:
    proposals, actions, _ = after(35, said={"mode": mode})
    assert ("cgroup.freeze" in proposals) is not enforced, "whom nobody evicts stands still while it hurts"
    evictions = [a for a in actions if a.deed is Deed.EVICT]
    assert [(a.target, a.enforced, a.amount, a.trigger) for a in evictions] == [
        (A.target, enforced, 4.0 * GIB, "memory")
    ]
    assert "84 %" in evictions[0].reason


def test_without_pressure_a_full_node_freezes_nobody() -> None:
    proposals, actions, _ = after(300, pressure=0.01)
    assert proposals.keys() == {"memory.high"}
    assert {a.deed for a in actions} == {Deed.RECLAIM}


def test_without_psi_the_thresholds_decide_and_it_is_said() -> None:
    _, actions, controller = after(35, pressure=None)
    assert Deed.EVICT in {a.deed for a in actions}
    assert "no PSI" in controller.ladders[0].text


def test_on_a_machine_that_can_only_freeze_that_comes_first() -> None:
    proposals, actions, _ = after(0, lacking=("reclaim", "memory.high"))
    assert proposals.keys() == {"cgroup.freeze"}
    assert actions == []


def test_a_larger_need_takes_more_victims_and_those_of_before_stay() -> None:
    controller = Eviction(Eviction.Config())
    look(controller, snapshot(0, 85))
    look(controller, snapshot(1, 97))
    assert controller.ladders[0].targets == (A.target, B.target)
    look(controller, snapshot(2, 81))
    assert controller.ladders[0].targets == (A.target, B.target)


def test_when_it_is_over_everything_is_taken_back() -> None:
    controller = Eviction(Eviction.Config())
    for now in range(20):
        look(controller, snapshot(float(now), 85))
    for now in range(20, 80):
        proposals, actions = look(controller, snapshot(float(now), 60, pressure=0.0))
    assert (proposals, actions) == ({}, [])
    assert controller.ladders[0].stage == "calm"


def test_who_was_asked_to_leave_counts_as_gone_and_is_still_wished_away() -> None:
    """So that the wish can be withdrawn: a plan keeps what was asked for a moment ago as pending."""
    controller = Eviction(Eviction.Config())
    done = {(Deed.EVICT, A.target): build.WALL + 35}
    for now in range(50):
        _, actions = look(controller, snapshot(float(now), 85, said={"mode": "enforce"}, done=done if now > 35 else {}))
    assert deeds(actions) >= {(Deed.EVICT, "a")}
    assert (Deed.EVICT, "b") not in deeds(actions)


def test_who_was_asked_to_leave_does_not_take_what_the_others_are_slowed_down_for() -> None:
    """It is thawed, and has a sixteenth beyond its cap to end in; on a machine on paper it took all that was left."""
    controller = Eviction(Eviction.Config())
    done = {(Deed.EVICT, A.target): build.WALL + 36}
    for now in range(45):
        fields = {"said": {"mode": "enforce"}, "done": done if now > 36 else {}}
        proposals, _ = look(controller, snapshot(float(now), 85, **fields))
    assert {p.setting.target: p.value for p in proposals["memory.high"]} == {A.target: 4.25 * GIB}
    assert "cgroup.freeze" not in proposals


def test_who_is_not_let_go_for_longer_than_the_cool_down_counts_for_nothing() -> None:
    controller = Eviction(Eviction.Config())
    said = {"mode": "enforce", "coolDown": "20s"}
    for now in range(60):
        done = {(Deed.EVICT, A.target): build.WALL + 35} if now > 35 else {}
        _, actions = look(controller, snapshot(float(now), 85, said=said, done=done))
    assert deeds(actions) >= {(Deed.EVICT, "a"), (Deed.EVICT, "b")}


def test_who_is_on_the_way_out_is_neither_frozen_nor_evicted_again() -> None:
    ending = replace(A, leaving=True)
    proposals, actions, _ = after(15, percent=95, workloads=(ending, B, WEB))
    assert {p.setting.target for ps in proposals.values() for p in ps} <= {B.target}
    _, actions, _ = after(60, percent=95, workloads=(ending, B, WEB))
    assert (Deed.EVICT, "a") not in deeds(actions)


@pytest.mark.parametrize(
    ("ago", "w", "killed"),
    [
        pytest.param(29, A, False, id="within its grace"),
        pytest.param(31, A, True, id="after it"),
        pytest.param(31, replace(A, since=build.WALL + 990), False, id="one that came since under its name"),
        pytest.param(31, replace(A, handle=build.handle("kubepods/pod1")), False, id="a kubelet kills its own"),
        pytest.param(700, A, False, id="long ago"),
    ],
)
def test_who_does_not_go_in_time_is_killed_if_we_started_it(ago: float, w: Workload, killed: bool) -> None:
    controller = Eviction(Eviction.Config())
    done = {(Deed.EVICT, w.target): build.WALL + 1000 - ago}
    snap = snapshot(1000, 10, said={"mode": "enforce"}, workloads=(w, B, WEB), done=done)
    _, actions = look(controller, snap)
    assert ((Deed.KILL, "a") in deeds(actions)) is killed
    _, proposed = look(controller, replace(snap, strategy=build.strategy("s", {"eviction": MEMORY}).spec))
    assert all(not a.enforced for a in proposed if a.deed is Deed.KILL)


def test_cpu_time_is_halved_once_and_the_cap_stays() -> None:
    controller = Eviction(Eviction.Config())
    said = {"memory": {}, "cpu": {"thresholdPercent": 80}}
    for now in range(9):
        snap = snapshot(float(now), 10, said=said)
        used = 3.0 if now == 0 else 1.5
        readings = {(NODE, "cpu.usage"): 7.0, (NODE, "cpu.pressure"): 0.5, (A.target, "cpu.usage"): used}
        proposals, _ = look(controller, replace(snap, readings=build.FixedReadings(readings)))
    assert [(p.setting.target, p.value) for p in proposals["cpu.max"]] == [(A.target, 150_000.0)]


def test_who_is_slowed_down_again_is_so_by_what_it_uses_then() -> None:
    controller = Eviction(Eviction.Config())
    for now in range(8):
        look(controller, snapshot(float(now), 85, pressure=0.0))
    for now in range(8, 80):
        look(controller, snapshot(float(now), 60, pressure=0.0))
    for now in range(80, 90):
        snap = snapshot(float(now), 85, pressure=0.0)
        readings = {(NODE, "memory.working_set"): 0.85 * 16 * GIB, (A.target, "memory.current"): 6.0 * GIB}
        proposals, _ = look(controller, replace(snap, readings=build.FixedReadings(readings)))
    assert {p.setting.target: p.value for p in proposals["memory.high"]} == {A.target: 6.0 * GIB}


def test_who_was_promised_cpu_time_does_not_stand_still() -> None:
    controller = Eviction(Eviction.Config())
    for now in range(16):
        snap = snapshot(float(now), 85)
        promised = build.entitlement(A, tier="besteffort", floor_cpu="500m")
        proposals, _ = look(controller, replace(snap, entitlements={**snap.entitlements, A.target: promised}))
    assert controller.ladders[0].stage == "freeze"
    assert proposals.keys() == {"memory.high"}
