"""Memory floors in the ring: beside the agent's own memory, beside what others claim, and below other hands."""

from __future__ import annotations

import math
from pathlib import Path

from msgspec.structs import replace

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.agent.ring.contained import Contained
from j10ce.agent.socket.minimum import unmet
from j10ce.control.own import Own
from j10ce.model.knob import ROOT, Setting, TargetId, group
from j10ce.model.workload import Handle, Workload
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.profiles import builtin
from j10ce.testing import build
from tests.agent.whole_ring import Ring

GI, MI = 1 << 30, 1 << 20
CONTROLLERS = frozenset({"cpu", "cpuset", "memory"})


def local(name: str, floor: str, pid: int) -> Workload:
    """As the socket hands it in: no place yet, a process waiting."""
    return replace(build.workload(name, profile="ls", min_memory=floor), handle=Handle(), pids=(pid,))


def agents_group(ring: Ring, used: float) -> TargetId:
    """The agent's own cgroup, as it is after `protect_self`."""
    own = Own(Own.Config(group="j10ce/agent"))
    ring.agent.own = own.claim
    ring.agent.guards.append(Contained(own))
    ring.fake.enable(ROOT, CONTROLLERS)
    for path in ("j10ce", "j10ce/agent"):
        ring.fake.make(group(path), Handle(path))
    ring.fake.enable(group("j10ce"), CONTROLLERS)
    ring.fake["j10ce/agent"].memory_current = used
    return group("j10ce/agent")


def test_an_admitted_memory_floor_is_not_cut_for_the_agent(tmp_path: Path) -> None:
    """On a machine of 8 GiB 7.5 may be promised; the agent has its line in the book before anyone asks."""
    ring = Ring(tmp_path)
    own = agents_group(ring, 60.0 * MI)
    ring.tick()
    first, second = (local(n, m, p) for n, m, p in (("a", "7Gi", 1), ("b", "500Mi", 2)))
    ring.arrive(first, second)
    for _ in range(3):
        report = ring.tick(11)
    assert report.snap.entitlements[second.target].floor.memory == 0
    assert any(
        "held by workload/default/a" in n.text and "agent memory 60Mi" in n.text
        for n in report.snap.entitlements[second.target].notes
    )
    assert ring.value(first.target, "memory.min") == 7 * GI
    assert ring.value(own, "memory.min") == 60 * MI
    assert not any("cut" in note for note in report.plan.notes)


def test_the_agents_memory_goes_before_a_floor(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    own = agents_group(ring, 1.0 * MI)
    one = local("a", "7670Mi", 1)
    ring.arrive(one)
    ring.tick()
    ring.fake["j10ce/agent"].memory_current = 50.0 * MI
    for _ in range(3):
        ring.tick(11)
    assert ring.value(one.target, "memory.min") == 7670 * MI
    assert ring.value(own, "memory.min") == 10 * MI


def test_memory_that_a_stranger_keeps_is_not_promised_again(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    ring.fake.enable(ROOT, CONTROLLERS)
    ring.fake.adopt(group("machine.slice"), "machine.slice", {"memory.min": 4.0 * GI})
    late, fits = local("late", "7Gi", 1), local("fits", "3Gi", 2)
    report = ring.arrive(late)
    assert report.snap.entitlements[late.target].floor.memory == 0
    ring.arrive(fits)
    ring.tick()
    tops = list(ring.fake.cgroups.children(""))
    kept = sum(float(str(ring.fake.cgroups.value("memory.min", path))) for path in tops)
    assert kept == 7 * GI


def test_a_stranger_who_claims_later_is_heeded_within_a_tick(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    ring.fake.enable(ROOT, CONTROLLERS)
    one = local("a", "7Gi", 1)
    ring.arrive(one)
    ring.fake.adopt(group("machine.slice"), "machine.slice", {"memory.min": 4.0 * GI})
    ring.tick()
    report = ring.tick()
    assert report.snap.entitlements[one.target].floor.memory == 3.5 * GI
    assert any("too small" in note.text for note in report.snap.entitlements[one.target].notes)


def adopted(ring: Ring, floor: str, had: float) -> Workload:
    """A service that kept so much memory before us, in a group that is not ours and keeps none."""
    db = replace(build.workload("db", profile="ls", min_memory=floor), handle=build.handle("svc/db"))
    ring.fake.enable(ROOT, CONTROLLERS)
    ring.fake.adopt(group("svc"), "svc")
    ring.fake.enable(group("svc"), CONTROLLERS)
    ring.fake.adopt(db.target, "svc/db", {"memory.min": had})
    return db


def test_memory_that_a_neighbour_of_an_adopted_service_keeps_is_counted_once(tmp_path: Path) -> None:
    """The group above both is raised for both: 1 GiB for the service, 1 for its neighbour, 5.5 of 7.5 are left."""
    ring = Ring(tmp_path)
    db = adopted(ring, "1Gi", 0.0)
    ring.fake.adopt(group("svc/log"), "svc/log", {"memory.min": 1.0 * GI})
    ring.arrive(db)
    ring.tick()
    assert ring.value(group("svc"), "memory.min") == 2 * GI
    ring.tick()
    job = local("job", "5632Mi", 1)
    assert ring.arrive(job).snap.entitlements[job.target].floor.memory == 5632 * MI


def test_memory_that_an_adopted_service_kept_before_is_counted_once(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    job = local("job", "7578Mi", 1)
    ring.arrive(job)
    ring.arrive(adopted(ring, "0", 128.0 * MI))
    for _ in range(4):
        report = ring.tick(31)
    assert ring.value(job.target, "memory.min") == (7680 - 128) * MI
    assert report.plan.empty


def test_memory_that_was_given_back_can_be_promised_at_once(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    db = adopted(ring, "4Gi", 128.0 * MI)
    ring.arrive(db)
    ring.tick()
    ring.agent.change([WorkloadEvent("MODIFIED", replace(db, minimum=build.resources()))], ring.instant())
    assert ring.value(db.target, "memory.min") == 128 * MI
    job = local("job", "7Gi", 1)
    assert ring.arrive(job).snap.entitlements[job.target].floor.memory == 7 * GI


# ---------------------------------------------------------------------- other hands above a floor


def below_a_stranger(ring: Ring) -> Workload:
    """An adopted service in a group that is not ours."""
    db = adopted(ring, "96Mi", 0.0)
    ring.arrive(db)
    ring.tick()
    return db


def test_a_group_above_that_loses_its_cover_has_it_back_at_the_next_tick(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    db = below_a_stranger(ring)
    assert ring.value(group("svc"), "memory.min") == 96 * MI
    ring.fake.cgroups.hold("memory.min", 0.0, "svc")
    report = ring.tick()
    assert ring.value(group("svc"), "memory.min") == 96 * MI
    assert report.effective[db.target].holds
    assert [str(d.setting) for d in report.drifts] == ["group/svc memory.min"]


def test_a_floor_that_lost_its_cover_for_good_is_reported_at_the_next_tick(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    db = below_a_stranger(ring)
    ring.agent.armed = False
    ring.fake.cgroups.hold("memory.min", 0.0, "svc")
    assert ring.tick().effective[db.target].memory_reason == "memory.min of group/svc is 0"


def test_a_limit_above_is_read_again_for_an_arrival(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    ring.arrive(local("a", "32Mi", 1))
    ring.tick()
    ring.fake.cgroups.hold("memory.max", 52.0 * MI, "j10ce")
    report = ring.arrive(local("b", "64Mi", 2))
    assert report.snap.settings[Setting(group("j10ce"), "memory.max")] == 52 * MI
    ring.fake.cgroups.hold("memory.max", math.inf, "j10ce")
    assert ring.arrive(local("c", "1Mi", 3)).snap.settings[Setting(group("j10ce"), "memory.max")] == math.inf


def test_a_limit_on_our_group_cuts_no_floor_and_is_named(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    ring.arrive(local("a", "32Mi", 1), local("b", "64Mi", 2))
    ring.fake.cgroups.hold("memory.max", 52.0 * MI, "j10ce")
    for _ in range(40):
        report = ring.tick()
    first = build.workload("a").target
    assert ring.value(first, "memory.min") == 32 * MI
    assert "memory.max of group/j10ce is 52Mi, and 96Mi are protected" in report.effective[first].memory_reason


def test_pages_from_before_the_memory_controller_was_enabled_are_reported(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    db = replace(build.workload("db", profile="ls", min_memory="96Mi"), handle=build.handle("svc/db"))
    ring.fake.enable(ROOT, CONTROLLERS)
    ring.fake.adopt(group("svc"), "svc")
    ring.fake.adopt(db.target, "svc/db")
    ring.fake["svc"].memory_current = 70.0 * MI
    ring.fake["svc/db"].memory_current = 2.0 * MI
    ring.arrive(db)
    report = ring.tick()
    assert "memory" in ring.fake["svc"].enabled
    assert report.effective[db.target].memory_reason.startswith("68Mi are charged to group/svc itself")


def test_a_unit_that_is_down_keeps_its_floor_in_the_book_once(tmp_path: Path) -> None:
    """While it has no cgroup nothing is cut for it, nothing flaps above it, and what is free is given to others."""
    ring = Ring(tmp_path)
    for path in ("system.slice", "system.slice/redis.service"):
        ring.fake.adopt(group(path), path)
    ring.fake.enable(ROOT, CONTROLLERS)
    ring.fake.enable(group("system.slice"), CONTROLLERS)
    handle = Handle(path="system.slice/redis.service", unit="redis.service", made=False)
    redis = build.workload("redis", profile="ls", min_memory="5Gi", handle=handle)
    ring.arrive(redis)
    ring.tick()
    ring.fake.vanish(handle.path)
    for _ in range(5):
        report = ring.tick()
        assert report.resolution.ledger.promised.memory == 5 * GI
        assert ring.value(group("system.slice"), "memory.min") == 5 * GI
    job = local("job", "2Gi", 5)
    ring.arrive(job)
    assert ring.tick().snap.entitlements[job.target].floor.memory == 2 * GI


def test_memory_that_is_kept_above_a_service_that_is_down_is_not_given_away_when_its_promise_ends(
    tmp_path: Path,
) -> None:
    """Nothing is given back while disarmed: whoever asks in the meantime asks for what the kernel still keeps."""
    ring = Ring(tmp_path)
    for path in ("system.slice", "system.slice/redis.service"):
        ring.fake.adopt(group(path), path)
    ring.fake.enable(ROOT, CONTROLLERS)
    ring.fake.enable(group("system.slice"), CONTROLLERS)
    handle = Handle(path="system.slice/redis.service", unit="redis.service", made=False)
    promise = build.reservation("p", labels={"app": "redis"}, memory="5Gi")
    ring.agent.obey(NodeDocument(node="node", profiles=builtin(), policies=(promise,)))
    ring.arrive(build.workload("redis", labels={"app": "redis"}, handle=handle))
    ring.tick()
    ring.fake.vanish(handle.path)
    ring.tick(31)
    ring.agent.armed = False
    other = build.reservation("q", labels={"app": "job"}, memory="4Gi")
    ring.agent.obey(NodeDocument(node="node", profiles=builtin(), policies=(other,)))
    first = ring.arrive(build.workload("job", labels={"app": "job"}, pids=(7,)))
    for report in (first, ring.tick(), ring.tick()):
        assert report.resolution.ledger.promised.memory == 5 * GI
        assert ring.value(group("system.slice"), "memory.min") == 5 * GI
    ring.agent.armed = True
    ring.tick()
    assert ring.tick().resolution.ledger.promised.memory == 4 * GI


def test_a_workload_below_a_limit_is_said_not_to_have_its_minimum(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    first = local("first", "1Gi", 1)
    ring.arrive(first)
    ring.tick()
    ring.fake["j10ce"].values["memory.max"] = 2.0 * GI
    ring.tick(31)
    second = local("second", "3Gi", 2)
    report = ring.arrive(second)
    (why,) = unmet(report, report.snap.workloads[second.target], "")
    assert why.startswith("memory ")
    assert "memory.max of group/j10ce" in why
