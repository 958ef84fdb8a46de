"""Every write finds the room it needs."""

from __future__ import annotations

import math

import pytest

from j10ce.model.knob import Setting, group
from j10ce.model.plan import Plan, ValueChange
from tests.plan.world import API, CRUNCH, WEB, World, wish

TIER = group("j10ce_besteffort")


def writes(plan: Plan) -> list[tuple[str, str]]:
    return [(c.setting.target, c.setting.knob) for c in plan.changes if isinstance(c, ValueChange)]


@pytest.mark.parametrize(
    ("before", "after", "order"),
    [
        pytest.param((5e4, 5e4), (2e5, 2e5), ["cpu.max", "cpu.max.burst"], id="quota first when raising"),
        pytest.param((2e5, 2e5), (5e4, 5e4), ["cpu.max.burst", "cpu.max"], id="burst first when lowering"),
    ],
)
def test_burst_never_exceeds_quota(before: tuple[float, float], after: tuple[float, float], order: list[str]) -> None:
    world = World()
    for quota, burst in (before, after):
        plan = world.settle(wish(CRUNCH.target, "cpu.max", quota), wish(CRUNCH.target, "cpu.max.burst", burst))
    assert [knob for _, knob in writes(plan)] == order


def test_on_v1_quotas_loosen_from_the_top_and_tighten_from_the_bottom() -> None:
    world = World("v1")
    for quota, first in ((1e5, CRUNCH.target), (2e5, TIER), (5e4, CRUNCH.target), (math.inf, TIER)):
        plan = world.settle(wish(TIER, "cpu.max", quota), wish(CRUNCH.target, "cpu.max", quota))
        assert writes(plan)[0] == (first, "cpu.max")


def test_idle_is_cleared_before_the_weight_is_written() -> None:
    world = World()
    world.settle(wish(CRUNCH.target, "cpu.idle", 1.0))
    plan = world.settle(wish(CRUNCH.target, "cpu.weight", 512.0))
    assert [knob for _, knob in writes(plan)] == ["cpu.idle", "cpu.weight"]


def test_a_guarantee_moves_between_siblings_without_their_sum_growing() -> None:
    world = World()
    sizes = ((6.0, 2.0), (2.0, 6.0))
    for web, api in sizes:
        plan = world.settle(wish(WEB.target, "memory.low", web * 2**20), wish(API.target, "memory.low", api * 2**20))
    assert writes(plan) == [(WEB.target, "memory.low"), (API.target, "memory.low")]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_set_that_moves_sideways_is_widened_first(version: str) -> None:
    world = World(version)  # type: ignore[arg-type]
    for cpus in (frozenset({0, 1}), frozenset({2, 3})):
        plan = world.settle(wish(TIER, "cpuset.cpus", cpus), wish(CRUNCH.target, "cpuset.cpus", cpus))
    steps = [c.new for c in plan.changes if isinstance(c, ValueChange) and c.setting == Setting(TIER, "cpuset.cpus")]
    assert steps == [frozenset({0, 1, 2, 3}), frozenset({2, 3})]
