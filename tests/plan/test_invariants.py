"""What holds for every set of wishes: the architecture's invariants 1, 2, 3, 5 and 10."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.model.knob import KNOBS, Setting, Unit, Value
from j10ce.model.plan import Bound, Proposal, Rank, ValueChange
from j10ce.plan.arbiter import Arbiter, arbitrate
from j10ce.plan.merge import least_cap
from j10ce.plan.rights import Rights
from tests.plan.world import API, CRUNCH, DB, TARGETS, WEB, World, hold, wish

MiB = 2**20
FLOORS = {WEB.target: ("500m", "256Mi"), DB.target: ("1", "1Gi")}
VERSIONS = pytest.mark.parametrize("version", ["v1", "v2"])


def values(knob: str) -> st.SearchStrategy[Value]:
    match KNOBS[knob].unit:
        case Unit.SET:
            return st.frozensets(st.integers(0, 3), max_size=4)
        case Unit.FLAG:
            return st.sampled_from([0.0, 1.0])
        case Unit.SHARES:
            return st.floats(2, 10000)
        case Unit.MICROSECONDS:
            return st.floats(0, 400_000) | st.just(math.inf)
        case Unit.BYTES:
            return st.integers(0, 4096).map(lambda n: n * MiB + n) | st.just(math.inf)


def proposals_of(knob: str) -> st.SearchStrategy[Proposal]:
    return st.builds(
        wish,
        st.sampled_from(TARGETS),
        st.just(knob),
        values(knob),
        st.sampled_from(Bound),
        owner=st.sampled_from(["a", "b", "c"]),
        rank=st.sampled_from([Rank.ADVICE, Rank.POLICY, Rank.SAFETY]),
        reason=st.sampled_from(["x", "y"]),
    )


def wishes_of(*knobs: str) -> st.SearchStrategy[list[Proposal]]:
    return st.lists(st.one_of([proposals_of(k) for k in knobs]), max_size=14)


# Knobs that constrain each other are drawn together, or rules would rarely meet.
FAMILIES = [wishes_of("cpu.max", "cpu.max.burst"), wishes_of("memory.min", "memory.max"), wishes_of("cpuset.cpus")]
FAMILIES += [wishes_of("cpu.weight", "cpu.idle"), wishes_of(*KNOBS)]
WISHES = st.one_of(FAMILIES)
TWICE = st.one_of([st.tuples(family, family) for family in FAMILIES])  # before and after


@VERSIONS
@given(twice=TWICE, data=st.data())
def test_the_order_of_proposals_does_not_matter(version: Any, twice: Any, data: st.DataObject) -> None:
    start, wishes = twice
    world = World(version, floors=FLOORS)
    world.settle(*start)
    shuffled = data.draw(st.permutations(wishes))
    assert world.plan(*wishes) == world.plan(*shuffled)


@VERSIONS
@given(twice=TWICE)
def test_no_cap_cuts_a_floor_and_no_bound_is_passed_without_a_word(version: Any, twice: Any) -> None:
    start, wishes = twice
    world = World(version, floors=FLOORS)
    world.settle(*start)
    snap = world.snapshot()
    plan = arbitrate(wishes, snap, (), world.kernel.quantise)
    floors = Rights.of(snap).floors
    for change in plan.changes:
        if isinstance(change, ValueChange) and change.setting.target in floors and isinstance(change.new, float):
            assert change.new >= least_cap(change.setting.knob, floors[change.setting.target], snap.node)
    for s, verdict in plan.verdicts.items():
        ceiling = min((p.value for p in wishes if p.setting == s and p.bound is Bound.AT_MOST), default=math.inf)
        if isinstance(verdict.value, float) and verdict.value > ceiling:
            assert verdict.clamps or (verdict.by is not None and verdict.by.bound is Bound.AT_LEAST)


@VERSIONS
@given(wishes=WISHES)
def test_a_guarantee_never_exceeds_its_cap_nor_the_machine(version: Any, wishes: Any) -> None:
    world = World(version, floors=FLOORS)
    world.settle(*wishes)
    for target in Rights.of(world.snapshot()).ours:
        cap = world.value(target, "memory.max")
        for knob in ("memory.min", "memory.low"):
            guarantee = world.value(target, knob)
            assert guarantee is None or guarantee <= cap  # type: ignore[operator]
    promised = world.value(WEB.target, "memory.min"), world.value(DB.target, "memory.min")
    assert sum(p for p in promised if isinstance(p, float)) <= world.node.memory * 0.95


@VERSIONS
@pytest.mark.parametrize("through", ["kernel", "back end"])
@given(twice=TWICE)
def test_after_a_plan_the_next_one_is_empty(version: Any, through: str, twice: Any) -> None:
    start, wishes = twice
    world = World(version, floors=FLOORS, through=through)
    world.settle(*start)
    world.settle(*wishes)
    assert world.plan(*wishes).changes == ()


@VERSIONS
@given(twice=TWICE)
def test_the_tree_is_valid_after_every_single_write(version: Any, twice: Any) -> None:
    start, wishes = twice
    world = World(version, floors=FLOORS)
    world.settle(*start)
    for _ in world.apply(world.plan(*wishes)):
        world.check()


@VERSIONS
@given(wishes=WISHES)
def test_a_tree_that_is_not_there_is_made_before_it_is_written(version: Any, wishes: Any) -> None:
    world = World(version, floors=FLOORS, made=False)
    world.settle(*wishes)
    assert world.plan(*wishes).changes == ()


@VERSIONS
@given(start=WISHES)
def test_what_nobody_asks_for_any_more_goes_back(version: Any, start: Any) -> None:
    world = World(version)
    fresh = world.kernel.settings()
    world.settle(*start)
    world.settle()
    assert world.kernel.settings() == fresh


@given(
    wishes=WISHES,
    garbage=st.lists(
        st.builds(
            wish, st.sampled_from(TARGETS), st.sampled_from(list(KNOBS)), st.just(math.nan), owner=st.just("bad")
        ),
        max_size=4,
    ),
)
def test_a_value_that_is_none_changes_nobody_elses_settings(wishes: Any, garbage: Any) -> None:
    world = World(floors=FLOORS)
    clean, dirty = world.plan(*wishes), world.plan(*wishes, *garbage)
    assert (clean.changes, clean.verdicts) == (dirty.changes, dirty.verdicts)


@given(steady=WISHES, failing=WISHES)
def test_a_controller_that_falls_silent_leaves_the_verdicts_of_others(steady: Any, failing: Any) -> None:
    """Weights and switches stand alone: no rule ties them to another target."""
    alone = {"cpu.weight", "memory.oom.group"}
    wishes = [p for p in steady if p.setting.knob in alone and p.setting.target != CRUNCH.target]
    other = [p._replace(setting=Setting(CRUNCH.target, p.setting.knob)) for p in failing]
    world = World()
    together, without = world.plan(*wishes, *other), world.plan(*wishes)
    assert {s: v for s, v in together.verdicts.items() if s in without.verdicts} == dict(without.verdicts)


@VERSIONS
@given(twice=TWICE, frozen=st.sampled_from(sorted(KNOBS)), target=st.sampled_from(TARGETS))
def test_a_held_setting_is_never_written(version: Any, twice: Any, frozen: Any, target: Any) -> None:
    start, wishes = twice
    world = World(version)
    world.settle(*start)
    plan = world.plan(*wishes, holds=[hold(target, frozen)])
    assert Setting(target, frozen) not in {c.setting for c in plan.changes if isinstance(c, ValueChange)}


@VERSIONS
@given(data=st.data(), pool=st.lists(WISHES.map(tuple), min_size=2, max_size=3))
def test_remembering_gives_the_same_plan_as_starting_afresh(version: Any, data: st.DataObject, pool: Any) -> None:
    """Batches come again as the same objects, while floors, holds and what the kernel holds move under them."""
    world = World(version)
    arbiter = Arbiter(world.kernel.quantise)
    holds = [[], [hold(WEB.target, "cpu.max")], [hold(DB.target, "memory.min", 64.0 * MiB)]]
    for _ in range(data.draw(st.integers(2, 5))):
        batches = [data.draw(st.sampled_from(pool)), data.draw(st.sampled_from(pool))]
        cores = data.draw(st.integers(0, 2))
        world.floors = dict.fromkeys((API.target, DB.target), (cores, f"{cores}Gi")) if cores else {}
        snap, journal = msgspec.structs.replace(world.snapshot(), epoch=cores), dict(world.journal)
        held = data.draw(st.sampled_from(holds))
        remembered = arbiter.arbitrate(batches, snap, held, originals=journal)
        every = [p for batch in batches for p in batch]
        assert remembered == arbitrate(every, snap, held, world.kernel.quantise, originals=journal)
        if data.draw(st.booleans()):
            for _ in world.apply(remembered):
                world.check()
