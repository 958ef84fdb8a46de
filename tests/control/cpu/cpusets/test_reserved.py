from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.control.cpu.cpusets.reserved import closed, reserve
from j10ce.control.floors import Floors
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import Setting, group, part
from j10ce.model.machine.topology import Topology
from j10ce.model.parts.strategy import Strategy, SystemCpusSection
from j10ce.model.plan import Proposal
from j10ce.model.snapshot import Group, Snapshot
from j10ce.model.workload import Entitlement, Part, Workload
from j10ce.testing import build

Claim = tuple[Workload, Entitlement]


SERVER = build.topology(8, per_l3=4, per_socket=8)  # siblings are n and n + 8


def claim(name: str, floor: str, pinning: str, tier: str = "exclusive", **cpu: Any) -> Claim:
    w = build.workload(name)
    section = CpuSection(pinning=pinning, **cpu)  # type: ignore[arg-type]
    return w, build.entitlement(w, tier=tier, floor_cpu=floor, cpu=section)


def idle(name: str) -> Claim:
    return claim(name, "0", "none", "besteffort", idle=True, suppressible=True)


def machine(*claims: Claim, cpus: int = 4, topology: Topology | None = None, **rest: Any) -> Snapshot:
    workloads, entitled = [c[0] for c in claims], [c[1] for c in claims]
    on = build.node(len(topology.cpus), topology=topology) if topology else build.node(cpus)
    return build.snapshot(*entitled, workloads=workloads, on=on, **rest)


def placed(snap: Snapshot, floors: Floors | None = None) -> dict[str, Proposal]:
    proposals = (floors or Floors(Floors.Config())).propose(snap)
    return {str(p.setting.target): p for p in proposals if p.setting.knob == "cpuset.cpus"}


def cpus(snap: Snapshot, floors: Floors | None = None) -> dict[str, object]:
    return {t.removeprefix("workload/default/"): p.value for t, p in placed(snap, floors).items()}


def with_system(snap: Snapshot, **said: Any) -> Snapshot:
    return replace(snap, strategy=Strategy(system_cpus=SystemCpusSection(**said)))


SOME = (
    claim("kubelet", "0", "none", "system"),
    claim("db", "1", "exclusive"),
    claim("web", "0", "none", "sensitive"),
    idle("job"),
)


def test_tier_system_has_its_cpus_and_everyone_else_keeps_off() -> None:
    assert cpus(with_system(machine(*SOME), cpus="0,3,77")) == {
        "group/j10ce/system": {0, 3},
        "db": {2},
        "group/j10ce/sensitive": {1},
        "group/j10ce_besteffort": {1},
    }
    nobody_pinned = with_system(machine(SOME[2], SOME[3]), cpus="0")
    assert cpus(nobody_pinned) == {"group/j10ce/sensitive": {1, 2, 3}, "group/j10ce_besteffort": {1, 2, 3}}
    assert closed(nobody_pinned) == {0}


def test_cpus_of_tier_system_that_are_not_exclusive_are_everybodys() -> None:
    shared = with_system(machine(*SOME), cpus="0-1", exclusive=False)
    assert cpus(shared)["group/j10ce/system"] == {0, 1}
    assert cpus(shared)["group/j10ce/sensitive"] == {0, 1, 2}
    assert closed(shared) == {3}


def test_all_cpus_are_never_kept_for_tier_system() -> None:
    assert cpus(with_system(machine(*SOME), cpus="0-3"))["group/j10ce/sensitive"] == {0, 1, 2}


def test_exclusive_cpus_come_from_the_top_and_everyone_else_keeps_off() -> None:
    snap = machine(
        claim("db", "2", "exclusive"), claim("web", "0", "none", "sensitive"), claim("job", "0", "none", "besteffort")
    )
    assert cpus(snap) == {
        "db": frozenset({2, 3}),
        "group/j10ce/sensitive": frozenset({0, 1}),
        "group/j10ce_besteffort": frozenset({0, 1}),
    }


def test_a_reserved_workload_runs_on_its_cpus_and_idle_best_effort_may_use_what_it_leaves() -> None:
    snap = machine(claim("db", "1", "reserved", "reserved"), claim("web", "0", "none", "standard"), idle("j"))
    assert cpus(snap) == {"db": frozenset({3}), "group/j10ce/standard": frozenset({0, 1, 2})}
    assert placed(snap)["workload/default/db"].reason == "floor 1 as whole CPUs, lent while idle: 3"


@pytest.mark.parametrize(
    ("job", "lacking", "off"),
    [
        pytest.param(idle("j"), [], False, id="idle"),
        pytest.param(idle("j"), ["cpu.idle"], False, id="suppressed where the kernel knows no idle groups"),
        pytest.param(idle("j"), ["cpu.idle", "cpu.max"], True, id="neither is to be had"),
        pytest.param(claim("j", "0", "none", "besteffort"), [], True, id="its profile asks for neither"),
    ],
)
def test_best_effort_that_does_not_give_way_keeps_off_reserved_cpus(job: Claim, lacking: list[str], off: bool) -> None:
    chosen = placed(machine(claim("db", "1", "reserved", "reserved"), job, lacking=lacking))
    assert ("group/j10ce_besteffort" in chosen) is off
    if off:
        kept = chosen["group/j10ce_besteffort"]
        assert kept.value == frozenset({0, 1, 2})
        assert kept.reason == "without 3: CPUs of others, and it is neither idle nor suppressed here"


def test_best_effort_keeps_off_exclusive_cpus_and_may_use_reserved_ones() -> None:
    chosen = cpus(machine(claim("db", "1", "exclusive"), claim("web", "1", "reserved", "reserved"), idle("j")))
    assert chosen["db"] == frozenset({3})
    assert chosen["web"] == frozenset({2})
    assert chosen["group/j10ce_besteffort"] == frozenset({0, 1, 2})


def test_whole_cores_of_one_cache_go_together() -> None:
    chosen = cpus(machine(claim("a", "4", "exclusive"), claim("b", "4", "reserved", "reserved"), topology=SERVER))
    assert (chosen["a"], chosen["b"]) == (frozenset({6, 7, 14, 15}), frozenset({4, 5, 12, 13}))


def test_the_lowest_core_stays_common_while_there_is_another() -> None:
    chosen = cpus(machine(claim("a", "8", "exclusive"), claim("b", "6", "exclusive"), topology=SERVER))
    assert chosen["b"] == frozenset({1, 2, 3, 9, 10, 11})


def test_who_spreads_has_one_cpu_of_each_core() -> None:
    assert cpus(machine(claim("a", "4", "exclusive", bind="spread"), topology=SERVER)) == {
        "a": frozenset({12, 13, 14, 15})
    }


def test_full_cores_are_refused_rather_than_split() -> None:
    snap = machine(claim("a", "3", "exclusive", bind="full-cores"), topology=SERVER)
    assert placed(snap)["workload/default/a"].reason == (
        "3 whole CPUs asked, in whole cores, 15 of 16 left to reserve; the floor is kept by weight alone"
    )


def test_who_is_promised_more_keeps_what_it_has_and_gets_what_is_next_to_it() -> None:
    floors = Floors(Floors.Config())
    assert cpus(machine(claim("a", "2", "exclusive"), topology=SERVER), floors) == {"a": frozenset({7, 15})}
    assert cpus(machine(claim("a", "4", "exclusive"), topology=SERVER), floors) == {"a": frozenset({6, 7, 14, 15})}
    assert cpus(machine(claim("a", "2", "exclusive"), topology=SERVER), floors) == {"a": frozenset({7, 15})}


def test_a_pod_with_cpus_of_the_kubelets_is_left_alone_and_nobody_gets_those() -> None:
    web = build.workload("web", handle=build.handle("kubepods/pod1"))
    web = replace(web, parts=(Part("main", build.handle("kubepods/pod1/c"), build.resources(cpu="2")),))
    asks = build.entitlement(web, tier="exclusive", floor_cpu="2", cpu=CpuSection(pinning="exclusive"))
    inner = part("default", "web", "main")
    groups = build.tree(
        [web, claim("db", "1", "exclusive")[0]],
        {web.target: asks},
        groups=[Group(inner, web.target, "kubepods/pod1/c", owned=False)],
    )
    values = {Setting(inner, "cpuset.cpus"): frozenset({2, 3})}
    snap = machine((web, asks), claim("db", "1", "exclusive"), groups=groups, values=values)
    assert cpus(snap) == {"db": frozenset({1})}


def test_a_sibling_in_the_exclusive_tier_keeps_off_too() -> None:
    snap = machine(claim("db", "1", "exclusive"), claim("small", "500m", "exclusive"))
    assert cpus(snap) == {"db": frozenset({3}), "small": frozenset({0, 1, 2})}


def test_a_part_of_a_cpu_reserves_none() -> None:
    assert cpus(machine(claim("db", "1500m", "exclusive"), claim("j", "0", "none", "besteffort"))) == {}


def test_one_cpu_stays_common_and_the_refusal_says_so() -> None:
    refused = placed(machine(claim("a", "1", "exclusive"), claim("b", "3", "exclusive")))["workload/default/b"]
    assert refused.reason == "3 whole CPUs asked, 2 of 4 left to reserve; the floor is kept by weight alone"
    assert refused.value == frozenset({0, 1, 2})


def test_an_arrival_does_not_move_those_who_have_cpus() -> None:
    floors = Floors(Floors.Config())
    late = claim("m", "1", "exclusive")
    assert cpus(machine(late), floors) == {"m": frozenset({3})}
    after = cpus(machine(claim("a", "1", "exclusive"), late), floors)
    assert after == {"m": frozenset({3}), "a": frozenset({2})}


def test_a_restarted_agent_finds_the_cpus_in_the_kernel() -> None:
    late, early = claim("m", "1", "exclusive"), claim("a", "1", "exclusive")
    held = {Setting(late[0].target, "cpuset.cpus"): frozenset({3})}
    assert cpus(machine(early, late, values=held)) == {"m": frozenset({3}), "a": frozenset({2})}


claims = st.lists(
    st.tuples(
        st.integers(1, 6), st.sampled_from(["reserved", "exclusive"]), st.sampled_from([None, "full-cores", "spread"])
    ),
    max_size=6,
)
machines = st.builds(
    build.topology, st.integers(1, 6), st.integers(1, 2), per_l3=st.integers(1, 4), step=st.integers(0, 1)
)


@settings(deadline=None)
@given(claims=claims, topology=machines, rng=st.randoms(use_true_random=False))
def test_no_cpu_is_owned_twice_one_stays_common_and_order_does_not_matter(
    claims: list[tuple[int, str, str | None]], topology: Topology, rng: random.Random
) -> None:
    wanted = [
        claim(f"w{n}", str(count), pinning, **({"bind": bind} if bind else {}))
        for n, (count, pinning, bind) in enumerate(claims)
    ]
    snap = machine(*wanted, idle("job"), topology=topology)
    handed = reserve(snap, {})
    owned = [cpu for cpus in handed.of.values() for cpu in cpus]
    assert len(owned) == len(set(owned)) < len(topology.cpus) or not owned
    for w, e in wanted:
        if e.cpu.bind == "full-cores" and w.target in handed.of:
            mine = handed.of[w.target]
            assert all(topology.siblings(cpu) <= mine for cpu in mine)
    exclusive = frozenset[int]().union(*handed.exclusive.values())
    left = cpus(snap).get("group/j10ce_besteffort", snap.node.cpus)
    assert left == snap.node.cpus - exclusive
    rng.shuffle(wanted)
    assert reserve(machine(idle("job"), *wanted, topology=topology), {}) == handed
    assert reserve(snap, handed.of) == handed


def test_exclusive_cpus_are_those_of_the_group_above() -> None:
    db = build.workload("db", handle=build.handle("system.slice/db"))
    e = build.entitlement(db, tier="exclusive", floor_cpu="1", cpu=CpuSection(pinning="exclusive"))
    narrow = {Setting(group("system.slice"), "cpuset.cpus"): frozenset({0, 1})}
    web = claim("web", "0", "none", "sensitive")
    chosen = cpus(machine((db, e), web, values=narrow))
    assert chosen == {"db": frozenset({1}), "group/j10ce/sensitive": frozenset({0, 2, 3})}


def test_a_group_above_with_too_few_cpus_is_named_in_the_refusal() -> None:
    db = build.workload("db", handle=build.handle("system.slice/db"))
    e = build.entitlement(db, tier="exclusive", floor_cpu="2", cpu=CpuSection(pinning="exclusive"))
    narrow = {Setting(group("system.slice"), "cpuset.cpus"): frozenset({0, 1})}
    refused = placed(machine((db, e), values=narrow))["workload/default/db"]
    assert refused.reason == "2 whole CPUs asked, 1 of 2 left to reserve; the floor is kept by weight alone"
    assert refused.value == frozenset({0, 1})
