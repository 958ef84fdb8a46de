from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.cpu_suppress import CpuSuppress, divide_room
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import NODE, TargetId
from j10ce.model.plan import Bound, Proposal
from j10ce.model.snapshot import Snapshot
from j10ce.testing import build

BE = CpuSection(weight=2, idle=True, suppressible=True)
TIER = "group/j10ce_besteffort"


def machine(
    node: float | None,
    used: Mapping[str, float],
    *,
    lacking: tuple[str, ...] = (),
    adopted: tuple[str, ...] = (),
    **rest: object,
) -> Snapshot:
    workloads = [
        build.workload(name, handle=build.handle(f"other/{name}" if name in adopted else "", made=name not in adopted))
        for name in used
    ]
    given = [build.entitlement(w, tier="besteffort", cpu=BE) for w in workloads]
    readings: dict[tuple[TargetId, str], float] = {(w.target, "cpu.usage"): used[w.name] for w in workloads}
    if node is not None:
        readings[NODE, "cpu.usage"] = node
    return build.snapshot(
        *given,
        workloads=workloads,
        readings=readings,
        lacking=lacking,
        on=build.node(10),
        **rest,  # type: ignore[arg-type]
    )


def suppress(mode: str = "auto", **settings: object) -> CpuSuppress:
    return CpuSuppress(CpuSuppress.Config(mode=mode, **settings))  # type: ignore[arg-type]


def caps(proposals: list[Proposal]) -> dict[str, object]:
    assert all(p.bound is Bound.AT_MOST for p in proposals)
    return {str(p.setting.target): p.value for p in proposals}


def test_where_cpu_idle_works_it_stands_back_and_says_why() -> None:
    (p,) = suppress().propose(machine(9.0, {"job": 4.0}))
    assert (p.setting.target, p.setting.knob, p.value) == (TIER, "cpu.max", math.inf)
    assert p.reason == "cpu.idle yields to everyone else at once, so no cap is needed"


@pytest.mark.parametrize(
    ("mode", "lacking"),
    [pytest.param("auto", ("cpu.idle",), id="no cpu.idle"), pytest.param("quota", (), id="asked for")],
)
def test_quota_mode_caps_the_tier_at_what_the_others_leave(mode: str, lacking: tuple[str, ...]) -> None:
    (p,) = suppress(mode).propose(machine(9.0, {"a": 1.0, "b": 3.0}, lacking=lacking))
    assert (p.setting.target, p.value) == (TIER, 300_000)  # 0.8 · 10 − (9 − 4) CPUs
    assert p.reason == "others use 5.00 of 10 CPUs; 3.00 left for best-effort"


def test_foreign_and_system_use_counts_as_the_others() -> None:
    assert caps(list(suppress("quota").propose(machine(6.0, {"job": 0.0})))) == {TIER: 200_000}


def test_cpuset_mode_takes_the_lowest_cpus() -> None:
    (p,) = suppress("cpuset").propose(machine(9.5, {"job": 4.0}))
    assert (p.setting.knob, p.value) == ("cpuset.cpus", frozenset({0, 1, 2}))  # 2.5 CPUs, rounded up


def test_adopted_ones_and_the_tier_share_the_room() -> None:
    snap = machine(9.0, {"a": 2.0, "b": 1.0}, adopted=("b",))
    # 2 CPUs are left, 3 in use: each gives up a third.
    assert caps(list(suppress("quota").propose(snap))) == {
        TIER: pytest.approx(200_000 * 2 / 3, abs=1),
        "workload/default/b": pytest.approx(200_000 / 3, abs=1),
    }


def test_a_floor_inside_the_tier_is_not_capped_away() -> None:
    w = build.workload("job")
    e = build.entitlement(w, tier="besteffort", cpu=BE, floor_cpu="2")
    snap = build.snapshot(e, workloads=[w], on=build.node(10), readings={(NODE, "cpu.usage"): 10.0})
    assert caps(list(suppress("auto").propose(snap))) == {TIER: 200_000}


def test_without_a_reading_the_last_cap_stays_and_says_so() -> None:
    controller = suppress("quota")
    assert caps(list(controller.propose(machine(9.0, {"job": 4.0})))) == {TIER: 300_000}
    (p,) = controller.propose(machine(None, {"job": 4.0}, now=1001.0))
    assert p.value == 300_000
    assert "no reading" in p.reason


def test_nobody_to_suppress_nothing_to_say() -> None:
    w = build.workload("web")
    assert list(suppress("quota").propose(build.snapshot(build.entitlement(w), workloads=[w]))) == []


@pytest.mark.parametrize(("mode", "knob"), [("quota", "cpu.max"), ("cpuset", "cpuset.cpus")])
def test_a_machine_without_the_knob_gets_no_wish(mode: str, knob: str) -> None:
    assert list(suppress(mode).propose(machine(9.0, {"job": 4.0}, lacking=(knob,)))) == []


def test_those_who_are_suppressed_are_found_again_when_the_epoch_moves() -> None:
    controller = suppress("quota")
    assert caps(list(controller.propose(machine(5.0, {"a": 1.0})))).keys() == {TIER}
    later = msgspec.structs.replace(machine(5.0, {"a": 1.0}, adopted=("a",)), epoch=2, now=1001.0)
    assert caps(list(controller.propose(later))).keys() == {"workload/default/a"}


@given(room=st.floats(0.01, 64), used=st.lists(st.floats(0, 64), min_size=1, max_size=8))
def test_portions_add_up_to_the_room(room: float, used: list[float]) -> None:
    portions = divide_room(room, used)
    assert math.fsum(portions) == pytest.approx(room)
    assert min(portions) >= 0
