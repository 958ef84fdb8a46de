"""What holds for every set of wishes: the architecture's invariants 1, 2, 3, 5 and 10."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from j10ce.model.knob import CGROUP_KNOBS, ROOT, Setting, TargetId, Unit, Value, group
from j10ce.model.plan import Bound, Proposal, Rank, ValueChange
from j10ce.model.snapshot import Foreign
from j10ce.plan.arbiter import UNADVISED, Arbiter, arbitrate
from tests.plan.world import API, CRUNCH, DB, TARGETS, WEB, World, hold, wish

MiB = 2**20
GiB = 2**30
PAGE = 4096
FLOORS = {WEB.target: ("500m", 256 * MiB + 1), DB.target: ("1", "1Gi")}  # the first is no whole number of pages
VERSIONS = pytest.mark.parametrize("version", ["v1", "v2"])
# Neighbours at the root and beside workloads of ours, adopted and placed; what they keep and use counts.
NEIGHBOURS = {
    ROOT: (Foreign("init", 1024, memory_min=512 * MiB),),
    group("system"): (Foreign("log", 1024, memory_min=256 * MiB, memory_low=128 * MiB),),
    group("j10ce/sensitive"): (Foreign("stray", 512, memory_min=128 * MiB, memory_low=64 * MiB),),
}
USED = {API.target: 98.0 * MiB, DB.target: 1.5 * GiB, CRUNCH.target: 300.0 * MiB}


def values(knob: str) -> st.SearchStrategy[Value]:
    """Mostly of four numbers, so that those of parents, children and bounds meet, fall together and cross."""
    match CGROUP_KNOBS[knob].unit:
        case Unit.SET:
            return st.frozensets(st.integers(0, 3), max_size=4)
        case Unit.FLAG:
            return st.sampled_from([0.0, 1.0])
        case Unit.SHARES:
            return st.sampled_from([2.0, 512.0, 1024.0, 9000.0]) | st.floats(2, 10000)
        case Unit.MICROSECONDS:
            return st.sampled_from([math.inf, 20_000.0, 50_000.0, 300_000.0]) | st.floats(0, 400_000)
        case Unit.BYTES:
            few = st.sampled_from([math.inf, 100.0 * MiB + 1, 1.0 * GiB, 3.0 * GiB])
            return few | st.integers(0, 4096).map(lambda n: n * MiB + n)


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


MAINLINE = [name for name, knob in CGROUP_KNOBS.items() if not knob.rare]  # what the fake kernel has
# Knobs that constrain each other are drawn together, or rules would rarely meet.
FAMILIES = [wishes_of("cpu.max", "cpu.max.burst"), wishes_of("memory.min", "memory.max"), wishes_of("cpuset.cpus")]
FAMILIES += [wishes_of("cpu.weight", "cpu.idle"), wishes_of(*MAINLINE)]
WISHES = st.one_of(FAMILIES)
CEILINGS_OF_BOTH = [  # a floor of advice that beats one of them and is cut by the other
    wish(WEB.target, "cpu.weight", 2.0, Bound.AT_MOST, rank=Rank.ADVICE),
    wish(WEB.target, "cpu.weight", 1024.0, Bound.AT_LEAST, rank=Rank.ADVICE),
    wish(WEB.target, "cpu.weight", 512.0, Bound.AT_MOST, rank=Rank.POLICY),
]
WOKEN = (  # an idle group that wakes up beside advice which its weight of an idle group would hide
    [wish(group("j10ce"), "cpu.idle", 1.0)],
    [wish(group("j10ce"), "cpu.weight", 2.0, Bound.AT_MOST, rank=Rank.ADVICE)],
)
TWICE = st.one_of([st.tuples(family, family) for family in FAMILIES])  # before and after


@VERSIONS
@given(twice=TWICE, data=st.data())
def test_the_order_of_proposals_does_not_matter(version: Any, twice: Any, data: st.DataObject) -> None:
    start, wishes = twice
    world = World(version, floors=FLOORS)
    world.settle(*start)
    shuffled = data.draw(st.permutations(wishes))
    assert world.plan(*wishes) == world.plan(*shuffled)


def promised_inside(world: World, target: TargetId) -> tuple[int, int]:
    """Millicores and bytes of all floors at a target and below it."""
    tree, every = world.tree(), world.entitlements()
    inside = [e.floor for t, e in every.items() if target == t or target in tree.ancestors(t)]
    return sum(f.cpu for f in inside), sum(f.memory for f in inside)


@VERSIONS
@given(twice=TWICE)
@example(twice=([], CEILINGS_OF_BOTH))
def test_no_cap_cuts_a_floor_and_no_bound_is_passed_without_a_word(version: Any, twice: Any) -> None:
    start, wishes = twice
    world = World(version, floors=FLOORS)
    world.settle(*start)
    plan = arbitrate(wishes, world.snapshot(), (), world.kernel.quantise)
    for change in plan.changes:
        if isinstance(change, ValueChange) and isinstance(change.new, float) and math.isfinite(change.new):
            cpu, memory = promised_inside(world, change.setting.target)
            if change.setting.knob == "cpu.max":
                assert change.new / 100 >= cpu  # microseconds in 100 ms
            if change.setting.knob in ("memory.max", "memory.high"):
                assert change.new // PAGE * PAGE >= memory
    left_out = any(note.startswith("advice of") or note.endswith(UNADVISED) for note in plan.notes)
    heard = [p for p in wishes if not (left_out and p.rank is Rank.ADVICE)]
    for p in heard:
        verdict = plan.verdicts.get(p.setting)  # none of what this kernel cannot do
        if verdict and p.bound is Bound.AT_MOST and isinstance(verdict.value, float) and verdict.value > p.value:
            assert verdict.clamps or (p in verdict.others and beaten(p, heard))


def beaten(ceiling: Proposal, wishes: list[Proposal]) -> bool:
    """By a floor; that of advice beats the ceiling of advice alone."""
    floors = [p for p in wishes if p.setting == ceiling.setting and p.bound is Bound.AT_LEAST]
    return any(p.value > ceiling.value and (p.rank is not Rank.ADVICE or ceiling.rank is Rank.ADVICE) for p in floors)


def merged(wishes: list[Proposal], base: float) -> float:
    """The want of the highest rank, moved by bounds: those of advice, then the others'; a floor beats a ceiling."""
    wants = [p for p in wishes if p.bound is Bound.WANT]
    first = min(wants, key=lambda p: (-p.rank, p.owner, p.reason, type(p.value).__name__, p.value), default=None)
    value = base if first is None else first.value
    for some in ([p for p in wishes if p.rank is Rank.ADVICE], [p for p in wishes if p.rank is not Rank.ADVICE]):
        value = min([value, *(p.value for p in some if p.bound is Bound.AT_MOST)])
        value = max([value, *(p.value for p in some if p.bound is Bound.AT_LEAST)])
    return value


@given(wishes=st.lists(proposals_of("cpu.weight"), min_size=1, max_size=6))
def test_a_value_is_what_its_wishes_make_of_it(wishes: Any) -> None:
    """Of a setting that no other one has a say in."""
    s = Setting(WEB.target, "cpu.weight")
    here = [p._replace(setting=s) for p in wishes]
    assert World().plan(*here).verdicts[s].value == merged(here, 1024.0)


@given(twice=st.tuples(wishes_of("memory.min", "memory.max"), wishes_of("memory.min", "memory.low", "memory.max")))
def test_neighbours_and_what_is_in_use_are_left_as_they_are(twice: Any) -> None:
    """What they keep is covered, or nothing more is promised beside them; no limit is set below what is in use."""
    world = World(floors=FLOORS, foreign=NEIGHBOURS, used=USED)
    for wishes in twice:
        before = world.kernel.settings()
        plan = world.settle(*wishes)
        for change in plan.changes:
            if isinstance(change, ValueChange) and change.setting.knob == "memory.max":
                s, old = change.setting, before[change.setting]
                here = [p for p in wishes if p.setting == s]
                firm = [p for p in here if p.rank is not Rank.ADVICE]  # advice may be left out
                asked = max(merged(here, math.inf), merged(firm, math.inf))
                assert change.new >= min(old, USED.get(s.target, 0.0))  # type: ignore[type-var, operator]
                assert change.new <= max(old, asked, promised_inside(world, s.target)[1] + PAGE)  # type: ignore[type-var, operator]
        ours = group("j10ce/sensitive")
        inside = sum(world.value(w.target, "memory.min") for w in (WEB, API))  # type: ignore[misc]
        assert not inside or inside + 128 * MiB <= world.value(ours, "memory.min")  # type: ignore[operator]
        tops = [world.value(t, "memory.min") for t in (group("j10ce"), group("j10ce_besteffort"), DB.target)]
        assert sum(tops) <= 8 * GiB - 512 * MiB - (512 + 256) * MiB  # type: ignore[arg-type]


@VERSIONS
@given(wishes=WISHES)
def test_a_guarantee_never_exceeds_its_cap_nor_the_machine(version: Any, wishes: Any) -> None:
    world = World(version, floors=FLOORS)
    world.settle(*wishes)
    for target in world.workloads:
        cap = world.value(target, "memory.max")
        for knob in ("memory.min", "memory.low"):
            guarantee = world.value(target, knob)
            assert guarantee is None or guarantee <= cap  # type: ignore[operator]
    promised = world.value(WEB.target, "memory.min"), world.value(DB.target, "memory.min")
    assert sum(p for p in promised if isinstance(p, float)) <= world.node.memory * 0.95


@VERSIONS
@pytest.mark.parametrize("through", ["kernel", "back end"])
@given(twice=TWICE)
@example(twice=WOKEN)
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
            wish, st.sampled_from(TARGETS), st.sampled_from(list(CGROUP_KNOBS)), st.just(math.nan), owner=st.just("bad")
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
@given(twice=TWICE, frozen=st.sampled_from(sorted(CGROUP_KNOBS)), target=st.sampled_from(TARGETS))
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
