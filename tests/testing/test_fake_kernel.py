"""The fake refuses what a kernel refuses, and fails when a test wants it."""

from __future__ import annotations

import math

import pytest

from j10ce.model.knob import ROOT, Setting, Value, group
from j10ce.model.plan import Applied, Gone, Refused
from j10ce.model.workload import Handle
from j10ce.sim.cgroups import Version
from j10ce.testing.fake_kernel import FakeKernel

TOP, TIER = group("j10ce"), group("j10ce/tier")
ALL = frozenset({"cpu", "cpuset", "memory"})


def made(version: Version) -> FakeKernel:
    kernel = FakeKernel(version)
    kernel.enable(ROOT, ALL)
    kernel.make(TOP, Handle("j10ce"))
    kernel.enable(TOP, ALL)
    kernel.make(TIER, Handle("j10ce/tier"))
    return kernel


def write(kernel: FakeKernel, target: str, knob: str, value: Value) -> Applied | Refused | Gone:
    s = Setting(TOP if target == "top" else TIER, knob)
    return kernel.write(s, value, kernel.places[s.target])


@pytest.mark.parametrize(
    ("version", "writes", "error"),
    [
        pytest.param("v1", [("top", "cpu.max", 5e4), ("tier", "cpu.max", 6e4)], "EINVAL", id="v1 child above parent"),
        pytest.param("v1", [("tier", "cpu.max", 6e4), ("top", "cpu.max", 5e4)], "EINVAL", id="v1 parent below child"),
        pytest.param("v1", [("top", "cpu.max", 5e4), ("tier", "cpu.max", math.inf)], "", id="v1 unlimited inherits"),
        pytest.param("v2", [("top", "cpu.max", 5e4), ("tier", "cpu.max", 6e4)], "", id="v2 takes the smaller"),
        pytest.param("v2", [("top", "cpu.max", 5e4), ("top", "cpu.max.burst", 6e4)], "EINVAL", id="burst above quota"),
        pytest.param("v1", [("top", "cpu.idle", 1.0), ("top", "cpu.weight", 512.0)], "EINVAL", id="weight while idle"),
        pytest.param("v1", [("top", "cpuset.cpus", {0}), ("tier", "cpuset.cpus", {1})], "EACCES", id="v1 set outside"),
        pytest.param("v1", [("tier", "cpuset.cpus", {1}), ("top", "cpuset.cpus", {0})], "EBUSY", id="v1 set in use"),
        pytest.param("v2", [("top", "cpuset.cpus", {0}), ("tier", "cpuset.cpus", {1})], "", id="v2 set outside"),
        pytest.param("v2", [("top", "cpuset.cpus", {9})], "EINVAL", id="no such CPU"),
        pytest.param("v1", [("top", "memory.min", 4096.0)], "ENOENT", id="v1 has no memory.min"),
    ],
)
def test_rules(version: Version, writes: list[tuple[str, str, Value]], error: str) -> None:
    kernel = made(version)
    for target, knob, value in writes:
        answer = write(kernel, target, knob, frozenset(value) if isinstance(value, set) else value)
    assert error in answer.reason if isinstance(answer, Refused) else not error


@pytest.mark.parametrize(
    ("version", "knob", "value", "held"),
    [
        ("v2", "memory.max", 10_000.0, 8192.0),
        ("v2", "cpu.weight", 1024.0, 1024.0),
        ("v2", "cpu.weight", 1030.0, 1034.0),
        ("v1", "cpu.weight", 1030.0, 1030.0),
        ("v1", "cpu.weight", 1.0, 2.0),
        ("v2", "cpu.max", 10.0, 1000.0),
        ("v2", "cpu.max", math.inf, math.inf),
    ],
)
def test_rounding_is_reported_beforehand(version: Version, knob: str, value: float, held: float) -> None:
    kernel = made(version)
    assert kernel.quantise(Setting(TOP, knob), value) == held
    assert write(kernel, "top", knob, value) == Applied(held)


def test_clearing_idle_resets_the_weight() -> None:
    kernel = made("v2")
    for knob, value in (("cpu.weight", 512.0), ("cpu.idle", 1.0), ("cpu.idle", 0.0)):
        write(kernel, "top", knob, value)
    assert kernel.read(Setting(TOP, "cpu.weight"), Handle("j10ce")) == 1024.0


@pytest.mark.parametrize("error", ["EBUSY", "EINVAL", "ENOSPC", "EROFS"])
def test_the_next_write_fails_when_asked_to(error: str) -> None:
    kernel = made("v2")
    kernel.fail(error)
    answer = write(kernel, "top", "cpu.max", 5e4)
    assert isinstance(answer, Refused)
    assert f"kernel said {error}" in answer.reason
    assert write(kernel, "top", "cpu.max", 5e4) == Applied(5e4)


def test_a_cgroup_may_vanish_under_a_write() -> None:
    kernel = made("v2")
    kernel.fail("gone")
    assert write(kernel, "top", "cpu.max", 5e4) == Gone()
    assert kernel.read(Setting(TIER, "cpu.max"), Handle("j10ce/tier")) is None


def test_a_path_that_is_used_again_is_another_cgroup() -> None:
    kernel = made("v2")
    first = kernel.identity(Handle("j10ce/tier"), "cpu")
    kernel.remove(TIER)
    kernel.make(TIER, Handle("j10ce/tier"))
    assert kernel.identity(Handle("j10ce/tier"), "cpu") not in (first, None)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_what_was_saved_is_restored_to_the_letter(version: Version) -> None:
    kernel = made(version)
    for knob, value in (("cpu.max", 5e4), ("cpuset.cpus", frozenset({0, 2})), ("memory.max", math.inf)):
        s, at = Setting(TIER, knob), Handle("j10ce/tier")
        write(kernel, "tier", knob, value)
        text = kernel.save(s, at)
        write(kernel, "tier", knob, frozenset({1}) if knob == "cpuset.cpus" else 4096.0)
        assert text is not None
        kernel.restore(s, text, at)
        assert kernel.read(s, at) == value


def test_a_populated_cgroup_is_not_removed() -> None:
    kernel = made("v2")
    kernel.join(TIER, 42)
    assert isinstance(kernel.remove(TIER), Refused)
