"""Every write finds the room it needs."""

from __future__ import annotations

import math

import pytest

from j10ce.model.knob import KNOBS, Setting, TargetId, group, link, share
from j10ce.model.plan import Make, Plan, ValueChange
from j10ce.plan.order import order
from tests.plan.world import API, CRUNCH, WEB, World, wish

TIER = group("j10ce_besteffort")


def writes(plan: Plan) -> list[tuple[str, str]]:
    return [(c.setting.target, c.setting.knob) for c in plan.changes if isinstance(c, ValueChange)]


@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        pytest.param((5e4, 5e4), (2e5, 2e5), ["cpu.max", "cpu.max.burst"], id="quota first when raising"),
        pytest.param((2e5, 2e5), (5e4, 5e4), ["cpu.max.burst", "cpu.max"], id="burst first when lowering"),
    ],
)
def test_burst_never_exceeds_quota(before: tuple[float, float], after: tuple[float, float], first: list[str]) -> None:
    world = World()
    for quota, burst in (before, after):
        plan = world.settle(wish(CRUNCH.target, "cpu.max", quota), wish(CRUNCH.target, "cpu.max.burst", burst))
    assert [knob for _, knob in writes(plan)] == first


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


ETH0 = link("eth0")


def change(target: TargetId, knob: str, old: float, new: float) -> ValueChange:
    several = KNOBS[knob].several
    return ValueChange(Setting(target, knob, "eth0" if several else ""), old, new, "network", "a test")


def test_queueing_on_a_link_begins_before_and_ends_after_all_that_is_said_of_its_traffic() -> None:
    together = share("default", "shop")
    begins = [
        change(WEB.target, "net.egress.floor", 0.0, 5e7),
        change(WEB.target, "net.egress.ceil", math.inf, 9e7),
        change(together, "net.egress.floor", 0.0, 6e7),
        change(ETH0, "link.egress.rate", math.inf, 1e8),
        change(ETH0, "link.take_over", 0.0, 1.0),
    ]
    ends = [c._replace(old=c.new, new=c.old) for c in begins]
    snap = World().snapshot()
    first, second, *_ = order(begins, [Make(together, "default/shop", "a test")], snap)[1:]
    assert [c.setting.knob for c in (first, second) if isinstance(c, ValueChange)] == [
        "link.take_over", "link.egress.rate",
    ]  # fmt: skip
    *_, rate, take_over = order(ends, [], snap)
    assert [c.setting.knob for c in (rate, take_over) if isinstance(c, ValueChange)] == [
        "link.egress.rate", "link.take_over",
    ]  # fmt: skip


def test_a_share_has_its_floor_before_those_inside_have_theirs() -> None:
    together = share("default", "shop")
    floors = [change(t, "net.egress.floor", 0.0, 5e7) for t in (WEB.target, together)]
    raised = order(floors, [], World().snapshot())
    lowered = order([c._replace(old=c.new, new=c.old) for c in floors], [], World().snapshot())
    assert [c.setting.target for c in raised if isinstance(c, ValueChange)] == [together, WEB.target]
    assert [c.setting.target for c in lowered if isinstance(c, ValueChange)] == [WEB.target, together]
