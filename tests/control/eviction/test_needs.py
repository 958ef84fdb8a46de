"""What has to be set free: beside the literal laws where we agree, and as rows where we do not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.control.eviction.needs import Need, by_usage, needs
from j10ce.model.knob import NODE, PERIOD_US, Setting, TargetId
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Reclaimable, Workload
from j10ce.testing import build
from tests.koordinator.theirs.laws import evict

GIB = 1 << 30


def snapshot(
    said: dict[str, Any],
    readings: dict[tuple[TargetId, str], float],
    *workloads: Workload,
    tier: str = "besteffort",
    lent: dict[str, float] | None = None,
    values: dict[Setting, float] | None = None,
) -> Snapshot:
    entitled = [build.entitlement(w, tier=tier) for w in workloads]
    on = build.node(cpus=8, memory="16Gi")
    snap = build.snapshot(*entitled, workloads=workloads, readings=readings, on=on, values=values)
    return replace(snap, strategy=build.strategy("s", {"eviction": said}).spec, lent=lent or {})


def the(snap: Snapshot, trigger: str) -> Need:
    return next(need for need in needs(snap) if need.trigger == trigger)


def batch(name: str, cpu: str, memory: str = "1Gi", priority: int = 5500) -> Workload:
    asked = {"batch": Reclaimable(build.resources(cpu, memory))}
    return replace(build.workload(name), reclaimable=asked, priority=priority)


def test_what_a_strategy_does_not_say_is_no_trigger() -> None:
    assert list(needs(snapshot({}, {(NODE, "memory.working_set"): 16.0 * GIB, (NODE, "cpu.usage"): 8.0}))) == []


def test_what_was_not_measured_is_no_trigger() -> None:
    assert list(needs(snapshot({"memory": {"thresholdPercent": 1}, "cpu": {"thresholdPercent": 1}}, {}))) == []


@given(used=st.integers(0, 1 << 40), capacity=st.integers(1 << 20, 1 << 40), threshold=st.integers(0, 100))
def test_usage_is_judged_as_by_the_literal_law(used: int, capacity: int, threshold: int) -> None:
    used, lower = min(used, capacity), max(0, threshold - 2)
    need = by_usage("memory", capacity, used, threshold, lower)
    assert (need.amount if need.over else 0) == evict.usage_release(capacity, used, threshold, lower)


@pytest.mark.parametrize(
    ("used", "over", "critical", "gib"),
    [
        pytest.param(9.0, False, False, 0.0, id="below both marks"),
        pytest.param(11.0, False, False, 0.16, id="between the marks it is not over, and not calm"),
        pytest.param(11.3, True, False, 0.48, id="at the threshold"),
        pytest.param(13.7, True, True, 2.88, id="half of the way to a full node"),
    ],
)
def test_memory_of_the_node(used: float, over: bool, critical: bool, gib: float) -> None:
    need = the(
        snapshot({"memory": {"thresholdPercent": 70, "lowerPercent": 67}}, {(NODE, "memory.working_set"): used * GIB}),
        "memory",
    )
    assert (need.over, need.critical) == (over, critical)
    assert need.amount / GIB == pytest.approx(gib, abs=0.01)


def test_cpu_of_the_node_is_in_millicores() -> None:
    need = the(snapshot({"cpu": {"thresholdPercent": 80}}, {(NODE, "cpu.usage"): 7.2}), "cpu")
    assert (need.over, need.amount) == (True, 8000 * (90 - 78) // 100)


SATISFIED = {"satisfactionLowerPercent": 60, "satisfactionUpperPercent": 80}


@pytest.mark.parametrize(
    ("others", "own", "cap", "over", "amount"),
    [
        pytest.param(6.0, 1.9, None, True, 4 * 800 - 2000, id="the others leave half of what it asks for"),
        pytest.param(4.0, 4.0, None, False, 0, id="it may use all that it asks for"),
        pytest.param(6.0, 0.5, None, False, 4 * 800 - 2000, id="it does not use what it may"),
        pytest.param(1.0, 1.0, 1.0, True, 4 * 800 - 1000, id="a quota leaves it one CPU"),
    ],
)
def test_best_effort_that_gets_too_little(
    others: float, own: float, cap: float | None, over: bool, amount: int
) -> None:
    w = batch("a", "4")
    readings = {(NODE, "cpu.usage"): others + own, (w.target, "cpu.usage"): own}
    values = {Setting(w.target, "cpu.max"): cap * PERIOD_US} if cap else {}
    need = the(snapshot({"cpu": SATISFIED}, readings, w, values=values), "satisfaction")
    assert (need.over, need.amount) == (over, amount)


@given(limit=st.integers(1, 16000), used=st.integers(0, 16000), request=st.integers(1, 32000), busy=st.integers(1, 100))
def test_satisfaction_by_what_is_lent_is_judged_as_by_the_literal_law(
    limit: int, used: int, request: int, busy: int
) -> None:
    """With a steady use, so that average and last sample are one; used as a share of what is lent, as we see it."""
    w = batch("a", f"{request}m")
    said = {"cpu": {**SATISFIED, "usagePercent": busy, "policy": "allocatable"}}
    readings = {(NODE, "cpu.usage"): used / 1000, (w.target, "cpu.usage"): used / 1000}
    need = the(snapshot(said, readings, w, lent={"batch-cpu": limit}), "satisfaction")
    seen = evict.BestEffortCpu(limit, used, request)
    rule = evict.Satisfaction(60, 80, busy, 60, by_allocatable=True)
    literal = evict.satisfaction_release(rule, evict.Measured(seen, 60, seen, 1, limit))
    assert (need.amount if need.over else 0) == pytest.approx(literal, abs=1)


@given(
    asked=st.lists(st.tuples(st.integers(1, 9000), st.integers(0, 9999)), min_size=1, max_size=5),
    lent=st.integers(0, 20000),
    threshold=st.integers(1, 300),
)
def test_what_is_asked_beyond_what_is_lent_is_judged_as_by_the_literal_law(
    asked: list[tuple[int, int]], lent: int, threshold: int
) -> None:
    pods = [batch(f"p{n}", f"{cpu}m", priority=priority) for n, (cpu, priority) in enumerate(asked)]
    said = {"allocatable": {"cpuThresholdPercent": threshold, "priorityThreshold": 5999}}
    need = the(snapshot(said, {}, *pods, lent={"batch-cpu": lent}), "lent-cpu")
    asking = [evict.Asking(p.priority or 0, {"batch-cpu": p.reclaimable["batch"].requests.cpu}) for p in pods]
    literal = evict.allocatable_release({"batch-cpu": lent}, asking, ["batch-cpu"], threshold, threshold, 5999)
    assert (need.amount if need.over else 0) == literal.get("batch-cpu", 0)


def test_an_amount_that_nobody_knows_is_no_reason_to_evict() -> None:
    said = {"allocatable": {"cpuThresholdPercent": 100}}
    assert list(needs(snapshot(said, {}, batch("a", "4")))) == []
