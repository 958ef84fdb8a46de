"""`cpu-idle`, `memory-cap`, `own`, and the table of built-in controllers."""

from __future__ import annotations

import msgspec
import pytest

from j10ce.control.besteffort import cover
from j10ce.control.builtin import BUILTIN
from j10ce.control.builtin import build as build_controllers
from j10ce.control.controller import Steady
from j10ce.control.cpu_idle import CpuIdle
from j10ce.control.memory_cap import MemoryCap
from j10ce.control.own import Own
from j10ce.errors import Invalid
from j10ce.model.kinds import CpuSection
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
    found = CpuIdle(CpuIdle.Config()).propose(besteffort("a", "b", adopted="c", lacking=lacking, via=via))
    assert {(str(p.setting.target), p.setting.knob, p.value) for p in found} == {
        (TIER, knob, value),
        ("workload/default/c", knob, value),
    }


def test_a_group_with_strangers_inside_does_not_stand_for_its_workloads() -> None:
    w = build.workload("a")
    e = build.entitlement(w, tier="besteffort", cpu=IDLE)
    tier = build.group("j10ce_besteffort", foreign=[Foreign("someone", 1024)])
    snap = build.snapshot(e, workloads=[w], groups=build.tree([w], {e.target: e}, groups=[tier]))
    assert cover(snap, {w.target}) == {w.target: (w.target,)}


def capped(snap: Snapshot) -> dict[tuple[str, str], object]:
    return {(str(p.setting.target), p.setting.knob): p.value for p in MemoryCap(MemoryCap.Config()).propose(snap)}


def memory_machine(used: str, floor: str = "3Gi", lacking: tuple[str, ...] = ("memory.min",)) -> Snapshot:
    db, job = build.workload("db"), build.workload("job")
    given = [build.entitlement(db, floor_memory=floor), build.entitlement(job, tier="besteffort")]
    tier = build.group("j10ce_besteffort", current=used)
    tree = build.tree([db, job], {e.target: e for e in given}, groups=[tier])
    return build.snapshot(*given, workloads=[db, job], groups=tree, lacking=lacking, on=build.node(memory="8Gi"))


def test_where_memory_min_is_missing_best_effort_leaves_the_floors_alone() -> None:
    cap = capped(memory_machine("1Gi"))[TIER, "memory.high"]
    assert cap == pytest.approx(8 * GI * 0.95 - 3 * GI, abs=4096)


def test_v1_has_only_memory_max_to_cap_with() -> None:
    assert capped(memory_machine("1Gi", lacking=("memory.min", "memory.high"))).keys() == {(TIER, "memory.max")}


@pytest.mark.parametrize("used", ["5Gi", "6Gi", "7Gi"])
def test_the_cap_is_never_below_what_is_in_use(used: str) -> None:
    cap = capped(memory_machine(used))[TIER, "memory.high"]
    assert isinstance(cap, float)
    assert build.memory(used) <= cap <= build.memory(used) + 8 * GI / 64


@pytest.mark.parametrize(
    ("floor", "lacking"),
    [pytest.param("3Gi", (), id="memory.min works"), pytest.param("0", ("memory.min",), id="nothing is promised")],
)
def test_no_cap_without_need(floor: str, lacking: tuple[str, ...]) -> None:
    assert capped(memory_machine("1Gi", floor, lacking)) == {}


def test_the_agent_keeps_memory_and_weight_for_itself() -> None:
    own = Own(Own.Config(group="j10ce/agent"))
    snap = build.snapshot(groups=build.tree([], {}, groups=[build.group("j10ce/agent")]))
    assert {p.setting.knob: p.value for p in own.propose(snap)} == {"memory.min": 64 << 20, "cpu.weight": 1024}
    assert list(own.propose(build.snapshot())) == []
    assert list(Own(Own.Config()).propose(snap)) == []


def test_every_controller_is_built_under_its_name() -> None:
    assert [c.name for c in build_controllers({})] == list(BUILTIN)
    assert {c.name for c in build_controllers({}) if isinstance(c, Steady)} == {
        "floors",
        "limits",
        "memory-qos",
        "cpu-idle",
        "own",
    }


def test_settings_reach_their_controller() -> None:
    settings: dict[str, dict[str, object]] = {
        "cpu-suppress": {"mode": "quota", "window": "30s"},
        "floors": {"tierWeights": {"standard": 512}},
    }
    built = {c.name: c for c in build_controllers(settings)}
    assert msgspec.to_builtins(built["floors"].config.tier_weights)["standard"] == 512  # type: ignore[attr-defined]
    assert built["cpu-suppress"].config.window.seconds == 30  # type: ignore[attr-defined]


def test_every_wrong_setting_is_told_at_once_with_its_path() -> None:
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
