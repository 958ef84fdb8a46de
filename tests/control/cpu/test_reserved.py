from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from j10ce.control.floors import Floors
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import Setting, group
from j10ce.model.plan import Proposal
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement, Workload
from j10ce.testing import build

Claim = tuple[Workload, Entitlement]


def claim(name: str, floor: str, pinning: str, tier: str = "exclusive") -> Claim:
    w = build.workload(name)
    cpu = CpuSection(pinning=pinning)  # type: ignore[arg-type]
    return w, build.entitlement(w, tier=tier, floor_cpu=floor, cpu=cpu)


def machine(*claims: Claim, cpus: int = 4, **rest: object) -> Snapshot:
    workloads, entitled = [c[0] for c in claims], [c[1] for c in claims]
    return build.snapshot(*entitled, workloads=workloads, on=build.node(cpus), **rest)  # type: ignore[arg-type]


def placed(snap: Snapshot, floors: Floors | None = None) -> dict[str, Proposal]:
    proposals = (floors or Floors(Floors.Config())).propose(snap)
    return {str(p.setting.target): p for p in proposals if p.setting.knob == "cpuset.cpus"}


def cpus(snap: Snapshot, floors: Floors | None = None) -> dict[str, object]:
    return {t.removeprefix("workload/default/"): p.value for t, p in placed(snap, floors).items()}


def test_exclusive_cpus_come_from_the_top_and_everyone_else_keeps_off() -> None:
    snap = machine(
        claim("db", "2", "exclusive"), claim("web", "0", "none", "sensitive"), claim("job", "0", "none", "besteffort")
    )
    assert cpus(snap) == {
        "db": frozenset({2, 3}),
        "group/j10ce/sensitive": frozenset({0, 1}),
        "group/j10ce_besteffort": frozenset({0, 1}),
    }


def test_reserved_cpus_are_kept_from_best_effort_only() -> None:
    snap = machine(
        claim("db", "1", "reserved", "reserved"),
        claim("web", "0", "none", "standard"),
        claim("j", "0", "none", "besteffort"),
    )
    assert cpus(snap) == {"group/j10ce_besteffort": frozenset({0, 1, 2})}


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


claims = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["reserved", "exclusive"])), max_size=6)


@settings(deadline=None)
@given(claims=claims, size=st.integers(1, 8))
def test_no_cpu_is_owned_twice_and_best_effort_always_has_one(claims: list[tuple[int, str]], size: int) -> None:
    wanted = [claim(f"w{n}", str(count), pinning) for n, (count, pinning) in enumerate(claims)]
    snap = machine(*wanted, claim("job", "0", "none", "besteffort"), cpus=size)
    exclusive = [p.value for p in placed(snap).values() if "as whole CPUs, exclusive" in p.reason]
    owned = [cpu for value in exclusive if isinstance(value, frozenset) for cpu in value]
    assert len(owned) == len(set(owned))
    assert len(owned) < size
    left = cpus(snap).get("group/j10ce_besteffort", snap.node.cpus)
    assert isinstance(left, frozenset)
    assert left
    assert not left & set(owned)


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
