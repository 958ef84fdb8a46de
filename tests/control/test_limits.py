from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.limits import Limits
from j10ce.model.kinds import CpuSection, MemorySection
from j10ce.model.knob import Setting, part
from j10ce.model.quantity import Quantity
from j10ce.model.snapshot import Group, Snapshot
from j10ce.model.workload import Part
from j10ce.testing import build

KEYS = (("cpu.max", "want"), ("cpu.max", "at_most"), ("cpu.max.burst", "want"))


def limits(snap: Snapshot) -> dict[tuple[str, str], Any]:
    return {(p.setting.knob, p.bound.value): p.value for p in Limits(Limits.Config()).propose(snap)}


def machine(
    cpu: str | None = None, memory: str | None = None, burst: str = "", lacking: tuple[str, ...] = ()
) -> Snapshot:
    w = build.workload("w", cpu_limit=cpu, memory_limit=memory)
    section = CpuSection(burst=Quantity.parse(burst)) if burst else CpuSection()
    return build.snapshot(build.entitlement(w, cpu=section), workloads=[w], lacking=lacking)


@pytest.mark.parametrize(
    ("limit", "quota"),
    [
        pytest.param("500m", 50_000, id="half a CPU"),
        pytest.param("2", 200_000, id="two CPUs"),
        pytest.param("1m", 1_000, id="the kernel takes no less than 1 ms"),
    ],
)
def test_the_limit_is_wanted_and_nobody_may_go_further(limit: str, quota: float) -> None:
    assert limits(machine(limit)) == {("cpu.max", "want"): quota, ("cpu.max", "at_most"): quota}


@pytest.mark.parametrize(
    ("burst", "allowed", "saved"),
    [
        pytest.param("50%", 150_000, 50_000, id="a share of the limit"),
        pytest.param("300%", 400_000, 100_000, id="burst never exceeds the quota"),
        pytest.param("250m", 125_000, 25_000, id="an amount of CPU"),
    ],
)
def test_burst(burst: str, allowed: float, saved: float) -> None:
    assert limits(machine("1", burst=burst)) == {
        ("cpu.max", "want"): 100_000,
        ("cpu.max", "at_most"): allowed,
        ("cpu.max.burst", "want"): saved,
    }


def test_no_limit_no_wish() -> None:
    assert limits(machine(burst="100%")) == {}


def test_memory_limit() -> None:
    assert limits(machine(memory="1Gi")) == {("memory.max", "want"): 1 << 30, ("memory.max", "at_most"): 1 << 30}


@pytest.mark.parametrize("kill_all", [True, False])
def test_oom_group_follows_the_profile(kill_all: bool) -> None:
    w = build.workload("w")
    snap = build.snapshot(build.entitlement(w, memory=MemorySection(oom_group=kill_all)), workloads=[w])
    assert limits(snap) == {("memory.oom.group", "want"): float(kill_all)}


def test_a_kernel_without_burst_gets_none() -> None:
    assert ("cpu.max.burst", "want") not in limits(machine("1", burst="50%", lacking=("cpu.max.burst",)))


def test_a_workload_that_is_only_classified_gets_nothing() -> None:
    w = build.workload("w", cpu_limit="1", memory_limit="1Gi")
    assert limits(build.snapshot(build.entitlement(w, chosen=False), workloads=[w])) == {}


@given(limit=st.integers(1, 512_000), percent=st.integers(0, 1000))
def test_burst_is_within_the_quota_and_the_quota_within_what_is_allowed(limit: int, percent: int) -> None:
    proposed = limits(machine(f"{limit}m", burst=f"{percent}%"))
    quota, most, saved = (proposed.get(key, 0.0) for key in KEYS)
    assert all(isinstance(value, float) for value in proposed.values())
    assert 0 <= saved <= quota <= most < math.inf


def pod(in_force: float, *, resizing: bool = False) -> Snapshot:
    """One with a limited container, whose quota in the kernel is `in_force`, and one without a limit."""
    parts = (
        Part("main", build.handle("kubepods/p/main"), limits=build.ceiling("500m")),
        Part("side", build.handle("kubepods/p/side")),
    )
    w = build.workload("p", handle=build.handle("kubepods/p"), parts=parts, resizing=resizing)
    e = build.entitlement(w, cpu=CpuSection(burst=Quantity.parse("100%")))
    inside = [Group(part("default", "p", p.name), w.target, p.handle.path, owned=False) for p in parts]
    groups = build.tree([w], {w.target: e}, groups=inside)
    values = {Setting(part("default", "p", "main"), "cpu.max"): in_force}
    return build.snapshot(e, workloads=[w], groups=groups, values=values)


def test_a_container_has_its_own_limit_and_burst_since_its_own_quota_throttles() -> None:
    proposals = list(Limits(Limits.Config()).propose(pod(50_000.0)))
    assert {p.setting.target for p in proposals} == {part("default", "p", "main")}
    assert {(p.setting.knob, p.bound.value): p.value for p in proposals} == {
        ("cpu.max", "want"): 50_000,
        ("cpu.max", "at_most"): 100_000,
        ("cpu.max.burst", "want"): 50_000,
    }


def test_a_container_that_its_maker_left_without_a_quota_or_is_resizing_is_left_alone() -> None:
    controller = Limits(Limits.Config())
    assert list(controller.propose(pod(math.inf))) == []
    assert controller.reads == {Setting(part("default", "p", "main"), "cpu.max")}, "it is asked again when that moves"
    assert list(controller.propose(pod(50_000.0, resizing=True))) == []
