"""What the agent tells about use: means, percentiles, the peak to expect, and a memory that lasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from j10ce.agent.cache import Cache, Histories
from j10ce.agent.report.usage import EVERY_S, SAVE_S, WARM_UP_S, Usage
from j10ce.agent.ring.ring import Report
from j10ce.daemon.clock import Instant
from j10ce.model.knob import NODE, TargetId
from j10ce.model.plan import Outcome, Plan
from j10ce.model.quantity import Quantity
from j10ce.model.resource import NOTHING
from j10ce.policy.entitlement.ledger import Ledger
from j10ce.policy.entitlement.resolve import Resolution
from j10ce.testing.build import WALL, entitlement, node, snapshot, workload

GiB = 2.0**30
WEB, CRUNCH = workload("web", cpu="2", memory="1Gi"), workload("crunch", cpu="3")
USES = (5.0, 1.0, 3.0)
ENTITLED = (entitlement(WEB, tier="sensitive", floor_cpu="1"), entitlement(CRUNCH, tier="besteffort"))


def report(seconds: float, cpu: Sequence[float], memory: Sequence[float] = (4.0, 1.0, 2.0)) -> Report:
    """The node, web and crunch use so many CPUs and GiB."""
    targets: tuple[TargetId, ...] = (NODE, WEB.target, CRUNCH.target)
    readings: Mapping[tuple[TargetId, str], float] = {
        **{(t, "cpu.usage"): n for t, n in zip(targets, cpu, strict=True)},
        **{(t, "memory.working_set"): n * GiB for t, n in zip(targets, memory, strict=True)},
    }
    snap = snapshot(*ENTITLED, workloads=[WEB, CRUNCH], on=node(cpus=8), readings=readings)
    resolution = Resolution({}, Ledger(NOTHING))
    plan = Plan((), {})
    return Report(
        Instant(1000.0 + seconds, WALL + seconds), "tick", snap, plan, Outcome.planned(plan), resolution, {}, (), {},
        (), True, 0.0,
    )  # fmt: skip


def amounts(**quantities: str) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in quantities.items()}


def learned(saved: list[Histories], seconds: float = WARM_UP_S, cpu: Sequence[float] = (5.0, 1.0, 3.0)) -> Usage:
    usage = Usage(Histories(), saved.append)
    for n in range(int(seconds / EVERY_S) + 1):
        usage.observe(report(n * EVERY_S, cpu))
    return usage


def test_best_effort_leaves_alone_what_everyone_else_uses_and_asks_for() -> None:
    last = report(0, (5.0, 1.0, 3.0))
    usage = Usage(Histories(), lambda _: None)
    usage.observe(last)
    demand = usage.demand(last)
    assert demand["cpu"] == amounts(system="1", usage="1", larger="2", request="2", besteffort="3")
    assert demand["memory"] == amounts(system="1Gi", usage="1Gi", larger="1Gi", request="1Gi", besteffort="0")


def test_nothing_is_reported_before_anything_is_measured() -> None:
    usage = Usage(Histories(), lambda _: None)
    assert usage.demand(report(0, (5.0, 1.0, 3.0))) == {}
    assert usage.predicted(report(0, (5.0, 1.0, 3.0))) == {}


def test_the_high_percentile_of_five_minutes_counts() -> None:
    usage = Usage(Histories(), lambda _: None)
    for n in range(30):
        usage.observe(report(n * EVERY_S, (5.0, 3.0 if n in (10, 11) else 1.0, 1.0)))
    last = report(300, (5.0, 1.0, 1.0))
    assert usage.demand(last)["cpu"]["usage"] == Quantity.parse("3")
    for n in range(30, 60):
        usage.observe(report(n * EVERY_S, (5.0, 1.0, 1.0)))
    assert usage.demand(last)["cpu"]["usage"] == Quantity.parse("1")


def test_reports_in_between_are_not_counted_twice() -> None:
    usage = Usage(Histories(), lambda _: None)
    usage.observe(report(0, (5.0, 1.0, 1.0)))
    usage.observe(report(EVERY_S - 0.1, (5.0, 9.0, 1.0)))
    assert usage.demand(report(1, (5.0, 1.0, 1.0)))["cpu"]["usage"] == Quantity.parse("1")


def test_a_peak_is_predicted_once_there_is_an_hour_of_history() -> None:
    usage = learned([])
    assert usage.predicted(report(WARM_UP_S - 1, USES)) == {}
    peak = usage.predicted(report(WARM_UP_S, USES))
    assert 5000 <= peak["cpu"]["node"].millicores() < 5300
    assert 2000 <= peak["cpu"]["protected"].millicores() < 2120, "without best effort"
    assert 2 * GiB <= peak["memory"]["protected"].bytes() < 2.12 * GiB


def test_what_was_learned_survives_a_restart(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "run", tmp_path / "state")
    saved: list[Histories] = []
    usage = learned(saved)
    usage.save()
    cache.keep_histories(saved[-1])
    again = Usage(Cache(tmp_path / "run", tmp_path / "state").histories(), lambda _: None)
    again.observe(report(WARM_UP_S + EVERY_S, USES))
    last = report(WARM_UP_S + EVERY_S, USES)
    assert again.predicted(last) == usage.predicted(last)
    assert (tmp_path / "state/histories.json").stat().st_size < 20_000


def test_what_each_leaves_of_its_request_at_its_peak_counts_once_it_is_old_enough() -> None:
    usage = learned([])
    spare = usage.predicted(report(WARM_UP_S, USES))["cpu"]["spare"].millicores()
    assert 2000 - 1160 < spare <= 2000 - 1100, "2 CPUs less one, its bucket and a tenth; best effort leaves nothing"
    young = Usage(Histories(), lambda _: None)
    young.observe(report(0, USES))
    assert young.predicted(report(0, USES)) == {}


@pytest.mark.parametrize(
    ("priority", "chosen", "expected"),
    [
        pytest.param(None, False, "0", id="by its class"),
        pytest.param(9500, False, "3", id="important"),
        pytest.param(9500, True, "0", id="chosen"),
    ],
)
def test_what_asks_for_nothing_is_lent_out_unless_its_priority_says_otherwise(
    priority: int | None, chosen: bool, expected: str
) -> None:
    app = workload("app", priority=priority)
    readings = {(NODE, "cpu.usage"): 4.0, (app.target, "cpu.usage"): 3.0}
    snap = snapshot(entitlement(app, tier="besteffort", chosen=chosen), workloads=[app], readings=readings)
    first = report(0, USES)
    only = Report(first.at, "tick", snap, *(getattr(first, f) for f in Report.__struct_fields__[3:]))
    usage = Usage(Histories(), lambda _: None)
    usage.observe(only)
    assert usage.demand(only)["cpu"]["usage"] == Quantity.parse(expected)


def test_it_saves_by_itself_now_and_then() -> None:
    saved: list[Histories] = []
    learned(saved, seconds=2 * SAVE_S)
    assert len(saved) == 3


def test_a_damaged_memory_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/histories.json").write_text("{")
    cache = Cache(tmp_path / "run", tmp_path / "state")
    assert cache.histories() == Histories()
    assert "goes on without it" in cache.warnings[0]


@pytest.mark.parametrize("tier", ["exclusive"])
def test_exclusive_cpus_count_whole(tier: str) -> None:
    usage = Usage(Histories(), lambda _: None)
    pinned = entitlement(WEB, tier=tier, floor_cpu="2")
    first = report(0, (5.0, 1.0, 3.0))
    snap = snapshot(pinned, workloads=[WEB], readings={(NODE, "cpu.usage"): 5.0, (WEB.target, "cpu.usage"): 1.0})
    only = Report(first.at, "tick", snap, *(getattr(first, f) for f in Report.__struct_fields__[3:]))
    usage.observe(only)
    assert usage.demand(only)["cpu"]["usage"] == Quantity.parse("2")
