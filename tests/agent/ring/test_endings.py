"""What ends is in the plan until it is as it was: armed, held and disarmed count for it as for everything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.model import kinds
from j10ce.model.kinds import MemorySection, NodeQoSSpec
from j10ce.model.knob import ROOT, Setting, TargetId, Value, group, workload
from j10ce.model.workload import Handle, Workload
from j10ce.plan.explanation.explain import explain
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.profiles import builtin
from j10ce.testing import build
from tests.agent.whole_ring import Ring
from tests.kernel.rig import machine

GI = 2**30
CONTROLLERS = frozenset({"cpu", "cpuset", "memory"})
JOB, DB = workload("default", "job"), workload("default", "db")
HAD = {"cpu.weight": 2048.0, "cpu.max": 300_000.0, "memory.min": 0.0, "memory.max": float("inf")}
GOLD = build.profile("gold", "sensitive", memory=MemorySection(min_percent=80, low_percent=100))


def document(*profiles: kinds.QoSProfile, disarmed: bool = False, holds: tuple[kinds.Hold, ...] = ()) -> NodeDocument:
    spec = NodeQoSSpec(disarmed=disarmed)
    return NodeDocument(node="node", profiles=(*builtin(), *profiles), spec=spec, holds=holds)


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    ring = Ring(tmp_path)
    ring.agent.obey(document(GOLD))
    ring.fake.enable(ROOT, CONTROLLERS)
    ring.fake.adopt(group("svc"), "svc")
    ring.fake.enable(group("svc"), CONTROLLERS)
    ring.fake.adopt(DB, "svc/db", HAD)
    return ring


def job(profile: str = "gold") -> Workload:
    made = build.workload("job", profile=profile, cpu="1", memory="4Gi", memory_limit="5Gi", cpu_limit="1")
    return replace(made, handle=Handle(), pids=(1,))


def db() -> Workload:
    made = build.workload("db", profile="ls", min_cpu="500m", min_memory="1Gi", cpu_limit="2", memory_limit="3Gi")
    return replace(made, handle=Handle(path="svc/db", made=False))


def values(ring: Ring, target: TargetId) -> dict[str, Value | None]:
    return {knob: ring.value(target, knob) for knob in HAD}


FRESH = {"cpu.weight": 1024.0, "cpu.max": float("inf"), "memory.min": 0.0, "memory.max": float("inf")}


def test_what_run_placed_and_is_forgotten_gets_its_settings_back_and_its_processes_go_on(ring: Ring) -> None:
    ring.arrive(job())
    ring.tick()
    assert ring.value(JOB, "memory.min") != 0.0
    ring.leave(job())
    assert {k: ring.fake.cgroups.value(k, "j10ce/sensitive/default_job") for k in FRESH} == FRESH
    assert ring.fake["j10ce/sensitive/default_job"].pids == {1}
    report = ring.tick()
    assert report.plan.empty
    assert report.outcome.results == (), "nothing is refused for as long as they live"
    ring.fake["j10ce/sensitive/default_job"].pids.clear()
    ring.tick()
    assert "j10ce" not in ring.fake.cgroups.by_path, "an empty cgroup goes, and so do its empty tier and top"


def test_a_placed_workload_whose_profile_is_deleted_gets_its_values_back(ring: Ring) -> None:
    ring.arrive(job())
    ring.tick()
    ring.agent.obey(document())
    ring.tick()
    assert values(ring, JOB) == FRESH
    assert ring.fake["j10ce/sensitive/default_job"].pids == {1}
    assert ring.tick().plan.empty


def test_memory_is_not_promised_again_before_it_is_given_back(ring: Ring) -> None:
    ring.arrive(job())
    ring.tick()
    ring.agent.obey(document())
    ring.fake.fail(*["EBUSY"] * 20)  # the kernel keeps what it has
    ring.tick()
    kept = ring.value(JOB, "memory.min")
    assert isinstance(kept, float)
    assert kept > 3.1 * GI
    greedy = replace(build.workload("other", profile="ls", min_memory="7Gi"), handle=Handle(), pids=(2,))
    report = ring.arrive(greedy)
    notes = report.resolution.entitlements[greedy.target].notes
    assert any("workload/default/job, not given back yet" in note.text for note in notes)
    ring.fake.faults.clear()
    for _ in range(2):
        report = ring.tick()
    assert ring.value(JOB, "memory.min") == 0.0
    assert report.resolution.entitlements[greedy.target].floor.memory == 7 * GI


def test_who_leaves_makes_room_for_who_comes_with_the_same_batch(ring: Ring) -> None:
    first = replace(build.workload("a", profile="ls", min_memory="7Gi"), handle=Handle(), pids=(2,))
    second = replace(build.workload("b", profile="ls", min_memory="7Gi"), handle=Handle(), pids=(3,))
    ring.arrive(first)
    ring.fake["j10ce/sensitive/default_a"].pids.clear()
    report = ring.agent.change([WorkloadEvent("ADDED", second), WorkloadEvent("DELETED", first)], ring.instant())
    assert report.resolution.entitlements[second.target].floor.memory == 7 * GI
    assert ring.value(second.target, "memory.min") == 7.0 * GI


def test_a_node_disarmed_by_its_owner_is_not_written_when_its_last_workload_leaves(ring: Ring) -> None:
    ring.arrive(db())
    ring.tick()
    before = ring.fake.settings()
    assert before[Setting(group("svc"), "memory.min")] == float(GI)
    ring.agent.obey(document(GOLD, disarmed=True))
    ring.tick()
    ring.leave(db())
    ring.tick()
    assert ring.fake.settings() == before
    ring.agent.obey(document(GOLD))
    ring.tick()
    assert values(ring, DB) == HAD
    assert ring.value(group("svc"), "memory.min") == 0.0


@pytest.mark.parametrize("restarted", [False, True], ids=["arm", "restart and arm"])
def test_what_ended_while_disarmed_is_given_back_later(ring: Ring, restarted: bool) -> None:
    ring.arrive(db())
    ring.tick()
    ring.agent.armed = False
    ring.leave(db())
    ring.tick(60)
    assert values(ring, DB) != HAD
    if restarted:
        ring.fake.places = {ROOT: ring.fake.places[ROOT]}
        ring.agent = ring.start()
    ring.agent.armed = True
    ring.tick()
    assert {k: ring.fake.cgroups.value(k, "svc/db") for k in HAD} == HAD
    assert ring.fake.cgroups.value("memory.min", "svc") == 0.0
    assert ring.tick().plan.empty
    assert ring.agent.kernel.originals == {}


def test_a_held_setting_of_what_nobody_chooses_any_more_stays_until_the_hold_ends(ring: Ring) -> None:
    chosen = replace(db(), labels={"j10ce.io/qos-profile": "gold"}, minimum=build.resources(), requests=db().minimum)
    ring.arrive(chosen)
    ring.tick()
    assert ring.value(DB, "cpu.max") == 200_000.0
    ring.agent.hold([build.hold(DB, "cpu.max", expires=ring.wall + 100)])
    ring.agent.obey(document())
    ring.tick()
    assert values(ring, DB) == HAD | {"cpu.max": 200_000.0}
    report = ring.tick()
    assert report.plan.empty
    explanation = explain(
        DB, "cpu.max", report.snap, report.plan, originals=ring.agent.kernel.originals, holds=report.held
    )
    assert "incident 42" in explanation.settings[0].held
    ring.tick(200)
    assert values(ring, DB) == HAD


@pytest.mark.parametrize("where", ["local", "of the control plane"])
def test_a_hold_outlives_the_workload_and_the_agent_that_retires(ring: Ring, where: str) -> None:
    ring.arrive(db())
    ring.tick()
    hold = build.hold(DB, "cpu.max", expires=ring.wall + 1000)
    if where == "local":
        ring.agent.hold([hold])
    else:
        ring.agent.obey(document(GOLD, holds=(hold,)))
    ring.leave(db())
    ring.tick()
    assert values(ring, DB) == HAD | {"cpu.max": 200_000.0}
    left = ring.agent.revert(ring.instant()).refused()
    assert [r.reason for _, r in left] == [
        f"held at 200000 (2 CPUs) by {hold.spec.who}: {hold.spec.why}; left as it is (--force overrides)"
    ]
    assert ring.value(DB, "cpu.max") == 200_000.0
    assert not ring.agent.revert(ring.instant(), force=True).refused()
    assert values(ring, DB) == HAD


def test_explain_tells_why_something_goes_back(ring: Ring) -> None:
    ring.arrive(db())
    ring.tick()
    ring.agent.armed = False
    report = ring.leave(db())
    explanation = explain(DB, "cpu.max", report.snap, report.plan, originals=ring.agent.kernel.originals)
    assert explanation.settings[0].planned == "300000 (3 CPUs)"
    assert explanation.settings[0].winner is not None
    assert explanation.settings[0].winner.reason == "its workload is gone"


def test_a_cap_goes_back_only_as_usage_falls(ring: Ring) -> None:
    """Given back at once, a limit below what is used would kill."""
    ring.fake["svc/db"].values["memory.max"] = 1.0 * GI
    ring.arrive(db())
    ring.tick()
    assert ring.value(DB, "memory.max") == 3.0 * GI
    ring.fake["svc/db"].memory_current = 2.0 * GI
    ring.leave(db())
    kept = ring.value(DB, "memory.max")
    assert isinstance(kept, float)
    assert 2.0 * GI < kept < 3.0 * GI
    ring.fake["svc/db"].memory_current = 0.5 * GI
    ring.tick()
    assert ring.value(DB, "memory.max") == 1.0 * GI


def test_a_policy_that_chooses_later_finds_a_place_at_the_next_tick(ring: Ring) -> None:
    plain = replace(build.workload("job", labels={"app": "job"}), handle=Handle(), pids=(1,))
    ring.arrive(plain)
    assert not ring.agent.workloads[JOB].handle.path
    promise = build.reservation("floor", labels={"app": "job"}, cpu="500m", memory="256Mi")
    ring.agent.obey(replace(document(GOLD), policies=(promise,)))
    report = ring.tick(31)
    assert not report.faults
    assert 1 in ring.fake[ring.agent.workloads[JOB].handle.path].pids


def test_a_name_that_returns_in_another_tier_leaves_no_cgroup_behind(ring: Ring) -> None:
    ring.arrive(job("ls"))
    ring.leave(job("ls"))  # forgotten: its process goes on
    ring.arrive(replace(job("be"), pids=(2,)))
    ring.tick()
    assert ring.fake["j10ce/sensitive/default_job"].pids == {1}
    for here in ring.fake.cgroups.by_path.values():
        here.pids.clear()
    successor = ring.start()  # it knows of both by the journal alone
    assert not successor.kernel.revert().refused()
    assert {p for p in ring.fake.cgroups.by_path if p.startswith("j10ce")} == set()


def test_a_cgroup_that_is_adopted_under_another_name_before_it_was_given_back_ends_as_it_was(ring: Ring) -> None:
    ring.arrive(db())
    ring.tick()
    ring.agent.armed = False
    ring.leave(db())
    ring.tick()
    other = replace(build.workload("other", profile="ls", cpu_limit="1"), handle=Handle(path="svc/db", made=False))
    ring.arrive(other)
    ring.agent.armed = True
    ring.tick(31)
    assert ring.value(other.target, "memory.min") == 0.0, "its floor left with its name"
    assert ring.value(other.target, "cpu.max") == 100_000.0
    ring.leave(other)
    assert ring.tick(31).plan.changes == ()
    assert {knob: ring.fake["svc/db"].values.get(knob, HAD[knob]) for knob in HAD} == HAD


def test_a_value_of_ours_goes_back_after_writes_that_the_kernel_refused(ring: Ring) -> None:
    ring.fake.adopt(group("svc/x"), "svc/x", {"cpu.weight": 20_000.0})
    ring.arrive(db())
    ring.tick()
    assert ring.fake["svc/db"].values["cpu.weight"] != HAD["cpu.weight"]
    for weight in (40_000.0, 80_000.0):  # of the neighbour, so that more is wanted each time
        ring.fake["svc/x"].values["cpu.weight"] = weight
        ring.fake.fail("EBUSY")
        assert ring.tick(11).outcome.refused()
    ring.fake.faults.clear()
    ring.leave(db())
    ring.tick()
    assert ring.fake["svc/db"].values["cpu.weight"] == HAD["cpu.weight"]


def test_a_group_above_goes_back_when_the_floor_inside_it_ends_beside_a_stranger_that_keeps_memory(ring: Ring) -> None:
    ring.fake.adopt(group("svc/x"), "svc/x", {"memory.min": 3.0 * GI})
    floor = build.reservation("p", labels={"app": "p"}, memory="256Mi")
    made = build.workload("db", profile="ls", labels={"app": "p"})
    ring.agent.obey(replace(document(), policies=(floor,)))
    ring.arrive(replace(made, handle=Handle(path="svc/db", made=False)))
    ring.tick(31)
    assert ring.value(group("svc"), "memory.min") == 3.25 * GI
    ring.agent.obey(document())
    ring.tick(31)
    assert ring.value(group("svc"), "memory.min") == 0.0
    ring.tick(31)
    assert ring.agent.resolution is not None
    assert list(ring.agent.resolution.ledger) == []


def test_nothing_stays_of_an_adopted_cgroup_that_vanished_before_it_was_forgotten(ring: Ring) -> None:
    ring.arrive(db())
    ring.tick(31)
    ring.fake.vanish("svc/db")
    ring.tick(31)
    ring.leave(db())
    ring.tick(31)
    assert ring.tick(31).plan.notes == ()
    assert dict(ring.agent.kernel.originals) == {}
    assert ring.value(group("svc"), "memory.min") == 0.0


@pytest.mark.parametrize("restarted", [False, True], ids=["", "restarted in between"])
@pytest.mark.parametrize("leaves", [("outer", "inner"), ("inner", "outer")], ids=" then ".join)
@pytest.mark.parametrize("comes", [("outer", "inner"), ("inner", "outer")], ids=" then ".join)
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_cgroup_that_is_adopted_above_another_ends_as_it_was(
    tmp_path: Path, version: str, comes: tuple[str, ...], leaves: tuple[str, ...], restarted: bool
) -> None:
    """Until then it is a group above the other, and covers its floor: one cgroup, and two names in turn."""
    ring = Ring(tmp_path, version)
    ring.fake.enable(ROOT, CONTROLLERS)
    for path in ("a", "a/b", "a/b/c"):
        ring.fake.adopt(group(path), path, {"cpu.weight": 300.0, "cpu.max": 250_000.0})
        ring.fake.enable(group(path), CONTROLLERS)
    ring.fake.places = {ROOT: ring.fake.places[ROOT]}
    before = machine(ring.fake)
    asked = {"profile": "ls", "min_cpu": "1", "cpu_limit": "2", "memory_limit": "2Gi"}
    both = {
        name: build.workload(name, min_memory=floor, handle=build.handle(path), **asked)  # type: ignore[arg-type]
        for name, path, floor in (("outer", "a/b", "1Gi"), ("inner", "a/b/c", "512Mi"))
    }
    for name in comes:
        ring.arrive(both[name])
        ring.tick()
    for name, other in (leaves, leaves[::-1]):
        if restarted:
            ring.fake.places = {ROOT: ring.fake.places[ROOT]}
            ring.agent = ring.start()
            ring.arrive(*(w for w in both.values() if name == leaves[0] or w is both[name]))
        ring.leave(both[name])
        ring.tick()
        ring.tick(31)
        if name == leaves[0] and version == "v2":
            assert ring.fake["a/b"].values["memory.min"] == both[other].minimum.memory
        if name == leaves[0] == "outer":
            assert {k: v for k, v in machine(ring.fake)["a/b"].items() if k != "memory.min"} == before["a/b"]
    assert machine(ring.fake) == before
    assert ring.tick(31).plan.changes == ()
