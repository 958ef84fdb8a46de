"""`floors` and `memory-qos` on memory.min, memory.low and memory.high."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.floors import Floors
from j10ce.control.memory.protection import by_percent, claimed, most_min, promised, slowed
from j10ce.control.memory.qos import MemoryQos
from j10ce.model.kinds import MemorySection, Tier
from j10ce.model.plan import Bound, Proposal
from j10ce.model.resource import Resources
from j10ce.model.snapshot import Foreign, Snapshot
from j10ce.model.workload import Ceiling, Entitlement
from j10ce.testing import build

MI = 1 << 20
PAGE = 4096


def memory(proposals: list[Proposal]) -> dict[tuple[str, str], tuple[str, object]]:
    return {
        (str(p.setting.target), p.setting.knob): (p.bound.value, p.value)
        for p in proposals
        if p.setting.knob.startswith("memory")
    }


def qos(snap: Snapshot) -> dict[str, object]:
    return {p.setting.knob: p.value for p in MemoryQos(MemoryQos.Config()).propose(snap)}


@pytest.mark.parametrize(
    ("section", "limit", "want"),
    [
        pytest.param(MemorySection(min_percent=50), None, {"memory.min": 50 * MI}, id="half of the request"),
        pytest.param(MemorySection(min_percent=0), None, {"memory.min": 0}, id="zero is a wish"),
        pytest.param(
            MemorySection(min_percent=80, low_percent=50),
            None,
            {"memory.min": 80 * MI, "memory.low": 80 * MI},
            id="low is at least min",
        ),
        pytest.param(
            MemorySection(min_percent=80, low_percent=0),
            None,
            {"memory.min": 80 * MI, "memory.low": 0},
            id="low of zero stays zero",
        ),
        pytest.param(MemorySection(throttling_percent=0), "200Mi", {"memory.high": math.inf}, id="no slowing down"),
        pytest.param(
            MemorySection(throttling_percent=50), "200Mi", {"memory.high": 150 * MI}, id="half way to the limit"
        ),
        pytest.param(
            MemorySection(throttling_percent=50),
            None,
            {"memory.high": (100 + 924 // 2) * MI},
            id="no limit: the node's",
        ),
        pytest.param(
            MemorySection(min_percent=100), "100Mi", {"memory.min": 95 * MI}, id="min stays below a limit equal to it"
        ),
        pytest.param(MemorySection(min_percent=33), None, {"memory.min": 33 * MI}, id="whole pages"),
        pytest.param(MemorySection(), "200Mi", {}, id="a silent profile asks for nothing"),
    ],
)
def test_percentages_of_a_request_of_100_mi(section: MemorySection, limit: str | None, want: dict[str, float]) -> None:
    w = build.workload("w", memory="100Mi", memory_limit=limit)
    snap = build.snapshot(build.entitlement(w, memory=section), workloads=[w], on=build.node(memory="1Gi"))
    assert qos(snap) == want


def test_high_begins_above_a_reservation() -> None:
    w = build.workload("w", memory="10Mi", memory_limit="100Mi")
    e = build.entitlement(w, memory=MemorySection(throttling_percent=1), floor_memory="64Mi")
    assert qos(build.snapshot(e, workloads=[w])) == {"memory.high": 64 * MI}


def test_what_the_machine_lacks_is_not_proposed() -> None:
    w = build.workload("w", memory="100Mi")
    e = build.entitlement(
        w, memory=MemorySection(min_percent=50, low_percent=100, throttling_percent=80), floor_memory="1Gi"
    )
    snap = build.snapshot(e, workloads=[w], lacking=["memory.min", "memory.low", "memory.high"])
    assert qos(snap) == {}
    assert memory(list(Floors(Floors.Config()).propose(snap))) == {}


def test_a_workload_that_is_only_classified_gets_nothing() -> None:
    w = build.workload("w", memory="100Mi")
    e = build.entitlement(w, memory=MemorySection(min_percent=50), floor_memory="1Gi", chosen=False)
    snap = build.snapshot(e, workloads=[w])
    assert qos(snap) == {}
    assert memory(list(Floors(Floors.Config()).propose(snap))) == {}


@pytest.mark.parametrize(
    ("floor", "limit", "want"),
    [
        pytest.param("512Mi", None, {"memory.min": 512 * MI}, id="no limit"),
        pytest.param("512Mi", "1Gi", {"memory.min": 512 * MI}, id="well below the limit"),
        pytest.param("100Mi", "100Mi", {"memory.min": 95 * MI, "memory.low": 100 * MI}, id="equal to the limit"),
        pytest.param("1", None, {"memory.min": PAGE}, id="one byte is a page"),
    ],
)
def test_a_reservation_is_memory_min_and_the_rest_memory_low(
    floor: str, limit: str | None, want: dict[str, float]
) -> None:
    w = build.workload("w", memory_limit=limit)
    snap = build.snapshot(build.entitlement(w, floor_memory=floor), workloads=[w])
    proposals = memory(list(Floors(Floors.Config()).propose(snap)))
    assert proposals == {(str(w.target), knob): ("at_least", value) for knob, value in want.items()}


def test_groups_above_that_are_not_ours_are_asked_to_cover_all_claims_inside() -> None:
    unit = build.workload("unit", memory="100Mi", handle=build.handle("a.slice/a-b.slice/unit"))
    plain = build.workload("plain", handle=build.handle("a.slice/plain"))
    given = [
        build.entitlement(unit, floor_memory="64Mi", memory=MemorySection(min_percent=80, low_percent=100)),
        build.entitlement(plain, floor_memory="16Mi"),
    ]
    groups = [
        build.group("a.slice", owned=False, foreign=[Foreign("x", 1024, memory_min=1 * MI, memory_low=2 * MI)]),
        build.group("a.slice/a-b.slice", owned=False, foreign=[Foreign("y", 1024, memory_min=4 * MI)]),
    ]
    tree = build.tree([unit, plain], {e.target: e for e in given}, groups=groups)
    proposals = memory(
        list(Floors(Floors.Config()).propose(build.snapshot(*given, workloads=[unit, plain], groups=tree)))
    )
    above = {key: value for key, value in proposals.items() if key[0].startswith("group/")}
    assert above == {
        ("group/a.slice/a-b.slice", "memory.min"): ("at_least", (80 + 4) * MI),
        ("group/a.slice/a-b.slice", "memory.low"): ("at_least", 100 * MI),
        ("group/a.slice", "memory.min"): ("at_least", (80 + 4 + 16 + 1) * MI),
        ("group/a.slice", "memory.low"): ("at_least", 102 * MI),
    }


def test_covering_in_our_own_groups_is_left_to_the_arbiter() -> None:
    w = build.workload("w")
    proposals = Floors(Floors.Config()).propose(build.snapshot(build.entitlement(w, floor_memory="1Gi"), workloads=[w]))
    assert {p.setting.target for p in proposals if p.setting.knob == "memory.min"} == {w.target}


percents = st.integers(0, 100)
sizes = st.integers(0, 1 << 40)
limits = st.one_of(st.just(math.inf), st.integers(0, 1 << 40).map(float))


@given(min_percent=percents, low_percent=percents, throttling=percents, request=sizes, floor=sizes, limit=limits)
def test_memory_min_is_always_below_memory_max(
    min_percent: int, low_percent: int, throttling: int, request: int, floor: int, limit: float
) -> None:
    section = MemorySection(min_percent=min_percent, low_percent=low_percent, throttling_percent=throttling)
    e = Entitlement(
        build.workload("w").target,
        True,
        Tier.STANDARD,
        requests=Resources(memory=request),  # type: ignore[arg-type]
        floor=Resources(memory=floor),  # type: ignore[arg-type]
        ceiling=Ceiling(memory=limit),
        memory=section,
    )
    for kept in (promised(e, PAGE), by_percent(e, PAGE), claimed(e, PAGE)):
        assert kept.min < max(limit, 1)
        assert kept.min % PAGE == 0
        assert kept.low == 0 or kept.low >= kept.min or kept == claimed(e, PAGE)
    assert max(promised(e, PAGE)) >= floor
    kept = claimed(e, PAGE).min
    assert slowed(e, request, limit, 1 << 40, PAGE, kept) >= kept


@given(limit=st.integers(0, 1 << 50))
def test_a_twentieth_of_the_limit_stays_reclaimable(limit: int) -> None:
    assert limit - most_min(limit, PAGE) >= min(limit, max(PAGE, limit * 0.05))


def test_floors_bound_and_never_want_memory() -> None:
    w = build.workload("w", memory_limit="1Gi")
    proposals = Floors(Floors.Config()).propose(build.snapshot(build.entitlement(w, floor_memory="1Gi"), workloads=[w]))
    assert all(p.bound is Bound.AT_LEAST for p in proposals if p.setting.knob.startswith("memory"))
