"""memory.min and memory.low in one tree: what is cut, what is not, and for whom."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.model.knob import ROOT, Setting, group
from j10ce.model.plan import Plan
from j10ce.model.snapshot import Foreign, Groups, Snapshot
from j10ce.plan.arbiter import arbitrate
from tests.plan.world import API, CRUNCH, DB, WEB, World, hold, wish

GI, MI = 2**30, 2**20
TOP, TIER = group("j10ce"), group("j10ce/sensitive")


def beside(snap: Snapshot, *foreign: Foreign) -> Snapshot:
    """The same machine with neighbours at its root."""
    root = msgspec.structs.replace(snap.groups[ROOT], foreign=foreign)
    return msgspec.structs.replace(snap, groups=Groups({**snap.groups.by_target, ROOT: root}))


def minimum(plan: Plan, target: object) -> float:
    return float(str(plan.verdicts[Setting(target, "memory.min")].value))  # type: ignore[arg-type]


def test_a_limit_below_the_sum_of_floors_cuts_no_floor() -> None:
    """Whoever limits the group gets that limit; the kernel then goes by the floors inside, as they are."""
    world = World(floors={WEB.target: (0, "32Mi"), API.target: (0, "64Mi")})
    world.kernel["j10ce"].values["memory.max"] = 52.0 * MI
    plan = world.settle(wish(WEB.target, "memory.min", 32.0 * MI), wish(API.target, "memory.min", 64.0 * MI))
    assert (minimum(plan, WEB.target), minimum(plan, API.target)) == (32 * MI, 64 * MI)
    assert world.value(TOP, "memory.min") == 96 * MI


def test_a_guarantee_beyond_the_floors_is_cut_before_a_floor() -> None:
    """7.5 GiB of 8 may be promised: what only a plugin asks for goes first, and as far as needed."""
    world = World(floors={WEB.target: (0, "7Gi")})
    wishes = [wish(WEB.target, "memory.min", 7.0 * GI), wish(CRUNCH.target, "memory.min", 1.0 * GI)]
    wishes.append(wish(API.target, "memory.min", 1.0 * GI))
    plan = world.settle(*wishes)
    assert minimum(plan, WEB.target) == 7 * GI
    assert minimum(plan, API.target) + minimum(plan, CRUNCH.target) == pytest.approx(GI / 2, abs=3 * 4096)


def test_what_neighbours_claim_in_a_group_that_is_held_is_not_promised_to_those_inside() -> None:
    stray = Foreign("stray", 1024, memory_min=256 * MI)
    world = World(foreign={TIER: (stray,)})
    plan = world.plan(wish(WEB.target, "memory.min", 1.0 * GI), holds=[hold(TIER, "memory.min", 1.0 * GI)])
    assert minimum(plan, WEB.target) == 768 * MI


def test_memory_that_neighbours_keep_is_not_promised_again() -> None:
    world = World(floors={WEB.target: (0, "7Gi")})
    snap = beside(world.snapshot(), Foreign("machine.slice", 1024, memory_min=4.0 * GI))
    plan = arbitrate([wish(WEB.target, "memory.min", 7.0 * GI)], snap, (), world.kernel.quantise)
    assert minimum(plan, WEB.target) == 3.5 * GI
    assert plan.notes == ("memory.min cut: 7Gi promised, 3.5Gi of 8Gi may be; others keep 4Gi",)


def test_neighbours_inside_a_group_above_are_counted_once() -> None:
    """The group above is raised to both; together they may not exceed what may be promised."""
    world = World(floors={DB.target: (0, "6Gi")})
    snap = world.snapshot()
    above = msgspec.structs.replace(snap.groups[group("system")], foreign=(Foreign("x", 1024, memory_min=3.0 * GI),))
    snap = msgspec.structs.replace(snap, groups=Groups({**snap.groups.by_target, group("system"): above}))
    plan = arbitrate([wish(DB.target, "memory.min", 6.0 * GI)], snap, (), world.kernel.quantise)
    assert minimum(plan, DB.target) == 4.5 * GI
    assert minimum(plan, group("system")) == 7.5 * GI


claims = st.integers(0, 10).map(lambda n: n * GI / 2)


@given(st.lists(claims, min_size=4, max_size=4), st.lists(claims, max_size=3), claims)
def test_whatever_is_wished_the_machine_keeps_its_part(wished: list[float], theirs: list[float], had: float) -> None:
    """The sum of memory.min right below the root leaves the machine half a gibibyte, or was there before us."""
    world = World(floors={WEB.target: (0, "2Gi")})
    world.kernel["system"].values["memory.min"] = had
    snap = beside(world.snapshot(), *(Foreign(f"f{n}", 1, memory_min=size) for n, size in enumerate(theirs)))
    targets = (WEB.target, API.target, CRUNCH.target, DB.target)
    wishes = [wish(t, "memory.min", size) for t, size in zip(targets, wished, strict=True)]
    plan = arbitrate(wishes, snap, (), world.kernel.quantise)
    after = dict(snap.settings) | {s: v.value for s, v in plan.verdicts.items()}
    tops = [t for t in snap.groups.children[ROOT] if t.startswith("group/")]
    total = sum(float(str(after[Setting(t, "memory.min")])) for t in tops) + sum(theirs)
    assert total <= max(7.5 * GI, sum(theirs) + had)
