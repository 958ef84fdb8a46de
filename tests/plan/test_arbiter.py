"""How disagreements end, and what is never touched."""

from __future__ import annotations

import math

import msgspec
import pytest

from j10ce.model.knob import ROOT, Setting, Value, group
from j10ce.model.plan import Bound, Plan, Proposal, Rank, ValueChange
from j10ce.model.snapshot import Foreign
from j10ce.plan.arbiter import Arbiter, arbitrate
from j10ce.testing import build
from tests.plan.world import API, CRUNCH, DB, WEB, World, wish

WANT, AT_LEAST, AT_MOST = Bound.WANT, Bound.AT_LEAST, Bound.AT_MOST
Gi = 2.0**30
Mi = 2.0**20
CPU_MAX = Setting(CRUNCH.target, "cpu.max")


def quota(bound: Bound, value: float, owner: str, rank: Rank = Rank.POLICY) -> Proposal:
    return Proposal(CPU_MAX, bound, value, owner, rank, f"{owner} has a reason")


def written(plan: Plan) -> dict[Setting, Value]:
    return {c.setting: c.new for c in plan.changes if isinstance(c, ValueChange)}


@pytest.mark.parametrize(
    ("wishes", "value", "by"),
    [
        pytest.param([quota(WANT, 2e5, "a"), quota(WANT, 1e5, "b", Rank.SAFETY)], 1e5, "b", id="the higher rank wins"),
        pytest.param([quota(WANT, 2e5, "b"), quota(WANT, 1e5, "a")], 1e5, "a", id="owners break ties by name"),
        pytest.param([quota(WANT, 2e5, "a"), quota(AT_MOST, 1e5, "b", Rank.ADVICE)], 1e5, "b", id="any rank may cap"),
        pytest.param(
            [quota(WANT, 1e5, "a"), quota(AT_LEAST, 2e5, "b", Rank.ADVICE)], 2e5, "b", id="any rank may raise"
        ),
        pytest.param([quota(AT_LEAST, 2e5, "a"), quota(AT_MOST, 1e5, "b")], 2e5, "a", id="at_least beats at_most"),
        pytest.param([quota(AT_MOST, 9e4, "a"), quota(AT_MOST, 8e4, "b")], 8e4, "b", id="a bound moves the default"),
        pytest.param([quota(WANT, 10.0, "a")], 1000.0, None, id="the kernel's range is kept"),
    ],
)
def test_one_setting(wishes: list[Proposal], value: float, by: str | None) -> None:
    verdict = World().plan(*wishes).verdicts[CPU_MAX]
    assert (verdict.value, verdict.by.owner if verdict.by else None) == (value, by)


def test_a_limit_a_suppressor_and_a_burst_compose() -> None:
    """The limit wants 1 CPU and allows 1.5, burst wants more, suppression allows less."""
    limit = [quota(WANT, 1e5, "limits"), quota(AT_MOST, 1.5e5, "limits")]
    burst = quota(WANT, 4e5, "burst", Rank.SAFETY)
    assert World().plan(*limit, burst).verdicts[CPU_MAX].value == 1.5e5
    assert World().plan(*limit, burst, quota(AT_MOST, 5e4, "suppress")).verdicts[CPU_MAX].value == 5e4


def cpus(owner: str, *ids: int, bound: Bound = AT_MOST, rank: Rank = Rank.POLICY) -> Proposal:
    return wish(WEB.target, "cpuset.cpus", frozenset(ids), bound, owner=owner, rank=rank)


@pytest.mark.parametrize(
    ("wishes", "value"),
    [
        pytest.param([cpus("a", 0, 1, 2), cpus("b", 1, 2, 3)], {1, 2}, id="sets intersect"),
        pytest.param([cpus("a", 0, 1), cpus("b")], {0, 1}, id="an empty set restricts nothing"),
        pytest.param([cpus("a", 0), cpus("b", 1, rank=Rank.SAFETY)], {1}, id="nothing in common: the higher rank"),
        pytest.param([cpus("a", 0, 9)], {0}, id="CPUs that are not there are left out"),
        pytest.param([cpus("a", 0), cpus("b", 2, bound=AT_LEAST)], {0, 2}, id="at_least widens"),
    ],
)
def test_placements(wishes: list[Proposal], value: set[int]) -> None:
    assert World().plan(*wishes).verdicts[Setting(WEB.target, "cpuset.cpus")].value == value


def test_a_set_that_was_left_out_is_named() -> None:
    verdict = World().plan(cpus("a", 0), cpus("b", 1)).verdicts[Setting(WEB.target, "cpuset.cpus")]
    assert verdict.clamps == ("1 of b left out: 0 CPUs would remain, one is the least",)


def test_a_set_smaller_than_the_cpu_floor_is_left_out() -> None:
    plan = World(floors={WEB.target: ("2", "0")}).plan(cpus("a", 0))
    assert plan.verdicts[Setting(WEB.target, "cpuset.cpus")].value == frozenset()


@pytest.mark.parametrize(
    ("knob", "wanted", "least"),
    [("cpu.max", 1e4, 5e4), ("memory.max", 1 * Mi, 256 * Mi), ("memory.high", 1 * Mi, 256 * Mi)],
)
def test_a_cap_never_cuts_the_floor(knob: str, wanted: float, least: float) -> None:
    world = World(floors={WEB.target: ("500m", "256Mi")})
    assert world.plan(wish(WEB.target, knob, wanted, AT_MOST)).verdicts[Setting(WEB.target, knob)].value == least


def test_a_cap_leaves_a_floor_that_is_no_whole_number_of_pages() -> None:
    world = World(floors={WEB.target: ("0", 64 * 4096 + 1)})
    plan = world.plan(wish(WEB.target, "memory.max", 4096.0))
    assert written(plan)[Setting(WEB.target, "memory.max")] == 65 * 4096  # the kernel drops what is less than a page


def test_a_tiers_cap_leaves_the_floors_inside_whole() -> None:
    world = World(floors={WEB.target: ("500m", "0"), API.target: ("250m", "0")})
    plan = world.plan(wish(group("j10ce/sensitive"), "cpu.max", 1e4))
    assert plan.verdicts[Setting(group("j10ce/sensitive"), "cpu.max")].value == 75_000


def test_guarantees_are_covered_up_to_the_root() -> None:
    world = World()
    world.settle(wish(WEB.target, "memory.min", 1 * Gi), wish(API.target, "memory.min", 2 * Gi))
    assert world.value(group("j10ce/sensitive"), "memory.min") == 3 * Gi
    assert world.value(group("j10ce"), "memory.min") == 3 * Gi


def test_a_guarantee_never_exceeds_memory_max() -> None:
    world = World()
    world.settle(wish(WEB.target, "memory.low", 2 * Gi), wish(WEB.target, "memory.max", 1 * Gi))
    assert world.value(WEB.target, "memory.low") == 1 * Gi


def test_more_memory_min_than_the_machine_may_promise_is_cut_alike() -> None:
    world = World()
    plan = world.settle(wish(WEB.target, "memory.min", 6 * Gi), wish(CRUNCH.target, "memory.min", 9 * Gi))
    web, crunch = world.value(WEB.target, "memory.min"), world.value(CRUNCH.target, "memory.min")
    assert (web, crunch) == (pytest.approx(7.5 * Gi * 6 / 14, rel=1e-4), pytest.approx(7.5 * Gi * 8 / 14, rel=1e-4))
    assert plan.notes == ("memory.min cut: 14Gi promised, 7.5Gi of 8Gi may be",)


def test_an_ancestor_that_is_not_ours_is_raised_and_given_back_but_never_lowered() -> None:
    world = World()
    system = group("system")
    world.kernel["system"].values["memory.min"] = 1 * Gi
    world.settle(wish(DB.target, "memory.min", 3 * Gi))
    assert world.value(system, "memory.min") == 3 * Gi
    world.settle(wish(DB.target, "memory.min", 0.5 * Gi), wish(system, "memory.min", 0.0))
    assert world.value(system, "memory.min") == 1 * Gi


def test_an_ancestor_is_not_raised_for_what_others_promised() -> None:
    world = World()
    world.kernel["system/db"].values["memory.min"] = 1 * Gi
    snap = world.snapshot()
    unchosen = msgspec.structs.replace(snap.entitlements[DB.target], chosen=False)
    snap = msgspec.structs.replace(snap, entitlements={**snap.entitlements, DB.target: unchosen})
    plan = arbitrate([wish(WEB.target, "memory.min", 1 * Gi)], snap, (), world.kernel.quantise)
    assert Setting(group("system"), "memory.min") not in written(plan)


def test_neighbours_claims_are_covered_too() -> None:
    """The kernel divides what a parent has among all its children by their claims."""
    world = World()
    snap = world.snapshot()
    system = msgspec.structs.replace(snap.groups[group("system")], foreign=(Foreign("sshd", 1024, memory_low=1 * Gi),))
    groups = build.Groups({**snap.groups.by_target, system.target: system})
    snap = msgspec.structs.replace(snap, groups=groups)
    plan = arbitrate([wish(DB.target, "memory.low", 2 * Gi)], snap, (), world.kernel.quantise)
    assert written(plan)[Setting(group("system"), "memory.low")] == 3 * Gi


def test_an_ancestor_whose_value_was_never_read_is_left_alone() -> None:
    world = World()
    snap = world.snapshot()
    unread = {s: v for s, v in snap.settings.items() if s.target != group("system")}
    plan = arbitrate(
        [wish(DB.target, "memory.min", 1 * Gi)],
        msgspec.structs.replace(snap, settings=unread),
        (),
        world.kernel.quantise,
    )
    assert Setting(group("system"), "memory.min") not in written(plan)
    assert plan.notes == ("group/system memory.min left alone: its present value is not known",)


@pytest.mark.parametrize(
    ("proposal", "why"),
    [
        pytest.param(wish(ROOT, "cpu.max", 1e4), "the root's own limits are never touched", id="the root"),
        pytest.param(
            wish(group("system"), "cpu.max", 1e4), "not ours; of an ancestor only guarantees are raised", id="cap"
        ),
        pytest.param(wish(group("other"), "cpu.max", 1e4), "no such target on this machine", id="unknown"),
        pytest.param(wish(WEB.target, "htb.rate", 1e4), "not enforceable here: no back end knows it", id="knob"),
        pytest.param(wish(WEB.target, "cpu.max", "fast"), "test proposed no valid value", id="text for a number"),
        pytest.param(wish(WEB.target, "cpu.max", math.nan), "test proposed no valid value", id="not a number"),
    ],
)
def test_what_is_never_written(proposal: Proposal, why: str) -> None:
    plan = World().plan(proposal)
    assert (plan.changes, plan.notes) == ((), (f"{proposal.setting} not set: {why}",))


def test_a_workload_that_nobody_chose_is_not_written() -> None:
    snap = World().snapshot()
    entitled = {t: msgspec.structs.replace(e, chosen=False) for t, e in snap.entitlements.items()}
    snap = msgspec.structs.replace(snap, entitlements=entitled)
    plan = arbitrate([quota(WANT, 1e5, "a")], snap, (), lambda s, v: v)
    assert plan.notes == (
        "workload/default/crunch cpu.max not set: no policy chose this workload, it is only classified",
    )


def test_what_the_machine_lacks_is_said_once_per_knob() -> None:
    plan = World("v1").plan(wish(WEB.target, "memory.min", Gi), wish(API.target, "memory.min", Gi))
    assert plan.notes == ("memory.min of 2 targets not set: not enforceable here: needs cgroup v2",)


def test_an_adopted_cgroups_own_limit_is_what_bounds_move() -> None:
    world = World()
    world.kernel["system/db"].values["cpu.max"] = 5e4
    assert world.plan(wish(DB.target, "cpu.max", 8e4, AT_MOST)).empty


def test_the_weight_that_an_idle_cgroup_shows_is_not_taken_for_its_own() -> None:
    world = World()
    world.kernel["system/db"].values["cpu.idle"] = 1.0
    plan = world.plan(wish(DB.target, "cpu.idle", 0.0), wish(DB.target, "cpu.weight", 2048.0, AT_MOST))
    assert written(plan)[Setting(DB.target, "cpu.weight")] == 1024.0


def test_on_v1_a_childs_quota_is_kept_within_its_parents() -> None:
    tier = wish(group("j10ce_besteffort"), "cpu.max", 1e5)
    world = World("v1")
    world.settle(tier, quota(WANT, 2e5, "limits"))
    assert world.value(CRUNCH.target, "cpu.max") == 1e5
    assert World("v2").plan(tier, quota(WANT, 2e5, "limits")).verdicts[CPU_MAX].value == 2e5


def test_on_v1_a_childs_quota_is_kept_within_that_of_a_grandparent() -> None:
    world = World("v1")
    world.settle(wish(group("j10ce"), "cpu.max", 50_000.0), wish(WEB.target, "cpu.max", 80_000.0))
    assert world.value(group("j10ce/sensitive"), "cpu.max") == math.inf
    assert world.value(WEB.target, "cpu.max") == 50_000


def test_on_v1_sets_follow_their_parent_both_ways() -> None:
    world = World("v1")
    tier = group("j10ce_besteffort")
    world.settle(wish(tier, "cpuset.cpus", frozenset({0})))
    assert world.value(CRUNCH.target, "cpuset.cpus") == {0}
    world.settle(wish(tier, "cpuset.cpus", frozenset({0, 1})))
    assert world.value(CRUNCH.target, "cpuset.cpus") == {0, 1}


def test_on_v1_a_set_with_its_own_wish_is_not_dragged_along_when_its_parent_widens() -> None:
    world = World("v1", through="back end")
    tier, own = group("j10ce_besteffort"), wish(CRUNCH.target, "cpuset.cpus", frozenset({3}))
    world.settle(wish(tier, "cpuset.cpus", frozenset({3})), own)
    world.settle(wish(tier, "cpuset.cpus", frozenset({0, 1, 2, 3})), own)
    assert world.value(CRUNCH.target, "cpuset.cpus") == {3}


def test_a_weight_is_not_written_while_idle_and_is_written_again_after() -> None:
    world = World()
    weight = wish(CRUNCH.target, "cpu.weight", 512.0)
    world.settle(weight)
    world.settle(weight, wish(CRUNCH.target, "cpu.idle", 1.0))
    assert world.value(CRUNCH.target, "cpu.idle") == 1.0
    world.settle(weight, wish(CRUNCH.target, "cpu.idle", 0.0))
    assert world.value(CRUNCH.target, "cpu.weight") == 512.0


def test_clearing_idle_writes_the_weight_even_if_it_was_read_back_before_idle_was_set() -> None:
    wishes = [wish(CRUNCH.target, "cpu.weight", 512.0), wish(CRUNCH.target, "cpu.idle", 0.0)]
    stale = {Setting(CRUNCH.target, "cpu.weight"): 512.0, Setting(CRUNCH.target, "cpu.idle"): 1.0}
    snap = msgspec.structs.replace(World().snapshot(), settings=stale)
    plan = arbitrate(wishes, snap, (), lambda s, v: v)
    assert [c.setting.knob for c in plan.changes if isinstance(c, ValueChange)] == ["cpu.idle", "cpu.weight"]


def test_a_memory_cap_comes_down_only_as_usage_does() -> None:
    world = World()
    world.kernel["j10ce/sensitive/default_web"].memory_current = 1 * Gi
    cap = wish(WEB.target, "memory.max", 0.5 * Gi)
    arbiter = Arbiter(world.kernel.quantise)
    snap = world.snapshot()
    first = written(arbiter.arbitrate([(cap,)], snap))[Setting(WEB.target, "memory.max")]
    assert first == pytest.approx(1.05 * Gi, abs=4096)
    used = msgspec.structs.replace(snap.groups[WEB.target], memory_current=0.1 * Gi)
    later = msgspec.structs.replace(snap, groups=build.Groups({**snap.groups.by_target, WEB.target: used}))
    assert written(arbiter.arbitrate([(cap,)], later)) == {cap.setting: 0.5 * Gi}


def test_a_memory_cap_on_its_way_down_never_goes_up() -> None:
    """A little above usage is kept free where there is room; a cap that is nearer already stays."""
    world = World()
    world.settle(wish(WEB.target, "memory.max", 1 * Gi))
    world.kernel["j10ce/sensitive/default_web"].memory_current = 0.99 * Gi
    assert written(world.plan(wish(WEB.target, "memory.max", 0.5 * Gi))) == {}


def test_the_same_inputs_give_the_same_plan_object() -> None:
    world = World()
    arbiter, snap, batch = Arbiter(world.kernel.quantise), world.snapshot(), (quota(WANT, 1e5, "a"),)
    plan = arbiter.arbitrate([batch], snap)
    assert arbiter.arbitrate([batch], snap) is plan
    assert arbiter.arbitrate([(*batch,), ()], snap) is not plan


def test_a_settings_mapping_changed_in_place_is_noticed() -> None:
    world = World()
    settings = dict(world.snapshot().settings)
    snap = msgspec.structs.replace(world.snapshot(), settings=settings)
    arbiter = Arbiter(world.kernel.quantise)
    assert not arbiter.arbitrate([(quota(WANT, 1e5, "a"),)], snap).empty
    settings[CPU_MAX] = 1e5
    assert arbiter.arbitrate([(quota(WANT, 1e5, "a"),)], snap).empty
