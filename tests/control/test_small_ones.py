"""`cpu-idle`, `memory-cap`, `own`, and the table of built-in controllers."""

from __future__ import annotations

import msgspec
import pytest

from j10ce.control.besteffort import cover
from j10ce.control.builtin import BUILTIN
from j10ce.control.builtin import build as build_controllers
from j10ce.control.controller import Steady
from j10ce.control.cpu.idle import CpuIdle
from j10ce.control.memory.cap import MemoryCap
from j10ce.control.own import Own
from j10ce.errors import Invalid
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import Setting, group
from j10ce.model.snapshot import Foreign, Snapshot
from j10ce.testing import build

GI = 1 << 30
IDLE = CpuSection(idle=True)
TIER = "group/j10ce_besteffort"


def besteffort(*names: str, adopted: str = "", lacking: tuple[str, ...] = (), via: str = "cgroup2") -> Snapshot:
    workloads = [build.workload(n) for n in names]
    if adopted:
        workloads.append(build.workload(adopted, handle=build.handle(f"user.slice/{adopted}")))
    given = [build.entitlement(w, tier="besteffort", cpu=IDLE) for w in workloads]
    snap = build.snapshot(*given, workloads=workloads, lacking=lacking)
    return msgspec.structs.replace(snap, support=build.support(*lacking, via=via))


@pytest.mark.parametrize(
    ("lacking", "via", "knob", "value"),
    [
        pytest.param((), "cgroup2", "cpu.idle", 1.0, id="idle"),
        pytest.param(("cpu.idle",), "cgroup1", "cpu.weight", 2.0, id="two shares on v1"),
        pytest.param(("cpu.idle",), "cgroup2", "cpu.weight", 10.0, id="weight 1 on v2"),
    ],
)
def test_the_tier_is_idle_as_a_whole_and_adopted_ones_each(
    lacking: tuple[str, ...], via: str, knob: str, value: float
) -> None:
    proposals = CpuIdle(CpuIdle.Config()).propose(besteffort("a", "b", adopted="c", lacking=lacking, via=via))
    assert {(str(p.setting.target), p.setting.knob, p.value) for p in proposals} == {
        (TIER, knob, value),
        ("workload/default/c", knob, value),
    }


def test_who_is_idle_among_its_siblings_alone_is_not_said_to_yield_to_everyone() -> None:
    proposals = {
        str(p.setting.target): p.reason for p in CpuIdle(CpuIdle.Config()).propose(besteffort("a", adopted="c"))
    }
    assert proposals[TIER].endswith("runs only when nobody else wants the CPU")
    assert proposals["workload/default/c"] == "best-effort: idle among its siblings in group/user.slice"


def test_below_an_idle_group_everyone_is_yielded_to() -> None:
    snap = besteffort(adopted="c")
    above = {Setting(group("user.slice"), "cpu.idle"): 1.0}
    (p,) = CpuIdle(CpuIdle.Config()).propose(msgspec.structs.replace(snap, settings={**snap.settings, **above}))
    assert p.reason == "best-effort: runs only when nobody else wants the CPU"


def test_a_group_with_strangers_inside_does_not_stand_for_its_workloads() -> None:
    w = build.workload("a")
    e = build.entitlement(w, tier="besteffort", cpu=IDLE)
    tier = build.group("j10ce_besteffort", foreign=[Foreign("someone", 1024)])
    snap = build.snapshot(e, workloads=[w], groups=build.tree([w], {e.target: e}, groups=[tier]))
    assert cover(snap, {w.target}) == {w.target: (w.target,)}


def test_a_command_that_has_ended_does_not_keep_its_tier_from_being_idle_as_a_whole() -> None:
    """Its cgroup is still there; nothing of the others is written for it."""
    snap = besteffort("a", "b", "ended")
    ended = build.workload("ended").target
    left = {t: w for t, w in snap.workloads.items() if t != ended}
    entitled = {t: e for t, e in snap.entitlements.items() if t != ended}
    after = msgspec.structs.replace(snap, workloads=left, entitlements=entitled)
    assert ended in after.groups.by_target
    assert cover(after, set(entitled)) == {TIER: tuple(sorted(entitled))}


def capped(snap: Snapshot) -> dict[tuple[str, str], object]:
    return {(str(p.setting.target), p.setting.knob): p.value for p in MemoryCap(MemoryCap.Config()).propose(snap)}


def memory_machine(used: str, floor: str = "3Gi", lacking: tuple[str, ...] = ("memory.min",)) -> Snapshot:
    db, job = build.workload("db"), build.workload("job")
    given = [build.entitlement(db, floor_memory=floor), build.entitlement(job, tier="besteffort")]
    tier = build.group("j10ce_besteffort", current=used)
    tree = build.tree([db, job], {e.target: e for e in given}, groups=[tier])
    return build.snapshot(*given, workloads=[db, job], groups=tree, lacking=lacking, on=build.node(memory="8Gi"))


@pytest.mark.parametrize("lacking", [(), ("memory.min",)], ids=["memory.min works", "memory.min is missing"])
def test_best_effort_leaves_what_is_promised_to_others(lacking: tuple[str, ...]) -> None:
    """Half a gibibyte of 8 is the machine's, 3 are promised."""
    assert capped(memory_machine("1Gi", lacking=lacking)) == {(TIER, "memory.high"): 4.5 * GI}


def test_memory_that_strangers_keep_is_left_too() -> None:
    snap = memory_machine("1Gi")
    root = build.group("", owned=False, foreign=[Foreign("machine.slice", 1024, memory_min=1.0 * GI)])
    groups = build.Groups({**snap.groups.by_target, root.target: root})
    snap = msgspec.structs.replace(snap, groups=groups, support=build.support())
    assert capped(snap) == {(TIER, "memory.high"): 3.5 * GI}


def test_a_brake_that_is_pulled_is_not_let_go_by_use_that_exceeds_it() -> None:
    """memory.high is soft: what is used beyond it must not raise it step by step."""
    held = {Setting(group("j10ce_besteffort"), "memory.high"): 4.5 * GI}
    snap = memory_machine("4700Mi", lacking=())
    snap = msgspec.structs.replace(snap, settings={**snap.settings, **held})
    assert capped(snap) == {(TIER, "memory.high"): 4.5 * GI}


def test_several_share_the_room_by_what_they_use() -> None:
    """4.5 GiB of room, 3 in use: each of two may grow by a half of the rest."""
    db = build.workload("db")
    jobs = [build.workload(n, handle=build.handle(f"user.slice/{n}")) for n in ("a", "b")]
    given = [build.entitlement(db, floor_memory="3Gi"), *(build.entitlement(j, tier="besteffort") for j in jobs)]
    used = {jobs[0].target: 3.0 * GI}
    tree = build.tree([db, *jobs], {e.target: e for e in given}, current=used)
    snap = build.snapshot(*given, workloads=[db, *jobs], groups=tree, on=build.node(memory="8Gi"))
    assert capped(snap) == {
        ("workload/default/a", "memory.high"): 3.75 * GI,
        ("workload/default/b", "memory.high"): 2.25 * GI,
    }


def test_v1_has_only_memory_max_to_cap_with() -> None:
    assert capped(memory_machine("1Gi", lacking=("memory.min", "memory.high"))).keys() == {(TIER, "memory.max")}


@pytest.mark.parametrize("used", ["5Gi", "6Gi", "7Gi"])
def test_the_cap_is_never_below_what_is_in_use(used: str) -> None:
    cap = capped(memory_machine(used))[TIER, "memory.high"]
    assert isinstance(cap, float)
    assert build.memory(used) <= cap <= build.memory(used) + 8 * GI / 64


@pytest.mark.parametrize("lacking", [(), ("memory.min",)])
def test_no_cap_where_nothing_is_promised(lacking: tuple[str, ...]) -> None:
    assert capped(memory_machine("1Gi", "0", lacking)) == {}


def agent_using(used: str, held: str = "0") -> Snapshot:
    groups = build.tree([], {}, groups=[build.group("j10ce/agent", current=used)])
    kept = {Setting(group("j10ce/agent"), "memory.min"): float(build.memory(held))}
    return build.snapshot(groups=groups, values=kept)


@pytest.mark.parametrize(
    ("used", "held", "keeps"),
    [
        pytest.param("900Ki", "0", 1, id="what it uses"),
        pytest.param("21Mi", "22Mi", 22, id="a little less moves nothing"),
        pytest.param("21Mi", "64Mi", 21, id="much less is given back"),
        pytest.param("23Mi", "22Mi", 23, id="it grows with the use"),
        pytest.param("400Mi", "0", 64, id="up to its most"),
    ],
)
def test_the_agent_keeps_the_memory_it_uses_for_itself(used: str, held: str, keeps: int) -> None:
    own = Own(Own.Config(group="j10ce/agent"))
    wanted = {p.setting.knob: p.value for p in own.propose(agent_using(used, held))}
    assert wanted == {"memory.min": keeps << 20, "cpu.weight": 1024}


def test_an_agent_without_a_cgroup_or_without_use_keeps_nothing() -> None:
    own = Own(Own.Config(group="j10ce/agent"))
    assert {p.setting.knob for p in own.propose(agent_using("0"))} == {"cpu.weight"}
    assert list(own.propose(build.snapshot())) == []
    assert list(Own(Own.Config()).propose(agent_using("9Mi"))) == []


def test_every_controller_is_built_under_its_name() -> None:
    assert [c.name for c in build_controllers({})] == list(BUILTIN)
    assert {c.name for c in build_controllers({}) if isinstance(c, Steady)} == {
        "floors",
        "limits",
        "lent",
        "memory-qos",
        "oom-order",
        "cpu-idle",
        "cpu-identity",
        "realtime",
        "parameters",
        "cache",
        "core-sched",
        "network",
    }


def test_settings_reach_their_controller() -> None:
    settings: dict[str, dict[str, object]] = {
        "cpu-suppress": {"mode": "quota", "window": "30s"},
        "floors": {"tierWeights": {"standard": 512}},
    }
    built = {c.name: c for c in build_controllers(settings)}
    assert msgspec.to_builtins(built["floors"].config.tier_weights)["standard"] == 512  # type: ignore[attr-defined]
    assert built["cpu-suppress"].config.window.seconds == 30  # type: ignore[attr-defined]


def test_every_wrong_setting_is_reported_at_once_with_its_path() -> None:
    wrong: dict[str, dict[str, object]] = {
        "cpu-supress": {},
        "cpu-suppress": {"mode": "fast", "ceiling": 1.5, "window": "soon"},
        "own": {"colour": "red"},
    }
    with pytest.raises(Invalid) as caught:
        build_controllers(wrong)
    assert {f.path for f in caught.value.findings} == {
        "controllers.cpu-supress",
        "controllers.cpu-suppress.mode",
        "controllers.cpu-suppress.ceiling",
        "controllers.cpu-suppress.window",
        "controllers.own.colour",
    }
