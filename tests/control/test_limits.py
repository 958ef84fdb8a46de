from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.limits import Limits
from j10ce.model.kinds import CpuSection, MemorySection
from j10ce.model.quantity import Quantity
from j10ce.model.snapshot import Snapshot
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
