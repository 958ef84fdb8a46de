"""The whole ring with neighbours: adopted beside placed, pods beside those that nobody chose, comings and goings."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.agent.socket.minimum import unmet
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import ROOT, Setting, group
from j10ce.model.workload import Handle, Workload
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.effect.effective import effective
from j10ce.policy.profiles import builtin
from j10ce.testing import build as make
from tests.agent.whole_ring import Ring

CONTROLLERS = frozenset({"cpu", "cpuset", "memory"})


@pytest.fixture(params=["v1", "v2"])
def ring(tmp_path: Path, request: pytest.FixtureRequest) -> Ring:
    ring = Ring(tmp_path, request.param)
    ring.fake.enable(ROOT, CONTROLLERS)
    return ring


def theirs(ring: Ring, *paths: str) -> None:
    for path in paths:
        ring.fake.adopt(group(path), path)
        ring.fake.enable(group(path), CONTROLLERS)


def pod(ring: Ring, name: str, cpu: str, *, weight: float, floor: str = "0") -> Workload:
    path = f"kubepods/burstable/pod{name}"
    made = make.workload(name, profile="ls" if floor != "0" else "", cpu=cpu, min_cpu=floor, handle=make.handle(path))
    ring.fake.adopt(made.target, path)
    ring.fake[path].values["cpu.weight"] = weight
    return made


def test_an_adopted_floor_is_kept_beside_a_placed_one(ring: Ring) -> None:
    theirs(ring, "system.slice")
    redis = make.workload("redis", profile="ls", min_cpu="1", handle=make.handle("system.slice/redis.service"))
    ring.fake.adopt(redis.target, redis.handle.path)
    job = make.workload("job", profile="ls", min_cpu="1", pids=(1,))
    ring.arrive(redis)
    ring.tick()
    ring.arrive(job)
    ring.tick()
    effects = ring.tick(6).effective
    assert [effects[w.target].cpu_reason for w in (redis, job)] == ["", ""]
    assert min(effects[w.target].cpu for w in (redis, job)) >= 1000


def test_pods_that_come_and_go_leave_the_weights_as_they_were(ring: Ring) -> None:
    theirs(ring, "kubepods", "kubepods/burstable")
    svc = pod(ring, "svc", "1200m", weight=1229.0, floor="1200m")
    db = pod(ring, "db", "200m", weight=205.0, floor="800m")
    heavy = pod(ring, "heavy", "1", weight=1024.0)
    ring.arrive(svc, db, heavy)
    ring.tick()
    first = {w.name: ring.value(w.target, "cpu.weight") for w in (svc, db, heavy)}
    assert first["heavy"] == 1024
    for _ in range(3):
        ring.leave(db)
        ring.tick()
        ring.fake.adopt(db.target, db.handle.path)
        ring.fake[db.handle.path].values["cpu.weight"] = 205.0
        ring.arrive(db)
        ring.tick()
        ring.tick()
    assert {w.name: ring.value(w.target, "cpu.weight") for w in (svc, db, heavy)} == first
    effects = ring.tick(6).effective
    assert {w.name: effects[w.target].cpu_reason for w in (svc, db)} == {"svc": "", "db": ""}
    assert effects[heavy.target].cpu >= 1000, "nobody chose it, and it has what it requests"


def test_a_weight_that_its_owner_changes_is_heeded_without_any_other_event(ring: Ring) -> None:
    """A neighbour is resized and back: what was raised for its weight is not kept."""
    theirs(ring, "kubepods", "kubepods/burstable")
    db = pod(ring, "db", "200m", weight=205.0, floor="800m")
    heavy = pod(ring, "heavy", "1", weight=1024.0)
    ring.arrive(db, heavy)
    ring.tick()
    before = ring.value(db.target, "cpu.weight")
    ring.fake[heavy.handle.path].values["cpu.weight"] = 4096.0
    for _ in range(4):
        ring.tick(31)
    raised = ring.value(db.target, "cpu.weight")
    assert isinstance(before, float)
    assert isinstance(raised, float)
    assert raised > 2 * before
    ring.fake[heavy.handle.path].values["cpu.weight"] = 1024.0
    for _ in range(4):
        ring.tick(31)
    assert ring.value(db.target, "cpu.weight") == pytest.approx(before, rel=0.15)
    assert Setting(group("kubepods/burstable"), "cpu.weight") not in ring.agent.kernel.originals


def test_a_floor_is_kept_beside_what_was_forgotten_and_goes_on(ring: Ring) -> None:
    """Its weight goes back to a fresh cgroup's, which is more than it had by its request."""
    db = replace(make.workload("db", profile="burstable", min_cpu="3600m", pids=(1,)), handle=Handle())
    batch = replace(make.workload("batch", profile="burstable", cpu="100m", pids=(2,)), handle=Handle())
    ring.arrive(db, batch)
    ring.tick()
    ring.leave(batch)
    assert ring.fake.cgroups.value("cpu.weight", "j10ce/standard/default_batch") == 1024
    ring.tick()
    report = ring.tick(6)
    assert report.effective[db.target].cpu_reason == ""
    assert report.plan.empty


def test_on_cgroup1_a_cpu_that_comes_back_is_not_lost(tmp_path: Path) -> None:
    """The kernel takes a CPU that goes offline out of every v1 cpuset, and never puts it back."""
    ring = Ring(tmp_path, "v1")
    web = make.workload("web", profile="ls", pids=(1,))
    ring.arrive(web)
    ring.tick()
    places = ["j10ce", "j10ce/sensitive", "j10ce/sensitive/default_web"]
    whole = ring.agent.observer.facts
    ring.agent.observer.facts = replace(whole, cpus=frozenset({0, 1, 2}))
    for path in places:
        ring.fake[path].values["cpuset.cpus"] = frozenset({0, 1, 2})
    for _ in range(3):
        ring.tick(31)
    ring.agent.observer.facts = whole
    for _ in range(3):
        ring.tick(31)
    assert [ring.fake[path].values["cpuset.cpus"] for path in places] == [frozenset({0, 1, 2, 3})] * 3


def test_those_who_decide_are_asked_again_when_the_machine_has_another_link(ring: Ring) -> None:
    ring.arrive(make.workload("web", profile="ls", pids=(1,)))
    before = ring.tick(31).snap.epoch
    assert ring.tick(31).snap.epoch == before
    ring.agent.observer.facts = replace(ring.agent.observer.facts, links={"eth0": make.link()})
    assert ring.tick(31).snap.epoch > before


def test_a_request_that_nothing_can_keep_takes_no_floor_along(ring: Ring) -> None:
    """Floors win over requests: the group of both is left what the floor needs."""
    theirs(ring, "svc")
    db = make.workload("db", profile="ls", min_cpu="1500m", handle=make.handle("svc/db"))
    big = make.workload("big", cpu="3", handle=make.handle("svc/big"))
    for w in (db, big):
        ring.fake.adopt(w.target, w.handle.path, {"cpu.weight": 1024.0})
    ring.arrive(db, big, make.workload("job", profile="burstable", cpu="3", pids=(7,)))
    ring.tick()
    effects = ring.tick(6).effective[db.target]
    assert (effects.cpu_reason, effects.cpu >= 1500) == ("", True)


def test_what_someone_nobody_chose_requests_is_not_taken_for_a_floor(ring: Ring) -> None:
    ring.fake.adopt(group("svc"), "svc", {"cpu.weight": 2048.0})
    svc = make.workload("svc", cpu="1500m", handle=make.handle("svc"))
    ring.fake.adopt(svc.target, "svc", {"cpu.weight": 2048.0})
    ring.arrive(svc, make.workload("job", profile="ls", cpu="3", min_cpu="200m", pids=(7,)))
    ring.tick()
    assert ring.tick(6).effective[svc.target].cpu >= 1500


def test_a_tier_that_nobody_can_remove_ends_no_floor(ring: Ring) -> None:
    job = make.workload("job", profile="ls", min_cpu="500m", pids=(7,))
    db = make.workload("db", profile="ls", min_cpu="3", handle=make.handle("svc"))
    ring.arrive(job)
    ring.tick()
    ring.fake["j10ce/sensitive"].pids.add(99)
    ring.fake["j10ce/sensitive/default_job"].pids.clear()
    ring.leave(ring.agent.workloads[job.target])
    ring.fake.adopt(db.target, "svc", {"cpu.weight": 512.0})
    ring.arrive(db)
    ring.tick()
    report = ring.tick(31)
    assert (report.faults, report.effective[db.target].cpu_reason) == ({}, "")


def test_a_floor_holds_below_a_group_that_has_few_cpus(ring: Ring) -> None:
    """Weights are measured against the CPUs that the group above leaves, not against all."""
    theirs(ring, "svc")
    ring.fake["svc"].values |= {"cpuset.cpus": frozenset({0}), "cpu.weight": 100_000.0}
    db = make.workload("db", profile="ls", min_cpu="800m", handle=make.handle("svc/db"))
    friend = make.workload("friend", profile="burstable", handle=make.handle("svc/friend"))
    for w in (db, friend):
        ring.fake.adopt(w.target, w.handle.path, {"cpu.weight": 1024.0})
    ring.arrive(db, friend)
    ring.tick()
    report = ring.tick(6)
    weights = [float(str(ring.value(w.target, "cpu.weight"))) for w in (db, friend)]
    assert 800 <= 1000 * weights[0] / sum(weights) < 850
    assert report.effective[db.target].cpu_reason == ""


def test_a_floor_among_many_holds_before_the_first_instruction(ring: Ring) -> None:
    """The others of its tier and the groups above weigh as much as it takes, without waiting for a tick."""
    ring.fake.adopt(group("noise"), "noise", {"cpu.weight": 2048.0})
    crowd = [make.workload(f"w{n}", profile="ls", min_cpu="20m", pids=(100 + n,)) for n in range(20)]
    ring.arrive(*crowd)
    ring.tick()
    ring.tick()
    late = make.workload("late", profile="ls", min_cpu="900m", pids=(900,))
    report = ring.arrive(late)
    after = replace(report.snap, settings=ring.fake.settings())
    effects = effective(after)
    assert {t: e.cpu_reason for t, e in effects.items() if e.cpu_reason} == {}
    assert effects[late.target].cpu >= 900


def test_floors_beside_exclusive_cpus_are_judged_by_where_others_run(ring: Ring) -> None:
    """A tier of which a part is pinned weighs elsewhere only by its other part."""
    pinned = make.profile("pinned", "sensitive", cpu=CpuSection(pinning="exclusive"))
    ring.agent.obey(NodeDocument(node="node", profiles=(*builtin(), pinned)))
    ring.arrive(
        make.workload("own", profile="pinned", cpu="1", min_cpu="1", pids=(1,)),
        make.workload("beside", profile="ls", min_cpu="1200m", pids=(2,)),
        make.workload("more", profile="ls", pids=(3,)),
        make.workload("w1", profile="burstable", min_cpu="1200m", pids=(4,)),
    )
    ring.tick()
    effects = ring.tick(6).effective
    assert {t: e.cpu_reason for t, e in effects.items()} == dict.fromkeys(effects, "")


def test_an_arrival_without_a_floor_takes_none_from_an_adopted_one(ring: Ring) -> None:
    """Among many it is decided alone: what weighs more for it waits until everybody is looked at."""
    ring.fake.adopt(group("noise"), "noise", {"cpu.weight": 512.0})
    theirs(ring, "sys")
    ring.fake["sys"].values["cpu.weight"] = 1024.0
    db = make.workload("db", profile="ls", min_cpu="1500m", handle=make.handle("sys/db"))
    ring.fake.adopt(db.target, "sys/db", {"cpu.weight": 1024.0})
    ring.arrive(db, *(make.workload(f"w{n}", profile="ls", min_cpu="20m", pids=(100 + n,)) for n in range(20)))
    ring.tick()
    ring.tick()
    report = ring.arrive(make.workload("late", profile="ls", cpu="3", pids=(900,)))
    assert effective(replace(report.snap, settings=ring.fake.settings()))[db.target].cpu >= 1500


def test_an_arrival_without_a_floor_takes_none_from_the_others_of_its_tier(ring: Ring) -> None:
    """Nor do several within the second until everybody is looked at."""
    db = make.workload("db", profile="ls", min_cpu="2", pids=(1,))
    ring.arrive(db, *(make.workload(f"w{n}", profile="ls", min_cpu="50m", pids=(100 + n,)) for n in range(20)))
    ring.tick()
    ring.tick()
    for n in range(3):
        report = ring.arrive(make.workload(f"late{n}", profile="ls", cpu="4", pids=(900 + n,)))
        judged = effective(replace(report.snap, settings=ring.fake.settings()))
        assert {t: e.cpu_reason for t, e in judged.items() if e.cpu_reason} == {}


def test_a_floor_holds_beside_two_groups_that_have_few_cpus(ring: Ring) -> None:
    """Our own group needs little weight for its floor: it has CPUs that neither of them may use."""
    for name, weight, cpus in (("a", 256.0, {3}), ("b", 1024.0, {0, 1})):
        theirs(ring, name)
        ring.fake[name].values |= {"cpu.weight": weight, "cpuset.cpus": frozenset(cpus)}
    few = [
        make.workload(f"w{name}", profile="ls", min_cpu=floor, handle=make.handle(f"{name}/w"))
        for name, floor in (("a", "600m"), ("b", "200m"))
    ]
    for w in few:
        ring.fake.adopt(w.target, w.handle.path, {"cpu.weight": 1024.0})
    beside = make.workload("beside", profile="ls", min_cpu="1", cpu="2", pids=(7,))
    ring.arrive(*few, beside, make.workload("plain", profile="burstable", pids=(8,)))
    ring.tick()
    effects = ring.tick(6).effective
    assert {t: e.cpu_reason for t, e in effects.items()} == dict.fromkeys(effects, "")


def test_the_floor_of_a_service_that_its_admin_confined_to_one_cpu_holds(ring: Ring) -> None:
    """A weight that gives it 800m of all four CPUs gives it less of the one that it may use."""
    theirs(ring, "system.slice", "user.slice")
    db = make.workload("db", profile="ls", min_cpu="800m", handle=make.handle("db.service"))
    ring.fake.adopt(db.target, "db.service", {"cpuset.cpus": frozenset({0})})
    ring.arrive(db, make.workload("beside", profile="ls", min_cpu="2", pids=(7,)))
    ring.tick()
    effects = ring.tick(31).effective
    assert {t: e.cpu_reason for t, e in effects.items()} == dict.fromkeys(effects, "")
    assert ring.value(db.target, "cpuset.cpus") == {0}


def test_a_floor_that_its_few_cpus_cannot_give_costs_no_other_its_floor(ring: Ring) -> None:
    theirs(ring, "system.slice")
    db = make.workload("db", profile="ls", min_cpu="1", handle=make.handle("db.service"))
    ring.fake.adopt(db.target, "db.service", {"cpuset.cpus": frozenset({0})})
    beside = make.workload("beside", profile="ls", min_cpu="2500m", pids=(7,))
    ring.arrive(db, beside)
    ring.tick()
    effects = ring.tick(31).effective
    assert effects[beside.target].cpu_reason == ""
    assert 900 <= effects[db.target].cpu < 1000


def test_a_floor_that_the_quota_of_its_slice_cannot_give_costs_no_other_its_floor(ring: Ring) -> None:
    """Nor does it take the floor beside it in the slice along, which the quota can give."""
    theirs(ring, "tight", "other")
    ring.fake["tight"].values["cpu.max"] = 20_000.0
    large, small = (
        make.workload(name, profile="ls", min_cpu=floor, handle=make.handle(f"tight/{name}"))
        for name, floor in (("large", "1500m"), ("small", "90m"))
    )
    for w in (large, small):
        ring.fake.adopt(w.target, w.handle.path, {"cpu.weight": 1024.0})
    beside = make.workload("beside", profile="ls", min_cpu="2300m", pids=(7,))
    ring.arrive(large, small, beside)
    ring.tick()
    effects = ring.tick(31).effective
    assert [effects[w.target].cpu_reason for w in (beside, small)] == ["", ""]
    assert effects[large.target].cpu_reason == "cpu.max of group/tight allows 200m"


def test_a_floor_that_its_own_quota_cannot_give_costs_no_other_its_floor(ring: Ring) -> None:
    """Whoever limited the service meant it: it can use no more, so it needs no weight for more."""
    ring.fake.adopt(group("noise"), "noise", {"cpu.weight": 1024.0})
    theirs(ring, "sys")
    both = [
        make.workload(name, profile="ls", min_cpu="1500m", handle=make.handle(f"sys/{name}")) for name in ("db", "gold")
    ]
    for w, allowed in zip(both, (30_000.0, float("inf")), strict=True):
        ring.fake.adopt(w.target, w.handle.path, {"cpu.weight": 1024.0, "cpu.max": allowed})
    ring.arrive(*both)
    ring.tick()
    judged = ring.tick(6).effective
    assert [(round(judged[w.target].cpu), judged[w.target].cpu_reason) for w in both[:1]] == [
        (300, "cpu.max of workload/default/db allows 300m")
    ]
    assert judged[both[1].target].cpu_reason == ""


def test_a_service_that_came_idle_has_its_floor_and_is_idle_again_in_the_end(tmp_path: Path) -> None:
    ring = Ring(tmp_path, "v2")
    ring.fake.enable(ROOT, CONTROLLERS)
    theirs(ring, "other")
    lazy = make.workload("lazy", profile="ls", min_cpu="1500m", handle=make.handle("lazy.service"))
    ring.fake.adopt(lazy.target, "lazy.service", {"cpu.idle": 1.0})
    ring.arrive(lazy)
    ring.tick()
    effects = ring.tick(31).effective[lazy.target]
    assert (effects.cpu >= 1500, effects.cpu_reason) == (True, "")
    weight = ring.value(lazy.target, "cpu.weight")
    assert ring.tick(31).plan.empty
    assert (ring.value(lazy.target, "cpu.idle"), ring.value(lazy.target, "cpu.weight")) == (0.0, weight)
    ring.leave(lazy)
    ring.tick()
    assert ring.fake["lazy.service"].values["cpu.idle"] == 1.0


def test_cpus_of_its_own_are_a_minimum_that_is_upheld_also_beside_strangers(ring: Ring) -> None:
    ring.fake.adopt(group("noise"), "noise", {"cpu.weight": 1024.0})
    pinned = make.profile("pinned", "sensitive", cpu=CpuSection(pinning="exclusive"))
    ring.agent.obey(NodeDocument(node="node", profiles=(*builtin(), pinned)))
    own = make.workload("own", profile="pinned", cpu="1", min_cpu="1", pids=(1,))
    report = ring.arrive(own)
    assert unmet(report, report.snap.workloads[own.target], "") == []
    assert len(frozenset(ring.value(own.target, "cpuset.cpus") or ())) == 1  # type: ignore[arg-type]
