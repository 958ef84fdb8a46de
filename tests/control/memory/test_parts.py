"""Containers have their part of the memory that their pod was promised; their weights are left as they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.control.floors import Floors
from j10ce.control.memory.qos import MemoryQos
from j10ce.model import knob
from j10ce.model.kinds import MemorySection
from j10ce.model.plan import Proposal
from j10ce.model.snapshot import Group, Snapshot
from j10ce.model.workload import Part, Reclaimable
from j10ce.plan.arbiter import arbitrate
from j10ce.testing import build

MI = 1 << 20
POD = "kubepods/burstable/podx"


def snapshot(floor_mi: int, asked_mi: list[int], memory: MemorySection | None = None) -> Snapshot:
    """A pod with a floor, and containers that ask for so much memory."""
    parts = [Part(f"c{n}", build.handle(f"{POD}/{n}"), build.resources(0, mi * MI)) for n, mi in enumerate(asked_mi)]
    pod = build.workload("web", memory=sum(asked_mi) * MI, handle=build.handle(POD), parts=tuple(parts))
    entitled = build.entitlement(pod, floor_cpu="1", floor_memory=floor_mi * MI, memory=memory)
    inside = [Group(knob.part("default", "web", p.name), pod.target, p.handle.path, owned=False) for p in parts]
    tree = build.tree([pod], {pod.target: entitled}, groups=inside)
    return build.snapshot(entitled, workloads=[pod], groups=tree)


def of_parts(proposals: list[Proposal]) -> dict[tuple[str, str], float]:
    return {
        (p.setting.target.rpartition("/")[2], p.setting.knob): p.value / MI
        for p in proposals
        if p.setting.target.startswith("part/") and isinstance(p.value, float)
    }


def floors(snap: Snapshot) -> list[Proposal]:
    return list(Floors(Floors.Config()).propose(snap))


def test_by_what_each_asks_for() -> None:
    assert of_parts(floors(snapshot(400, [300, 100]))) == {("c0", "memory.min"): 300, ("c1", "memory.min"): 100}


def test_equally_where_none_asks() -> None:
    assert of_parts(floors(snapshot(400, [0, 0]))) == {("c0", "memory.min"): 200, ("c1", "memory.min"): 200}


def test_who_asks_for_nothing_beside_others_gets_nothing() -> None:
    assert of_parts(floors(snapshot(400, [100, 0]))) == {("c0", "memory.min"): 400}


def test_percentages_of_the_request_are_handed_on_too() -> None:
    snap = snapshot(0, [300, 100], MemorySection(low_percent=50))
    proposals = of_parts(list(MemoryQos(MemoryQos.Config()).propose(snap)))
    assert proposals == {("c0", "memory.low"): 150, ("c1", "memory.low"): 50}


def slowed(parts: list[Part], memory: MemorySection, floor: str = "0", limit: str | None = None) -> dict[str, float]:
    """memory.high of the pod and of its containers, in MiB, on a node of 1 GiB."""
    pod = build.workload("web", memory="300Mi", memory_limit=limit, handle=build.handle(POD), parts=tuple(parts))
    entitled = build.entitlement(pod, floor_memory=floor, memory=memory)
    inside = [Group(knob.part("default", "web", p.name), pod.target, p.handle.path, owned=False) for p in parts]
    tree = build.tree([pod], {pod.target: entitled}, groups=inside)
    snap = build.snapshot(entitled, workloads=[pod], groups=tree, on=build.node(memory="1Gi"))
    proposals = MemoryQos(MemoryQos.Config()).propose(snap)
    highs = [p for p in proposals if p.setting.knob == "memory.high" and isinstance(p.value, float)]
    return {p.setting.target.rpartition("/")[2]: p.value / MI for p in highs}


def container(name: str, asked: str, limit: str | None = None, **fields: Any) -> Part:
    return Part(name, build.handle(f"{POD}/{name}"), build.resources(0, asked), build.ceiling(None, limit), **fields)


HALF = MemorySection(throttling_percent=50)
BATCH = {"batch": Reclaimable(build.resources(0, "100Mi"), build.ceiling(None, "200Mi"))}


@pytest.mark.parametrize(
    ("part", "memory", "floor", "want"),
    [
        pytest.param(container("c", "100Mi", "200Mi"), HALF, "0", 150, id="half way from its request to its limit"),
        pytest.param(container("c", "100Mi"), HALF, "0", (100 + 924 / 2), id="without a limit: to the node's memory"),
        pytest.param(container("c", "10Mi", "20Mi"), HALF, "64Mi", 64, id="never inside what is kept for it"),
        pytest.param(container("c", "0", reclaimable=BATCH), HALF, "0", 150, id="by what it asks of what is lent"),
        pytest.param(container("c", "1", "8190"), HALF, "0", 0, id="whole pages, rounded down"),
        pytest.param(
            container("c", "100Mi", "200Mi"), MemorySection(throttling_percent=0), "0", None, id="0 is no slowing down"
        ),
        pytest.param(container("c", "100Mi", "200Mi"), MemorySection(), "0", None, id="silent: nothing is asked for"),
    ],
)
def test_each_container_is_slowed_down_by_its_own_request_and_limit(
    part: Part, memory: MemorySection, floor: str, want: float | None
) -> None:
    assert slowed([part], memory, floor).get("c") == want


def test_two_containers_have_two_marks_and_the_pod_has_its_own() -> None:
    parts = [container("a", "200Mi", "400Mi"), container("b", "100Mi", "100Mi")]
    assert slowed(parts, HALF, limit="500Mi") == {"a": 300, "b": 100, "web": 400}


def test_a_container_that_is_not_there_yet_leaves_its_part_to_the_others() -> None:
    snap = snapshot(400, [100, 100])
    gone = knob.part("default", "web", "c1")
    left = {t: g for t, g in snap.groups.by_target.items() if t != gone}
    there = build.snapshot(
        *snap.entitlements.values(), workloads=snap.workloads.values(), groups=type(snap.groups)(left)
    )
    assert of_parts(floors(there)) == {("c0", "memory.min"): 400}


@given(st.integers(1, 4000), st.lists(st.integers(0, 4000), min_size=1, max_size=5))
def test_parts_never_claim_more_than_the_whole_has(floor_mi: int, asked_mi: list[int]) -> None:
    snap = snapshot(floor_mi, asked_mi)
    proposals = of_parts(floors(snap))
    assert sum(proposals.values()) <= floor_mi
    plan = arbitrate(floors(snap), snap, (), lambda _, value: value)
    values = {s: v.value for s, v in plan.verdicts.items() if s.knob == "memory.min"}
    (whole,) = (v for s, v in values.items() if s.target.startswith("workload/"))
    assert whole == floor_mi * MI
