"""Floors win over any plugin: whatever it advises, everyone keeps what was promised. Judged by the kernel's values."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from j10ce.model.knob import CGROUP_KNOBS, ROOT, Setting, TargetId, Unit, Value, group, workload
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.snapshot import Snapshot
from j10ce.testing import build
from j10ce.testing.fake_kernel import FakeKernel
from tests.agent.whole_ring import Ring

MiB, GiB = 1 << 20, 1 << 30
CPUS = range(4)
FLOORS = {  # path: millicores, bytes
    "j10ce/sensitive/default_db": (2000, GiB),
    "j10ce/standard/default_gold": (500, 256 * MiB),
    "system/svc": (250, 128 * MiB),
}
TARGETS = [workload("default", n) for n in ("db", "gold", "svc", "web", "batch", "crunch", "friend")]
TARGETS += [group(p) for p in ("j10ce", "j10ce/sensitive", "j10ce/standard", "j10ce_besteffort", "system")]


class Adviser:
    """A plugin that has one opinion for ever."""

    name = "adviser"

    def __init__(self, wishes: Sequence[Proposal] = ()) -> None:
        self.wishes = list(wishes)

    def propose(self, snap: Snapshot, /) -> list[Proposal]:
        return self.wishes


class Allotted:
    """The oracle: what the kernel gives everyone when everyone wants to run, by the values it holds."""

    def __init__(self, fake: FakeKernel) -> None:
        self.groups = fake.cgroups

    def value(self, path: str, knob: str) -> Any:
        return self.groups.by_path[path].values.get(knob, CGROUP_KNOBS[knob].default)

    def usable(self, path: str) -> frozenset[int]:
        above = self.usable(path.rpartition("/")[0]) if path else frozenset(CPUS)
        return (self.value(path, "cpuset.cpus") & above or above) if path else above

    def spread(self, path: str) -> dict[int, float]:
        """A group's weight on each CPU, by what its children weigh there, else evenly; an idle one weighs 3."""
        weight = 3.0 if self.value(path, "cpu.idle") == 1.0 else self.value(path, "cpu.weight")
        below = [self.spread(p) for p in self.groups.children(path)]
        here = {c: math.fsum(b[c] for b in below) if below else float(c in self.usable(path)) for c in CPUS}
        return {c: weight * n / math.fsum(here.values()) for c, n in here.items()}

    def cpu(self, path: str) -> dict[int, float]:
        """Millicores on each CPU."""
        if not path:
            return dict.fromkeys(CPUS, 1000.0)
        if self.value(path, "cgroup.freeze") == 1.0:
            return dict.fromkeys(CPUS, 0.0)
        parent = path.rpartition("/")[0]
        above, own = self.cpu(parent), self.spread(path)
        rivals = [self.spread(p) for p in self.groups.children(parent)]
        got = {c: above[c] * own[c] / max(1e-9, math.fsum(r[c] for r in rivals)) for c in CPUS}
        most = self.value(path, "cpu.max") / 100
        scale = min(1.0, most / max(1e-9, math.fsum(got.values())))
        return {c: t * scale for c, t in got.items()}

    def memory(self, path: str) -> float:
        """Bytes that are neither reclaimed nor forbidden; a parent's protection is divided by what is claimed."""
        kept = math.inf
        steps = path.split("/")
        for n in range(1, len(steps) + 1):
            here = "/".join(steps[:n])
            own = self.value(here, "memory.min")
            claimed = math.fsum(self.value(p, "memory.min") for p in self.groups.children(here.rpartition("/")[0]))
            share = own if n == 1 or claimed <= kept else kept * own / claimed
            kept = min(share, self.value(here, "memory.max"), self.value(here, "memory.high"))
        return kept


def settled(folder: Path, version: str, wishes: Sequence[Proposal]) -> Ring:
    ring = Ring(folder, version, extra=[Adviser(wishes)])
    everything = frozenset(k.controller for k in CGROUP_KNOBS.values())
    ring.fake.enable(ROOT, everything)
    ring.fake.adopt(group("system"), "system", {"cpu.weight": 1024.0})
    ring.fake.enable(group("system"), everything)
    for name, weight in (("svc", 1024.0), ("friend", 512.0)):
        ring.fake.adopt(workload("default", name), f"system/{name}", {"cpu.weight": weight})
    ring.arrive(
        build.workload("db", profile="ls", min_cpu="2", min_memory="1Gi", pids=(1,)),
        build.workload("gold", profile="burstable", min_cpu="500m", min_memory="256Mi", pids=(2,)),
        build.workload("web", profile="ls", cpu="200m", pids=(3,)),
        build.workload("batch", profile="burstable", cpu_limit="2", memory_limit="2Gi", pids=(4,)),
        build.workload("crunch", profile="be", pids=(5,)),
        build.workload("svc", profile="ls", min_cpu="250m", min_memory="128Mi", handle=build.handle("system/svc")),
        build.workload("friend", profile="burstable", handle=build.handle("system/friend")),
    )
    for _ in range(4):
        ring.tick()
    return ring


@cache
def kept(version: str, wishes: tuple[Proposal, ...] = ()) -> dict[str, tuple[float, float]]:
    with tempfile.TemporaryDirectory() as folder:
        allotted = Allotted(settled(Path(folder), version, wishes).fake)
    return {path: (math.fsum(allotted.cpu(path).values()), allotted.memory(path)) for path in FLOORS}


def values(knob: str) -> st.SearchStrategy[Value]:
    """Few, and at the ends: what harms is far out."""
    match CGROUP_KNOBS[knob].unit:
        case Unit.SET:
            return st.frozensets(st.sampled_from(CPUS), max_size=4)
        case Unit.FLAG:
            return st.sampled_from([0.0, 1.0])
        case Unit.SHARES:
            return st.sampled_from([2.0, 100.0, 5000.0, 102400.0, 262144.0])
        case Unit.MICROSECONDS:
            return st.sampled_from([1000.0, 50_000.0, 200_000.0, 400_000.0, math.inf])
        case Unit.BYTES:
            return st.sampled_from([0.0, 64.0 * MiB, float(GiB), 7.0 * GiB, 100.0 * GiB, math.inf])
        case _:
            return st.sampled_from([CGROUP_KNOBS[knob].low, CGROUP_KNOBS[knob].high])


def advice(knob: str) -> st.SearchStrategy[Proposal]:
    made = st.builds(Setting, st.sampled_from(TARGETS), st.just(knob))
    owner, rank = st.sampled_from(["adviser", "other"]), st.just(Rank.ADVICE)
    return st.builds(Proposal, made, st.sampled_from(Bound), values(knob), owner, rank, st.just("so it seems"))


ADVICE = st.lists(st.one_of([advice(k) for k in CGROUP_KNOBS]), min_size=1, max_size=8)
VERSIONS = pytest.mark.parametrize("version", ["v1", "v2"])


def wish(target: TargetId, knob: str, bound: Bound, value: Value, instance: str = "") -> Proposal:
    return Proposal(Setting(target, knob, instance), bound, value, "adviser", Rank.ADVICE, "so it seems")


@VERSIONS
def test_no_plugin_freezes_who_was_promised_cpu_time(tmp_path: Path, version: str) -> None:
    wishes = tuple(wish(target, "cgroup.freeze", Bound.WANT, 1.0) for target in TARGETS)
    ring = settled(tmp_path, version, wishes)
    frozen = {path for path in FLOORS if ring.fake[path].values.get("cgroup.freeze")}
    assert not frozen


def assert_kept(version: str, wishes: Sequence[Proposal]) -> None:
    before, after = kept(version), kept(version, tuple(wishes))
    for path, (cpu, memory) in FLOORS.items():
        assert after[path][0] >= min(cpu, before[path][0]) - 1, (path, after)
        assert after[path][1] >= min(memory, before[path][1]), (path, after)


@VERSIONS
@settings(max_examples=50)
@given(wishes=ADVICE)
def test_whatever_a_plugin_advises_every_floor_holds(version: str, wishes: list[Proposal]) -> None:
    assert_kept(version, wishes)


DB, BATCH, FRIEND = (workload("default", n) for n in ("db", "batch", "friend"))


@VERSIONS
@pytest.mark.parametrize(
    ("target", "knob", "bound", "value"),
    [
        pytest.param(DB, "cpu.weight", Bound.AT_MOST, 2.0, id="the weight of the protected lowered"),
        pytest.param(DB, "cpu.idle", Bound.WANT, 1.0, id="the protected made idle"),
        pytest.param(group("j10ce/sensitive"), "cpu.idle", Bound.AT_LEAST, 1.0, id="its tier made idle"),
        pytest.param(BATCH, "cpu.weight", Bound.AT_LEAST, 102400.0, id="a neighbour made heavy"),
        pytest.param(FRIEND, "cpu.weight", Bound.WANT, 102400.0, id="an adopted neighbour made heavy"),
        pytest.param(group("j10ce_besteffort"), "cpu.idle", Bound.AT_MOST, 0.0, id="best effort made busy"),
        pytest.param(group("j10ce/sensitive"), "cpu.max", Bound.AT_MOST, 200_000.0, id="its tier capped to its floor"),
        pytest.param(DB, "cpuset.cpus", Bound.AT_MOST, frozenset({0, 1}), id="two CPUs that others use as well"),
        pytest.param(BATCH, "memory.min", Bound.AT_LEAST, 7.0 * GiB, id="a neighbour's memory protected"),
        pytest.param(DB, "memory.max", Bound.AT_MOST, 64.0 * MiB, id="its memory capped"),
        pytest.param(group("system"), "memory.min", Bound.AT_LEAST, 100.0 * GiB, id="all memory for a group above"),
        pytest.param(group("system"), "memory.min", Bound.WANT, 7.0 * GiB, id="most memory for a group above"),
    ],
)
def test_a_floor_holds_against(version: str, target: TargetId, knob: str, bound: Bound, value: Value) -> None:
    assert_kept(version, [wish(target, knob, bound, value)])


def test_advice_that_harms_nobody_is_taken(tmp_path: Path) -> None:
    ring = settled(tmp_path, "v2", [wish(BATCH, "cpu.max", Bound.AT_MOST, 50_000.0)])
    assert ring.value(BATCH, "cpu.max") == 50_000.0


def test_what_was_left_out_is_reported_with_the_floor_that_it_would_have_cost(tmp_path: Path) -> None:
    ring = settled(tmp_path, "v2", [wish(DB, "cpu.weight", Bound.AT_MOST, 2.0)])
    (note,) = [n for n in ring.tick().plan.notes if "adviser" in n]
    assert note.startswith("advice of adviser on cpu left out: workload/default/db would have ")
    assert note.endswith("m of its floor of cpu 2")


def test_limits_win_over_advice(tmp_path: Path) -> None:
    ring = settled(tmp_path, "v2", [wish(BATCH, "cpu.max", Bound.AT_LEAST, 400_000.0)])
    assert ring.value(BATCH, "cpu.max") == 200_000.0


def test_a_setting_under_another_name_is_no_way_round(tmp_path: Path) -> None:
    odd = wish(DB, "cpu.weight", Bound.AT_MOST, 2.0, instance="0")
    ring = settled(tmp_path, "v2", [odd])
    assert "workload/default/db cpu.weight[0] not set: adviser proposed no valid value" in ring.tick().plan.notes
    assert_kept("v2", [odd])


@pytest.mark.parametrize("bound", [Bound.WANT, Bound.AT_LEAST])
@pytest.mark.parametrize("target", [workload("default", "web"), group("j10ce/sensitive"), group("j10ce")])
@pytest.mark.parametrize("owner", ["adviser", "journal"])
def test_a_floor_that_comes_after_the_advice_is_granted(
    tmp_path: Path, target: TargetId, bound: Bound, owner: str
) -> None:
    """Nor does it help to speak by the name under which originals go back."""
    advice = Proposal(Setting(target, "memory.min"), bound, 7.0 * GiB, owner, Rank.ADVICE, "its cache")
    ring = Ring(tmp_path, "v2", extra=[Adviser([advice])])
    ring.fake.enable(ROOT, frozenset({"cpu", "cpuset", "memory"}))
    ring.arrive(build.workload("web", profile="ls", pids=(5,)))
    ring.tick()
    ring.tick()
    late = build.workload("late", profile="ls", min_memory="4Gi", pids=(6,))
    ring.arrive(late)
    ring.tick(31)
    assert ring.tick(31).resolution.entitlements[late.target].floor.memory == 4 * GiB
    assert ring.value(late.target, "memory.min") == 4.0 * GiB
