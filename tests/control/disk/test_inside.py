"""A cap of a pod on cgroup v1 binds its containers: together, and by what each of them asks for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.control.disk.disk import DiskUse
from j10ce.model.knob import TargetId, part
from j10ce.model.machine.disk import Disk
from j10ce.model.plan import Bound
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Ceiling, Part
from j10ce.testing import build

MIB = 1 << 20
SDA = Disk("8:0", name="sda", managed=True)
NAMES = ("main", "proxy")
PARTS = tuple(Part(name, build.handle(f"kubepods/pod1/{name}")) for name in NAMES)
POD = replace(build.workload("pod1", handle=build.handle("kubepods/pod1")), parts=PARTS)
MAIN, PROXY = (part("default", "pod1", name) for name in NAMES)


def machine(asks: tuple[float, ...] = (0.0, 0.0), via: str = "cgroup1", limit: float = 8.0 * MIB) -> Snapshot:
    entitled = replace(build.entitlement(POD), ceiling=Ceiling(disk_read=limit))
    readings = {(part("default", "pod1", name), "disk.read[8:0]"): rate for name, rate in zip(NAMES, asks, strict=True)}
    on = build.node(disks={"8:0": SDA})
    return replace(build.snapshot(entitled, workloads=[POD], on=on, readings=readings), support=build.support(via=via))


def caps(snap: Snapshot, bound: Bound = Bound.AT_MOST) -> dict[TargetId, float]:
    proposals = DiskUse(DiskUse.Config()).propose(snap)
    return {
        p.setting.target: float(p.value)
        for p in proposals
        if p.setting.knob == "io.max.rbps" and p.bound is bound and isinstance(p.value, float)
    }


@pytest.mark.parametrize("bound", [Bound.WANT, Bound.AT_MOST])
def test_containers_of_which_nothing_is_known_have_even_parts(bound: Bound) -> None:
    assert caps(machine(), bound) == {POD.target: 8.0 * MIB, MAIN: 4.0 * MIB, PROXY: 4.0 * MIB}


def test_a_busy_one_has_what_an_idle_one_does_not_ask_for() -> None:
    has = caps(machine((20.0 * MIB, 0.0)))
    assert has[MAIN] == 6.0 * MIB
    assert has[PROXY] == 2.0 * MIB


def test_on_cgroup_v2_the_kernel_passes_it_on() -> None:
    assert caps(machine(via="cgroup2")) == {POD.target: 8.0 * MIB}


def test_no_cap_has_no_parts() -> None:
    assert caps(machine(limit=math.inf)) == {}


@given(st.floats(0, 1e12), st.floats(0, 1e12), st.floats(1000, 1e12))
def test_parts_are_never_more_than_the_whole(main: float, proxy: float, limit: float) -> None:
    has = caps(machine((main, proxy), limit=limit))
    assert has[MAIN] + has[PROXY] <= limit * (1 + 1e-9)
    assert min(has[MAIN], has[PROXY]) >= math.floor(limit / 4) - 1
