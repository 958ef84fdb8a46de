"""The ring: what it writes, when it stops writing, and what a failing part may not do to the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.adapters.adapter import WorkloadEvent
from j10ce.model.kinds import Condition, Meta, NodeQoS, NodeQoSSpec
from j10ce.model.knob import ROOT, Setting, TargetId, group, workload
from j10ce.model.plan import Applied, Bound, Join, Make, Proposal, Rank, ValueChange
from j10ce.model.quantity import Millicores
from j10ce.model.resource import Resources
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Handle, Part, Workload
from j10ce.policy.document.document import LIMITED, NodeDocument, render
from j10ce.policy.profiles import builtin
from j10ce.testing import build
from tests.agent.whole_ring import Ring

WEB, BE = workload("default", "web"), workload("default", "crunch")


@pytest.fixture(params=["v1", "v2"])
def ring(request: pytest.FixtureRequest, tmp_path: Path) -> Ring:
    return Ring(tmp_path, request.param)


def web(name: str = "web", **fields: object) -> Workload:
    body = {"profile": "ls", "min_cpu": "500m", "min_memory": "256Mi"} | fields
    return build.workload(name, **body)  # type: ignore[arg-type]


def local(w: Workload, *pids: int) -> Workload:
    """As the socket hands it in: no place yet, processes waiting."""
    return replace(w, handle=Handle(), pids=pids)


def test_an_arrival_is_made_written_and_only_then_entered(ring: Ring) -> None:
    report = ring.arrive(local(web(), 4711))
    changes = [c for c, _ in report.outcome.results]
    mine = [c for c in changes if (c.setting.target if isinstance(c, ValueChange) else c.target) == WEB]
    kinds = [type(c) for c in mine]
    assert kinds[0] is Make
    assert kinds[-1] is Join
    assert ValueChange in kinds
    assert not report.outcome.refused()
    assert 4711 in ring.fake["j10ce/sensitive/default_web"].pids


def test_applied_and_run_again_there_is_nothing_left_to_do(ring: Ring) -> None:
    ring.arrive(local(web(), 1), local(build.workload("crunch", profile="be"), 2))
    ring.tick()
    assert ring.tick().plan.empty


def test_an_arrival_does_not_sample_the_others(ring: Ring) -> None:
    ring.tick()
    sampled = ring.agent.observer.sampled  # type: ignore[attr-defined]
    ring.arrive(local(web(), 1))
    assert ring.agent.observer.sampled == sampled  # type: ignore[attr-defined]


def test_unarmed_it_plans_and_writes_nothing(ring: Ring) -> None:
    ring.agent.armed = False
    report = ring.arrive(local(web(), 1))
    assert report.outcome.dry
    assert report.plan.changes
    assert "j10ce" not in ring.fake.cgroups.by_path


def test_a_workload_that_leaves_takes_its_cgroup_along(ring: Ring) -> None:
    one = local(web(), 1)
    ring.arrive(one)
    ring.fake["j10ce/sensitive/default_web"].pids.clear()
    ring.leave(one)
    assert "j10ce/sensitive/default_web" not in ring.fake.cgroups.by_path
    assert ring.agent.resolution is not None
    assert ring.agent.resolution.ledger.promised.cpu == 0


def test_the_end_of_one_best_effort_command_rewrites_nothing_of_the_others(ring: Ring) -> None:
    jobs = [local(build.workload(f"job{n}", profile="be"), n + 1) for n in range(5)]
    ring.arrive(*jobs)
    ring.tick()
    tier = group("j10ce_besteffort")
    assert ring.value(tier, "cpu.idle") == 1.0
    ring.fake["j10ce_besteffort/default_job2"].pids.clear()
    reports = [ring.leave(jobs[2]), ring.tick(), ring.tick()]
    assert [c for r in reports for c, _ in r.outcome.results if isinstance(c, ValueChange)] == []
    assert "j10ce_besteffort/default_job2" not in ring.fake.cgroups.by_path
    assert ring.value(tier, "cpu.idle") == 1.0


def test_an_adopted_workload_gets_its_own_values_back(ring: Ring) -> None:
    target = workload("default", "db")
    ring.fake.adopt(target, "mine", {"cpu.weight": 2048.0})
    db = replace(build.workload("db", profile="be"), handle=Handle(path="mine", made=False))
    ring.arrive(db)
    assert ring.value(target, "cpu.idle") == 1.0
    ring.leave(db)
    assert (ring.value(target, "cpu.idle"), ring.value(target, "cpu.weight")) == (0.0, 2048.0)


def test_an_idle_pod_is_idle_no_more_while_it_is_resized(ring: Ring) -> None:
    """The kernel refuses a weight to an idle group, and a kubelet would ask for ever."""
    target, path = workload("default", "pod"), "kubepods/burstable/pod1"
    ring.fake.enable(ROOT, frozenset({"cpu", "memory", "cpuset"}))
    for above in ("kubepods", "kubepods/burstable"):
        ring.fake.adopt(group(above), above)
        ring.fake.enable(group(above), frozenset({"cpu", "memory", "cpuset"}))
    ring.fake.adopt(target, path, {"cpu.weight": 1024.0})
    pod = replace(build.workload("pod", profile="be"), handle=Handle(path=path, made=False))
    ring.arrive(pod)
    ring.tick()
    weight = Setting(target, "cpu.weight")
    place = ring.fake.places[target]
    assert ring.value(target, "cpu.idle") == 1.0
    assert ring.fake.cgroups.objection("cpu.weight", 2048.0, path) is not None

    ring.agent.change([WorkloadEvent("MODIFIED", replace(pod, resizing=True))], ring.instant())
    ring.tick()
    assert ring.value(target, "cpu.idle") == 0.0
    assert isinstance(ring.fake.write(weight, 2048.0, place), Applied)

    ring.agent.change([WorkloadEvent("MODIFIED", pod)], ring.instant())
    ring.tick()
    assert ring.value(target, "cpu.idle") == 1.0
    ring.leave(pod)
    ring.tick()
    assert (ring.value(target, "cpu.idle"), ring.value(target, "cpu.weight")) == (0.0, 2048.0)


def test_idle_pods_are_capped_while_their_class_weighs_as_much_as_a_protected_one(ring: Ring) -> None:
    """As in the minute after each start of a kubelet; it is seen at the next tick, and no cap is left behind."""
    everything = frozenset({"cpu", "memory", "cpuset"})
    ring.fake.enable(ROOT, everything)
    for above, weight in (("kubepods", 4096.0), ("kubepods/burstable", 1024.0), ("kubepods/besteffort", 10.0)):
        ring.fake.adopt(group(above), above, {"cpu.weight": weight})
        ring.fake.enable(group(above), everything)
    svc = build.workload("svc", profile="ls", handle=build.handle("kubepods/burstable/pod1"))
    hog = build.workload("hog", profile="be", handle=build.handle("kubepods/besteffort/pod2"))
    for w in (svc, hog):
        ring.fake.adopt(w.target, w.handle.path)
    ring.arrive(svc, hog)
    ring.tick()
    assert (ring.value(hog.target, "cpu.idle"), ring.value(hog.target, "cpu.max")) == (1.0, math.inf)
    burstable = group("kubepods/burstable")
    ring.fake.write(Setting(burstable, "cpu.weight"), 10.0, ring.fake.places[burstable])
    ring.tick()
    assert ring.value(hog.target, "cpu.max") == 0.8 * 4 * 100_000, "nobody asks for any, and nothing was read"
    assert ring.value(svc.target, "cpu.max") == math.inf
    assert ring.value(burstable, "cpu.weight") == 10.0, "not ours to write"
    ring.fake.write(Setting(burstable, "cpu.weight"), 1024.0, ring.fake.places[burstable])
    ring.tick()
    assert ring.value(hog.target, "cpu.max") == math.inf


def test_a_hold_keeps_our_hands_off(ring: Ring) -> None:
    ring.arrive(local(build.workload("crunch", profile="burstable"), 1))
    ring.agent.hold([build.hold(BE, "cpu.weight", expires=ring.wall + 100)])
    setting = Setting(BE, "cpu.weight")
    ring.fake.write(setting, 77.0, ring.fake.places[BE])
    held = ring.value(BE, "cpu.weight")
    for _ in range(40):
        ring.tick()
    assert ring.value(BE, "cpu.weight") == held
    ring.tick(200)
    for _ in range(40):
        ring.tick()
    assert ring.value(BE, "cpu.weight") != held


@pytest.mark.parametrize("jump", [-10 * 365 * 86400.0, 3600.0], ids=["ten years back", "an hour ahead"])
def test_a_jump_of_the_wall_clock_changes_no_setting(ring: Ring, jump: float) -> None:
    ring.arrive(local(web(), 1))
    ring.tick()
    before = ring.fake.settings()
    ring.wall += jump
    for _ in range(40):
        ring.tick()
    assert ring.fake.settings() == before


def test_an_expired_promise_ends_by_itself(ring: Ring) -> None:
    promise = build.reservation("floor", labels={"app": "web"}, ttl="10m", cpu="1")
    ring.agent.obey(NodeDocument(node="node", profiles=builtin(), policies=(promise,)))
    ring.wall = build.WALL
    ring.arrive(local(build.workload("web", profile="ls", labels={"app": "web"}), 1))
    entitled = ring.agent.resolution
    assert entitled is not None
    assert entitled.entitlements[WEB].floor.cpu == 1000
    ring.tick(700)
    assert ring.agent.resolution is not None
    assert ring.agent.resolution.entitlements[WEB].floor.cpu == 0


class Faulty:
    """Proposes for everyone, then raises."""

    name = "faulty"

    def propose(self, snap: Snapshot, /) -> Iterable[Proposal]:
        for target in snap.workloads:
            yield Proposal(Setting(target, "cpu.max"), Bound.WANT, 1000.0, self.name, Rank.SAFETY, "no reason")
        raise RuntimeError("broken")


def test_a_raising_controller_changes_nothing_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    plain, broken = Ring(tmp_path / "a"), Ring(tmp_path / "b", extra=[Faulty()])
    for ring in (plain, broken):
        ring.arrive(local(web(), 1))
        ring.tick()
    assert plain.fake.settings() == broken.fake.settings()
    assert "broken" in broken.tick().faults["faulty"]


def test_killed_and_started_again_everything_goes_back(ring: Ring) -> None:
    target = workload("default", "db")
    ring.fake.adopt(target, "mine", {"cpu.weight": 2048.0})
    before = {name: ring.value(target, name) for name in ("cpu.weight", "cpu.idle", "cpu.max")}
    ring.arrive(replace(build.workload("db", profile="be"), handle=Handle(path="mine", made=False)))
    ring.arrive(local(web(), 1))
    ring.fake["j10ce/sensitive/default_web"].pids.clear()
    ring.agent = ring.start()  # nothing was closed: the process is gone
    assert not ring.agent.revert(ring.instant()).refused()
    assert {name: ring.value(target, name) for name in before} == before
    assert "j10ce" not in ring.fake.cgroups.by_path


# ------------------------------------------------------------------ one arrival among many


def crowd(ring: Ring, count: int = 40) -> None:
    profiles = ("ls", "burstable", "be")
    ring.arrive(
        *(
            local(
                build.workload(f"w{n}", profile=profiles[n % 3], cpu="10m", min_cpu="10m" if n % 3 == 0 else 0),
                1000 + n,
            )
            for n in range(count)
        )
    )
    ring.tick()
    ring.tick()


@pytest.mark.parametrize("profile", ["ls", "burstable", "be"])
def test_an_arrival_among_many_gets_what_the_whole_ring_would_give_it(ring: Ring, profile: str) -> None:
    crowd(ring)
    target = workload("default", "late")
    late = build.workload("late", profile=profile, cpu="10m", memory_limit="1Gi", min_memory="64Mi")
    report = ring.arrive(local(late, 5000))
    assert not report.outcome.refused()
    touched = {c.setting.target if isinstance(c, ValueChange) else c.target for c, _ in report.outcome.results}
    assert all(t == target or t.startswith("group/") for t in touched)
    at_once = {s: v for s, v in ring.fake.settings().items() if s.target == target}
    ring.tick()
    later = {s: v for s, v in ring.fake.settings().items() if s.target == target}
    assert {s for s in later if later[s] != at_once.get(s)} <= {Setting(target, "cpu.weight")}


def test_an_arrival_among_many_has_its_memory_floor_through_every_ancestor(tmp_path: Path) -> None:
    ring = Ring(tmp_path, "v2")
    crowd(ring)
    ring.arrive(local(build.workload("late", profile="ls", min_memory="64Mi"), 5000))
    for target in (workload("default", "late"), group("j10ce/sensitive"), group("j10ce")):
        assert float(str(ring.value(TargetId(target), "memory.min"))) >= 64 << 20


def test_what_was_promised_to_a_late_comer_stays_promised(ring: Ring) -> None:
    crowd(ring)
    ring.arrive(local(build.workload("late", profile="ls", min_cpu="500m"), 5000))
    target = workload("default", "late")
    assert ring.agent.resolution is not None
    assert ring.agent.resolution.entitlements[target].floor.cpu == 500
    ring.tick(60)
    assert ring.agent.resolution.entitlements[target].floor.cpu == 500


def test_what_was_promised_before_a_restart_stays_promised_in_a_namespace_at_its_limit(ring: Ring) -> None:
    db = build.reservation("db", cpu="500m")
    full = replace(db, status=replace(db.status, conditions=(Condition(type=LIMITED, status="True"),)))
    ring.agent.document = render(NodeQoS(metadata=Meta(name="node")), policies=[db])
    report = ring.arrive(build.workload("db"))
    restarted = ring.start()
    restarted.document = render(NodeQoS(metadata=Meta(name="node")), policies=[full])
    restarted.promised = tuple(report.resolution.ledger)
    ring.agent = restarted
    late = ring.arrive(build.workload("db"), build.workload("late", since=build.WALL + 1))
    floors = [late.resolution.entitlements[workload("default", name)].floor.cpu for name in ("db", "late")]
    assert floors == [500, 0]


def test_a_promise_that_does_not_fit_is_refused_with_numbers_also_among_many(ring: Ring) -> None:
    crowd(ring)
    report = ring.arrive(local(build.workload("late", profile="ls", min_cpu="64"), 5000))
    notes = report.resolution.entitlements[workload("default", "late")].notes
    assert any(note.kind == "Unprotected" and "64" in note.text for note in notes)


def test_whoever_asks_before_the_next_tick_sees_everyone(ring: Ring) -> None:
    crowd(ring)
    report = ring.arrive(local(build.workload("late", profile="ls"), 5000))
    assert len(report.snap.workloads) == 41
    assert workload("default", "late") in report.snap.groups.by_target
    assert workload("default", "w0") in report.snap.groups.by_target


def test_a_node_disarmed_by_its_owner_is_left_alone(ring: Ring) -> None:
    ring.arrive(local(web(), 1))
    before = ring.fake.settings()
    ring.agent.obey(NodeDocument(node="node", profiles=builtin(), spec=NodeQoSSpec(disarmed=True)))
    report = ring.arrive(local(build.workload("late", profile="be"), 2))
    assert report.outcome.dry
    assert not report.armed
    assert ring.fake.settings() == before


def test_when_someone_is_known_to_have_written_everything_is_looked_at_at_once(ring: Ring) -> None:
    ring.arrive(*(local(build.workload(f"w{n}", profile="burstable"), n + 1) for n in range(30)))
    ring.tick()
    ring.tick()
    ours = ring.fake.settings()
    for n in range(30):
        target = workload("default", f"w{n}")
        ring.fake.write(Setting(target, "cpu.weight"), 500.0, ring.fake.places[target])
    ring.agent.reread()
    ring.tick()
    assert ring.fake.settings() == ours


def test_a_process_that_waited_for_arms_is_put_in_once(ring: Ring) -> None:
    ring.agent.armed = False
    ring.arrive(local(web(), 4711))
    ring.tick()
    ring.agent.armed = True
    joins = [[c for c, _ in ring.tick().outcome.results if isinstance(c, Join)] for _ in range(3)]
    assert [len(each) for each in joins] == [1, 0, 0]


# ------------------------------------------------------------------ whoever makes a pod sets it anew


def protected(ring: Ring, **fields: object) -> Workload:
    """A workload in a cgroup that is not ours, with 256Mi of protected memory where it had none."""
    ring.fake.enable(ROOT, frozenset({"cpu", "memory"}))
    ring.fake.adopt(workload("default", "db"), "mine", {"memory.min": 0.0})
    db = replace(web("db"), handle=Handle(path="mine", made=False), **fields)  # type: ignore[arg-type]
    ring.arrive(db)
    ring.tick()
    assert ring.value(db.target, "memory.min") == 256.0 * 2**20
    ring.fake.cgroups.hold("memory.min", 4096.0, "mine")  # someone else
    return db


def given_back(ring: Ring, db: Workload) -> object:
    assert ring.value(db.target, "memory.min") == 256.0 * 2**20, "ours is on top again"
    assert not ring.agent.revert(ring.instant()).refused()
    return ring.value(db.target, "memory.min")


@pytest.mark.parametrize("ring", ["v2"], indirect=True)
def test_a_resize_is_no_contest_and_its_values_go_back_in_the_end(ring: Ring) -> None:
    db = protected(ring)
    ring.agent.change([WorkloadEvent("MODIFIED", replace(db, requests=Resources(Millicores(200))))], ring.instant())
    report = ring.tick()
    assert report.drifts == ()
    assert given_back(ring, db) == 4096.0


@pytest.mark.parametrize(
    ("parts", "back"),
    [
        pytest.param(
            (Part("main", Handle(path="mine/main", made=False)),), 4096.0, id="of a pod, what its kubelet set"
        ),
        pytest.param((), 0.0, id="else what was there before us"),
    ],
)
@pytest.mark.parametrize("ring", ["v2"], indirect=True)
def test_what_goes_back_after_a_write_that_nobody_reported(ring: Ring, parts: tuple[Part, ...], back: float) -> None:
    db = protected(ring, parts=parts)
    for _ in range(2):
        ring.tick(31.0)
    assert given_back(ring, db) == back
