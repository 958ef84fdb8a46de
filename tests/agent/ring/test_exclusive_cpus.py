"""Whole CPUs for some, beside CPU sets that others chose: nobody is moved to CPUs that its owner kept it off."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.agent.socket.minimum import unmet
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import ROOT, Setting, TargetId, group, part
from j10ce.model.workload import Handle, Part, Workload
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.profiles import builtin
from j10ce.testing import build as make
from tests.agent.whole_ring import Ring

CONTROLLERS = frozenset({"cpu", "cpuset", "memory"})
EXCLUSIVE = make.profile("ex", "exclusive", cpu=CpuSection(pinning="exclusive"))


@pytest.fixture(params=["v1", "v2"])
def ring(tmp_path: Path, request: pytest.FixtureRequest) -> Ring:
    ring = Ring(tmp_path, request.param)
    ring.fake.enable(ROOT, CONTROLLERS)
    ring.agent.obey(NodeDocument(node="node", profiles=(*builtin(), EXCLUSIVE)))
    return ring


def cgroup(ring: Ring, target: TargetId, path: str, *cpus: int) -> None:
    """One that is there, with a CPU set of its owner's, or with all of the machine's four."""
    ring.fake.adopt(target, path, {"cpuset.cpus": frozenset(cpus or range(4))})
    ring.fake.enable(target, CONTROLLERS)


def adopted(ring: Ring, name: str, path: str, *cpus: int, floor: str = "0", profile: str = "ls") -> Workload:
    made = make.workload(name, profile=profile, min_cpu=floor, handle=make.handle(path))
    cgroup(ring, made.target, path, *cpus)
    return made


def exclusive(name: str, count: int) -> Workload:
    return replace(make.workload(name, profile="ex", min_cpu=str(count), pids=(1,)), handle=Handle())


def cpus(ring: Ring, of: Workload | TargetId) -> frozenset[int]:
    value = ring.value(of if isinstance(of, str) else of.target, "cpuset.cpus")
    assert isinstance(value, frozenset)
    return value


def test_a_service_that_its_admin_confined_keeps_its_cpus_beside_an_exclusive_one(ring: Ring) -> None:
    web, db = adopted(ring, "web", "web.service", 0, 1), exclusive("db", 1)
    ring.arrive(web)
    ring.arrive(db)
    ring.tick()
    assert (cpus(ring, web), cpus(ring, db)) == ({0, 1}, {3})


def test_cpus_that_the_kubelet_gave_a_container_are_not_taken_for_another(ring: Ring) -> None:
    cgroup(ring, group("kubepods"), "kubepods")
    pod = adopted(ring, "pod", "kubepods/pod1")
    inner = part(pod.namespace, pod.name, "main")
    cgroup(ring, inner, "kubepods/pod1/c1", 2, 3)
    pod = replace(pod, parts=(Part("main", make.handle("kubepods/pod1/c1"), make.resources(cpu="2")),))
    db = exclusive("db", 2)
    ring.arrive(pod)
    ring.arrive(db)
    ring.tick()
    assert cpus(ring, inner) == {2, 3}
    assert not cpus(ring, db) & {2, 3}


def test_an_exclusive_workload_keeps_to_the_cpus_that_its_owner_chose(ring: Ring) -> None:
    db = adopted(ring, "db", "db.service", 0, 1, floor="1", profile="ex")
    web = adopted(ring, "web", "web.service")
    ring.arrive(web, db)
    ring.tick()
    assert (cpus(ring, db), cpus(ring, web)) == ({1}, {0, 2, 3})


@pytest.mark.parametrize(
    ("confined", "floor", "asked", "left"),
    [
        pytest.param({0, 1, 2, 3}, "0", 3, {0}, id="a service everywhere makes room for three"),
        pytest.param({3}, "0", 3, {3}, id="a service on the highest CPU: the other three"),
        pytest.param({2, 3}, "0", 3, {2}, id="a service on two CPUs gives up one where there is no other"),
        pytest.param({2, 3}, "1500m", 2, {2, 3}, id="unless its floor needs both"),
    ],
)
def test_who_is_confined_is_left_what_it_needs(
    ring: Ring, confined: set[int], floor: str, asked: int, left: set[int]
) -> None:
    web, db = adopted(ring, "web", "web.service", *confined, floor=floor), exclusive("db", asked)
    ring.arrive(web)
    ring.arrive(db)
    ring.tick()
    assert cpus(ring, web) == left
    assert len(cpus(ring, db)) == asked
    assert not cpus(ring, db) & left


def test_cpus_that_someone_cannot_leave_are_not_given_away_and_it_is_said(ring: Ring) -> None:
    for cpu in range(1, 4):
        ring.arrive(adopted(ring, f"s{cpu}", f"s{cpu}.service", cpu))
    db = exclusive("db", 2)
    report = ring.arrive(db)
    verdict = report.plan.verdicts[Setting(db.target, "cpuset.cpus")]
    said = verdict.by.reason if verdict.by else ""
    assert said == "2 whole CPUs asked, 1 of 4 left to reserve; the floor is kept by weight alone"
    assert [cpus(ring, make.workload(f"s{cpu}").target) for cpu in range(1, 4)] == [{1}, {2}, {3}]


def test_a_service_that_comes_with_a_cpu_of_its_own_has_it_though_it_was_exclusive(ring: Ring) -> None:
    db = exclusive("db", 1)
    ring.arrive(db)
    web = adopted(ring, "web", "web.service", 3)
    ring.arrive(web)
    ring.tick()
    assert (cpus(ring, web), cpus(ring, db)) == ({3}, {2})


def test_a_set_that_was_narrowed_is_whole_again_in_the_end(ring: Ring) -> None:
    web, db = adopted(ring, "web", "web.service", 1, 2, 3), exclusive("db", 2)
    ring.arrive(web)
    ring.arrive(db)
    ring.tick()
    assert (cpus(ring, web), cpus(ring, db)) == ({1, 2}, {0, 3})
    ring.leave(db)
    ring.tick()
    assert cpus(ring, web) == {1, 2, 3}


def test_the_cpus_of_a_group_that_someone_of_ours_cannot_leave_are_not_exclusive_to_another(ring: Ring) -> None:
    cgroup(ring, group("svc"), "svc", 3)
    web, db = adopted(ring, "web", "svc/web", 3, floor="500m"), exclusive("db", 1)
    ring.arrive(web)
    report = ring.arrive(db)
    assert unmet(report, report.snap.workloads[db.target], "") == []
    assert cpus(ring, db) == {2}
    assert {t: e.cpu_reason for t, e in ring.tick(31).effective.items()} == {web.target: "", db.target: ""}


def test_cpus_that_another_of_ours_is_held_on_are_no_proof_of_a_minimum(ring: Ring) -> None:
    web, db = adopted(ring, "web", "web.service", floor="500m"), exclusive("db", 1)
    ring.arrive(web)
    ring.agent.hold([make.hold(web.target, "cpuset.cpus", value="3", expires=ring.wall + 1000)])
    ring.tick()
    report = ring.arrive(db)
    assert cpus(ring, db) == cpus(ring, web) == {3}
    assert unmet(report, report.snap.workloads[db.target], "")[0].startswith("cpu ")
