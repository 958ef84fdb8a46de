"""What a person reads."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from j10ce.errors import Invalid, NotFound
from j10ce.model.kinds import MemorySection
from j10ce.model.knob import TargetId, group
from j10ce.model.plan import Bound, HeldSetting, Plan, Rank
from j10ce.plan.explanation.explain import explain, raised_limits
from j10ce.plan.explanation.text import render_text
from j10ce.policy.effect.effective import effective
from j10ce.sim.cgroups import Version
from tests.plan.world import CRUNCH, WEB, World, hold, wish

WISHES = (
    wish(WEB.target, "memory.min", 2.0**28, Bound.AT_LEAST, owner="floors", reason="floor 256Mi"),
    wish(WEB.target, "cpu.weight", 2048.0, owner="floors", reason="floor 500m: 2048 of 3072 shares is 600m of 900m"),
    wish(CRUNCH.target, "cpu.max", math.inf, owner="limits", reason="no limit"),
    wish(CRUNCH.target, "cpu.max", 2e5, owner="burst", rank=Rank.ADVICE, reason="had a quiet minute"),
    wish(CRUNCH.target, "cpu.max", 5e4, Bound.AT_MOST, owner="cpu-suppress", reason="others use 3.5 of 4 CPUs"),
)


def explained_text(
    target: TargetId,
    knob: str | None = None,
    *,
    version: Version = "v2",
    holds: tuple[HeldSetting, ...] = (),
    settled: bool = True,
    wide: bool = False,
) -> str:
    world = World(version, floors={WEB.target: ("500m", "256Mi"), CRUNCH.target: ("600m", "0")})
    if settled:
        world.settle(*WISHES)
    plan, snap = world.plan(*WISHES, holds=holds), world.snapshot()
    effects = effective(snap).get(target)
    explained = explain(target, knob, snap, plan, originals=world.journal, holds=holds, effective=effects)
    return render_text(explained, wide=wide)


def test_a_cap_that_nobody_asks_for_here_is_reported_from_above() -> None:
    """Best effort is capped, or not, at its tier: the reason is found from every workload inside."""
    above = wish(
        group("j10ce_besteffort"), "cpu.max", math.inf, Bound.AT_MOST, owner="cpu-suppress", reason="cpu.idle yields"
    )
    world = World("v2")
    world.settle(above)
    plan, snap = world.plan(above), world.snapshot()
    lines = render_text(explain(CRUNCH.target, "cpu.max", snap, plan)).splitlines()
    assert "  decided by  nobody asks for it" in lines
    assert "  above it    group/j10ce_besteffort max (cpu-suppress: cpu.idle yields)" in lines


def test_an_overview_names_every_setting_with_its_reason() -> None:
    assert explained_text(WEB.target).splitlines() == [
        "web gets 0.88 CPU if everyone wants it; promised 0.5: holds",
        "web keeps 256Mi of memory when it runs short; promised 256Mi: holds",
        "workload/default/web: profile custom (tier sensitive), cgroup j10ce/sensitive/default_web",
        "  floor       cpu 500m, memory 256Mi",
        "  effective   the floor holds",
        "  protected   now 0 of 256Mi; 0 are charged to its cgroup",
        "",
        "  KNOB        VALUE  WHY",
        "  cpu.weight  2048   floors: floor 500m",
        "  memory.min  256Mi  floors: floor 256Mi",
    ]


def test_what_is_in_use_and_protected_now_is_reported() -> None:
    """Pages of a file that another cgroup read first are charged there: the floor protects nothing of them."""
    world = World(floors={WEB.target: (0, "256Mi")})
    world.settle(*WISHES[:1])
    for path in ("j10ce", "j10ce/sensitive", "j10ce/sensitive/default_web"):
        world.kernel[path].memory_current = 3.0 * 2**20
    snap = world.snapshot()
    lines = render_text(explain(WEB.target, None, snap, world.plan(*WISHES[:1]), effective=effective(snap)[WEB.target]))
    assert "  protected   now 3Mi of 256Mi; 3Mi are charged to its cgroup" in lines.splitlines()


def test_a_limit_that_is_raised_for_a_floor_is_reported() -> None:
    world = World(floors={WEB.target: ("500m", "64Mi")})
    asked = [
        wish(WEB.target, "memory.max", 48.0 * 2**20, owner="limits", reason="limit 48Mi"),
        wish(WEB.target, "memory.max", 48.0 * 2**20, Bound.AT_MOST, owner="limits", reason="limit 48Mi"),
        wish(WEB.target, "cpu.max", 1e5, owner="limits", reason="limit 1"),
    ]
    raised = raised_limits(WEB.target, world.plan(*asked))
    assert raised == ["memory.max: limit 48Mi raised to 64Mi: a cap never cuts the floor of memory 64Mi"]


def test_one_setting_is_reported_with_winner_clamps_losers_and_the_way_up() -> None:
    assert explained_text(CRUNCH.target, "cpu.max").splitlines() == [
        "workload/default/crunch cpu.max = 60000 (0.6 CPUs)",
        "  CPU time allowed in each 100 ms (cpu.max on cgroup v2, cpu.cfs_quota_us on v1; here through cgroup2)",
        "  decided by  limits (policy) wants max: no limit",
        "  then        lowered to 50000 (0.5 CPUs) by cpu-suppress: others use 3.5 of 4 CPUs",
        "              raised to 60000 (0.6 CPUs): a cap never cuts the floor of cpu 600m",
        "  against     burst (advice) wants 200000 (2 CPUs): had a quiet minute",
        "  before us   max",
        "  above it    group/j10ce_besteffort max",
    ]


@pytest.mark.parametrize(
    ("knob", "named"),
    [
        ("memory.high", "(memory.high on cgroup v2, not on v1; here through cgroup2)"),
        ("cpu.rt_runtime_us", "cgroup v1 only (cpu.rt_runtime_us on cgroup v1, not on v2)"),
        ("sched.realtime", "before all fair ones (SCHED_RR); 0 is none"),
        ("net.egress.ceil[eth0]", "what it may send at most, by link"),
    ],
)
def test_what_no_cgroup_has_a_file_for_is_not_called_a_file_of_either_version(knob: str, named: str) -> None:
    assert explained_text(WEB.target, knob).splitlines()[1].endswith(named)


def test_what_follows_from_children_has_no_winner() -> None:
    text = explained_text(group("j10ce/sensitive"), "memory.min")
    assert "  then        raised to 256Mi: the sum of what is promised inside" in text
    assert "decided by" not in text


def test_a_hold_says_who_why_and_how_long() -> None:
    text = explained_text(CRUNCH.target, "cpu.max", holds=(hold(CRUNCH.target, "cpu.max"),))
    assert "  held        by alice: incident 42, for 10 min more" in text


def test_a_change_that_is_planned_shows_both_values() -> None:
    assert "cpu.weight  1024 → 2048" in explained_text(WEB.target, settled=False)


def test_the_arithmetic_of_a_value_is_for_those_who_ask_for_it() -> None:
    assert "floors: floor 500m: 2048 of 3072 shares is 600m of 900m" in explained_text(WEB.target, wide=True)
    assert "shares is" not in explained_text(WEB.target)


def test_what_a_workload_needs_and_cannot_have_is_said_once() -> None:
    text = explained_text(WEB.target, version="v1")
    assert text.startswith("web gets ")
    assert "\nweb keeps 0 of memory when it runs short; promised 256Mi: does not hold\n" in text
    assert "  effective   memory 0 of 256Mi: memory.min is not enforceable here\n" in text
    assert text.splitlines()[-2:] == [
        "  memory.min: not enforceable here: needs cgroup v2",
        "  `j10ce-qos doctor` says what is done instead",
    ]
    assert text.count("needs cgroup v2") == 1


def test_what_a_profile_asks_for_and_cannot_have_is_said() -> None:
    snap = World("v1").snapshot()
    asks = MemorySection(low_percent=50, throttling_percent=80, oom_group=True)
    asking = replace(snap.entitlements[CRUNCH.target], memory=asks)
    output = render_text(explain(CRUNCH.target, None, replace(snap, entitlements={CRUNCH.target: asking}), Plan()))
    assert output.splitlines()[-2].startswith("  memory.low, memory.high, memory.oom.group: not enforceable here")


@pytest.mark.parametrize("target", [CRUNCH.target, group("j10ce")])
def test_what_nobody_needs_there_is_not_missed(target: TargetId) -> None:
    assert "not enforceable" not in explained_text(target, version="v1")


def test_a_setting_that_nobody_asks_for_says_so() -> None:
    assert "nobody asks for it" in explained_text(WEB.target, "cpu.max")


def test_an_unknown_target_is_not_found() -> None:
    with pytest.raises(NotFound, match="workload/default/nope is not on this machine"):
        explained_text(TargetId("workload/default/nope"))


def test_an_unknown_knob_names_the_known_ones() -> None:
    with pytest.raises(Invalid, match=r"unknown knob; use one of cpu.weight"):
        explained_text(WEB.target, "cpu.speed")
