"""An operator's freeze wins, unless it would cut a floor."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from j10ce.model.knob import Setting, Value, group
from j10ce.model.plan import Bound
from j10ce.plan.arbiter import Arbiter
from j10ce.plan.hold import hold_problem
from j10ce.testing import build
from tests.plan.world import CRUNCH, WEB, World, hold, wish

FLOORS = {WEB.target: ("500m", "256Mi")}
SUPPRESS = wish(CRUNCH.target, "cpu.max", 5e4, Bound.AT_MOST, owner="suppress")


def test_a_setting_held_as_it_is_stays() -> None:
    plan = World().plan(SUPPRESS, holds=[hold(CRUNCH.target, "cpu.max")])
    verdict = plan.verdicts[SUPPRESS.setting]
    assert plan.empty
    assert (verdict.held, verdict.others) == ("by alice: incident 42", (SUPPRESS,))


def test_an_operators_edit_under_a_hold_is_what_the_arbiter_remembers() -> None:
    world, frozen = World(), [hold(CRUNCH.target, "cpu.max")]
    arbiter, snap = Arbiter(world.kernel.quantise), world.snapshot()
    arbiter.arbitrate([(SUPPRESS,)], snap, frozen)
    edited = replace(snap, settings={**snap.settings, SUPPRESS.setting: 7e4})
    plan = arbiter.arbitrate([(SUPPRESS,)], edited, frozen)
    assert (plan.changes, plan.verdicts[SUPPRESS.setting].value) == ((), 7e4)


def test_a_held_value_is_not_moved_by_the_bounds_of_others() -> None:
    world = World()
    world.settle(SUPPRESS, holds=[hold(CRUNCH.target, "cpu.max", 2e5)])
    assert world.value(CRUNCH.target, "cpu.max") == 2e5


def test_an_expired_hold_is_forgotten() -> None:
    expired = hold(CRUNCH.target, "cpu.max")._replace(expires=build.WALL)
    assert not World().plan(SUPPRESS, holds=[expired]).empty


@pytest.mark.parametrize(
    ("knob", "value", "problem"),
    [
        ("cpu.max", 1e4, "cpu.max 10000 (0.1 CPUs) cuts the floor of cpu 500m: at least 50000 (0.5 CPUs)"),
        ("cpu.max", 5e4, None),
        ("memory.max", 2.0**20, "memory.max 1Mi cuts the floor of memory 256Mi: at least 256Mi"),
        ("memory.min", 0.0, "memory.min 0 cuts the floor of memory 256Mi: at least 256Mi"),
        ("memory.low", 0.0, None),
        ("cpu.weight", 2.0, "cpu.weight 2 leaves 3m when all siblings run, 500m is promised"),
        ("cpu.weight", 1024.0, None),
        ("cpu.idle", 1.0, "cpu.idle 1 leaves 4m when all siblings run, 500m is promised"),
        ("cpuset.cpus", frozenset({0}), None),
        ("cgroup.freeze", 1.0, "cgroup.freeze 1 leaves no CPU time, 500m is promised"),
        ("cgroup.freeze", 0.0, None),
    ],
)
def test_a_hold_that_cuts_a_floor_is_named_with_the_numbers(knob: str, value: Value, problem: str | None) -> None:
    assert hold_problem(hold(WEB.target, knob, value), World(floors=FLOORS).snapshot()) == problem


def test_too_few_held_cpus_cut_a_floor() -> None:
    world = World(floors={WEB.target: ("2", "0")})
    problem = hold_problem(hold(WEB.target, "cpuset.cpus", frozenset({0})), world.snapshot())
    assert problem == "1 CPUs are fewer than the promised 2"


def test_a_hold_on_a_tier_is_judged_by_the_floors_inside() -> None:
    problem = hold_problem(hold(group("j10ce/sensitive"), "cpu.max", 1e4), World(floors=FLOORS).snapshot())
    assert problem is not None


def test_a_hold_that_cuts_a_floor_is_refused() -> None:
    plan = World(floors=FLOORS).plan(holds=[hold(WEB.target, "cpu.max", 1e4)])
    assert plan.empty
    assert plan.notes[0].startswith("hold by alice on workload/default/web cpu.max refused: cpu.max 10000")


def test_a_hold_that_may_break_a_reservation_wins_and_is_noted() -> None:
    world = World(floors=FLOORS)
    plan = world.settle(holds=[hold(WEB.target, "cpu.max", 1e4, breaks_reservation=True)])
    assert world.value(WEB.target, "cpu.max") == 1e4
    assert plan.notes[0].startswith("hold by alice on workload/default/web cpu.max breaks a reservation")


def test_on_v1_a_held_child_lifts_its_parent() -> None:
    world = World("v1")
    world.settle(wish(CRUNCH.target, "cpu.max", 1e5))
    tier = wish(group("j10ce_besteffort"), "cpu.max", 5e4)
    plan = world.settle(tier, holds=[hold(CRUNCH.target, "cpu.max")])
    assert plan.verdicts[Setting(group("j10ce_besteffort"), "cpu.max")].value == 1e5
