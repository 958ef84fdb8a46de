from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import msgspec
import pytest
from msgspec.structs import replace

from j10ce.control.cpu.suppression.suppress import CpuSuppress
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import NODE, Setting, TargetId, group
from j10ce.model.parts.strategy import Strategy
from j10ce.model.plan import Bound, Proposal
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Part
from j10ce.testing import build

BE = CpuSection(weight=2, idle=True, suppressible=True)
TIER = "group/j10ce_besteffort"


def machine(
    node: float | None,
    used: Mapping[str, float],
    *,
    lacking: tuple[str, ...] = (),
    adopted: tuple[str, ...] = (),
    **rest: object,
) -> Snapshot:
    workloads = [
        build.workload(name, handle=build.handle(f"other/{name}" if name in adopted else "", made=name not in adopted))
        for name in used
    ]
    given = [build.entitlement(w, tier="besteffort", cpu=BE) for w in workloads]
    readings: dict[tuple[TargetId, str], float] = {(w.target, "cpu.usage"): used[w.name] for w in workloads}
    if node is not None:
        readings[NODE, "cpu.usage"] = node
    return build.snapshot(
        *given,
        workloads=workloads,
        readings=readings,
        lacking=lacking,
        on=build.node(10),
        **rest,  # type: ignore[arg-type]
    )


def suppress(mode: str = "auto", **settings: object) -> CpuSuppress:
    return CpuSuppress(CpuSuppress.Config(mode=mode, **settings))  # type: ignore[arg-type]


def caps(proposals: list[Proposal]) -> dict[str, object]:
    assert all(p.bound is Bound.AT_MOST for p in proposals)
    return {str(p.setting.target): p.value for p in proposals}


def test_where_cpu_idle_works_it_stands_back_and_says_why() -> None:
    (p,) = suppress().propose(machine(9.0, {"job": 4.0}))
    assert (p.setting.target, p.setting.knob, p.value) == (TIER, "cpu.max", math.inf)
    assert p.reason == "cpu.idle yields to everyone else at once, so no cap is needed"


@pytest.mark.parametrize(
    ("mode", "lacking"),
    [pytest.param("auto", ("cpu.idle",), id="no cpu.idle"), pytest.param("quota", (), id="asked for")],
)
def test_quota_mode_caps_the_tier_at_what_the_others_leave(mode: str, lacking: tuple[str, ...]) -> None:
    (p,) = suppress(mode).propose(machine(9.0, {"a": 1.0, "b": 3.0}, lacking=lacking))
    assert (p.setting.target, p.value) == (TIER, 300_000)  # 0.8 · 10 − (9 − 4) CPUs
    assert p.reason == "others use 5.00 of 10 CPUs; 3.00 left for best-effort"


def test_foreign_and_system_use_counts_as_the_others() -> None:
    assert caps(list(suppress("quota").propose(machine(6.0, {"job": 0.0})))) == {TIER: 200_000}


def test_in_a_container_with_a_quota_best_effort_gets_what_is_left_of_that() -> None:
    snap = machine(3.0, {"job": 1.0})
    (p,) = suppress("quota").propose(replace(snap, node=replace(snap.node, cpu_quota=4500.0)))
    assert p.value == 160_000  # 0.8 · 4.5 − (3 − 1) CPUs
    assert p.reason == "others use 2.00 of 4.5 CPUs; 1.60 left for best-effort"


def test_cpuset_mode_takes_as_many_cpus_as_are_left() -> None:
    (p,) = suppress("cpuset").propose(machine(9.5, {"job": 4.0}))
    assert (p.setting.knob, p.value) == ("cpuset.cpus", frozenset({0, 1, 2}))  # 2.5 CPUs, rounded up


def by_strategy(snap: Snapshot, **said: object) -> list[Proposal]:
    """What a controller that is configured to nothing makes of a strategy."""
    spoken = build.strategy("pool", {"suppress": said}).spec.suppress
    return list(suppress().propose(replace(snap, strategy=Strategy(suppress=spoken))))


@pytest.mark.parametrize(
    ("said", "knob", "value"),
    [
        pytest.param({"thresholdPercent": 65}, "cpu.max", 150_000, id="a threshold counts even where cpu.idle works"),
        pytest.param({"mode": "auto"}, "cpu.max", math.inf, id="auto without one stands back"),
        pytest.param({"mode": "quota"}, "cpu.max", 300_000, id="quota, by the controller's own ceiling"),
        pytest.param({"mode": "cpuset", "thresholdPercent": 65}, "cpuset.cpus", {0, 1}, id="1.5 CPUs as two"),
        pytest.param({"thresholdPercent": 10, "minPercent": 20}, "cpu.max", 200_000, id="best effort keeps its least"),
        pytest.param({"thresholdPercent": 10, "minPercent": 0}, "cpu.max", 1_000, id="which may be next to nothing"),
        pytest.param({"mode": "buffer", "bufferCpus": "2"}, "cpuset.cpus", {0, 1, 2}, id="two stay idle"),
        pytest.param({"mode": "buffer", "bufferCpus": "1500m"}, "cpuset.cpus", {0, 1, 2}, id="no part of one is lent"),
    ],
)
def test_a_strategy_is_obeyed(said: dict[str, object], knob: str, value: object) -> None:
    (p,) = by_strategy(machine(9.0, {"job": 4.0}), **said)
    assert (p.setting.knob, p.value) == (knob, value)


def test_a_buffer_is_kept_by_quota_where_there_are_no_cpusets() -> None:
    (p,) = by_strategy(machine(9.0, {"job": 4.0}, lacking=("cpuset.cpus",)), mode="buffer", bufferCpus="2")
    assert (p.setting.knob, p.value) == ("cpu.max", 300_000)


def test_where_a_buffer_leaves_less_than_one_cpu_a_quota_keeps_within_it() -> None:
    wishes = by_strategy(machine(11.5, {"job": 4.0}), mode="buffer", bufferCpus="2")
    assert {p.setting.knob: p.value for p in wishes} == {"cpuset.cpus": {0}, "cpu.max": 50_000}


def test_cpus_of_its_own_are_never_lent_to_best_effort() -> None:
    lse = build.workload("lse", cpu="2")
    alone = build.entitlement(lse, tier="exclusive", floor_cpu="2", cpu=CpuSection(pinning="exclusive"))
    job = build.workload("job")
    snap = build.snapshot(
        alone, build.entitlement(job, tier="besteffort", cpu=BE), workloads=[lse, job], on=build.node(4),
        readings={(NODE, "cpu.usage"): 0.0},
    )  # fmt: skip
    (p,) = by_strategy(snap, mode="cpuset", thresholdPercent=100)
    assert p.value == {0, 1}


def test_cpus_move_only_as_far_as_their_number_does() -> None:
    controller = suppress("cpuset")
    sets = []
    for n, use in enumerate([4.0, 8.0, 8.0, 9.0, *[4.0] * 400]):
        (p,) = controller.propose(machine(use, {"job": 0.0}, now=1000.0 + n))
        sets.append(p.value)
    assert [len(s) for s in sets[:4]] == [4, 1, 1, 1]  # type: ignore[arg-type]
    assert len(sets[-1]) == 4  # type: ignore[arg-type]
    for before, after in pairwise(sets):
        assert before <= after or after <= before  # type: ignore[operator]


def test_on_v1_a_pod_whose_containers_have_limits_is_confined_to_cpus_all_the_same() -> None:
    part = Part("main", build.handle("kubepods/besteffort/pod2/main"), limits=build.ceiling("1"))
    snap = kubelet_tree(2.0, parts=(part,), via="cgroup1")
    (p,) = by_strategy(snap, mode="cpuset", thresholdPercent=60)
    assert (p.setting.knob, len(p.value)) == ("cpuset.cpus", 4)  # type: ignore[arg-type]


def test_on_paper_best_effort_has_what_the_others_do_not_ask_for() -> None:
    web, job = build.workload("web", cpu="2"), build.workload("job")
    snap = build.snapshot(
        build.entitlement(web, tier="sensitive"), build.entitlement(job, tier="besteffort", cpu=BE),
        workloads=[web, job], on=build.node(10),
    )  # fmt: skip
    (p,) = by_strategy(snap, thresholdPercent=65)
    assert (p.value, p.reason) == (450_000, "nothing was read yet; others ask for 2.00 of 10 CPUs; 4.50 left")


def test_after_a_restart_the_cap_in_force_stays_until_there_is_a_reading() -> None:
    snap = machine(None, {"job": 4.0}, values={Setting(TargetId(TIER), "cpu.max"): 123_000.0})
    ours = replace(snap, originals={Setting(TargetId(TIER), "cpu.max"): math.inf})
    (p,) = by_strategy(ours, thresholdPercent=65)
    assert (p.value, p.reason) == (123_000, "no reading of the node's CPU use; stays at 1.23 CPUs")


def test_adopted_ones_and_the_tier_share_the_room() -> None:
    snap = machine(9.0, {"a": 2.0, "b": 1.0}, adopted=("b",))
    # 2 CPUs are left, 3 in use: both want one at least, so each has one.
    assert caps(list(suppress("quota").propose(snap))) == {TIER: 100_000, "workload/default/b": 100_000}


def test_everyone_in_the_tier_has_as_good_a_claim_as_an_adopted_one() -> None:
    snap = machine(9.0, {"a": 2.0, "b": 2.0, "c": 2.0, "d": 2.0}, adopted=("d",))
    assert caps(list(suppress("quota").propose(snap))) == {TIER: 525_000, "workload/default/d": 175_000}


def test_a_floor_inside_the_tier_is_not_capped_away() -> None:
    w = build.workload("job")
    e = build.entitlement(w, tier="besteffort", cpu=BE, floor_cpu="2")
    snap = build.snapshot(e, workloads=[w], on=build.node(10), readings={(NODE, "cpu.usage"): 10.0})
    assert caps(list(suppress("auto").propose(snap))) == {TIER: 200_000}


def test_without_a_reading_the_last_cap_stays_and_says_so() -> None:
    controller = suppress("quota")
    assert caps(list(controller.propose(machine(9.0, {"job": 4.0})))) == {TIER: 300_000}
    (p,) = controller.propose(machine(None, {"job": 4.0}, now=1001.0))
    assert p.value == 300_000
    assert "no reading" in p.reason


def test_nobody_to_suppress_nothing_to_say() -> None:
    w = build.workload("web")
    assert list(suppress("quota").propose(build.snapshot(build.entitlement(w), workloads=[w]))) == []


@pytest.mark.parametrize(("mode", "knob"), [("quota", "cpu.max"), ("cpuset", "cpuset.cpus")])
def test_a_machine_without_the_knob_gets_no_wish(mode: str, knob: str) -> None:
    assert list(suppress(mode).propose(machine(9.0, {"job": 4.0}, lacking=(knob,)))) == []


def test_those_who_are_suppressed_are_found_again_when_the_epoch_moves() -> None:
    controller = suppress("quota")
    assert caps(list(controller.propose(machine(5.0, {"a": 1.0})))).keys() == {TIER}
    later = msgspec.structs.replace(machine(5.0, {"a": 1.0}, adopted=("a",)), epoch=2, now=1001.0)
    assert caps(list(controller.propose(later))).keys() == {"workload/default/a"}


class Hungry:
    """Best-effort work that takes what it is allowed of what it wants, second by second."""

    def __init__(self, *adopted: str) -> None:
        self.controller = suppress("quota")
        self.names, self.now = adopted, 1000.0
        self.quota = dict.fromkeys(adopted, math.inf)
        self.epoch = 1

    def second(self, wanted: Mapping[str, float], *, unread: tuple[str, ...] = ()) -> None:
        used = {n: min(wanted[n], self.quota.get(n, math.inf) / 100_000) for n in wanted}
        snap = machine(2.0 + math.fsum(used.values()), used, adopted=tuple(wanted), now=self.now, epoch=self.epoch)
        for name in unread:
            del snap.readings.samples[TargetId(f"workload/default/{name}"), "cpu.usage"]  # type: ignore[attr-defined]
        proposals = caps(list(self.controller.propose(snap)))
        self.quota = {n: proposals[f"workload/default/{n}"] for n in wanted}  # type: ignore[misc]
        self.now += 1

    def run(self, seconds: int, **wanted: float) -> None:
        for _ in range(seconds):
            self.second(wanted)


def test_whoever_slept_first_has_as_much_as_the_other_once_it_wakes() -> None:
    both = Hungry("early", "late")
    both.run(120, early=10.0, late=0.0)
    assert both.quota["early"] > 5 * both.quota["late"]
    both.run(5, early=10.0, late=10.0)
    assert both.quota["early"] == pytest.approx(both.quota["late"])
    assert sum(both.quota.values()) == pytest.approx(600_000)


def test_one_who_wants_less_than_its_share_leaves_the_rest_and_keeps_what_it_wants() -> None:
    both = Hungry("modest", "greedy")
    both.run(60, modest=1.0, greedy=10.0)
    assert 100_000 < both.quota["modest"] < 150_000
    assert both.quota["greedy"] == pytest.approx(600_000 - both.quota["modest"])


def test_a_newcomer_without_a_reading_has_its_share_at_once() -> None:
    both = Hungry("old")
    both.run(60, old=10.0)
    both.epoch = 2
    both.second({"old": 10.0, "new": 10.0}, unread=("new",))
    assert both.quota["new"] >= both.quota["old"]
    both.run(60, old=10.0, new=10.0)
    assert both.quota["new"] == pytest.approx(both.quota["old"])


def test_noise_moves_no_cap() -> None:
    both = Hungry("a", "b")
    both.run(60, a=1.0, b=10.0)
    settled = dict(both.quota)
    for n in range(60):
        both.run(1, a=1.0 + (n % 3 - 1) * 0.08, b=10.0)
        assert both.quota == settled


BURSTABLE, BESTEFFORT = group("kubepods/burstable"), group("kubepods/besteffort")
HOG, SVC = TargetId("workload/default/hog"), TargetId("workload/default/svc")


def kubelet_tree(
    burstable: float,
    besteffort: float = 2.0,
    *,
    svc_shares: float = 2.0,
    parts: tuple[Part, ...] = (),
    via: str = "cgroup2",
    now: float = 0.0,
) -> Snapshot:
    """A protected pod in one class, an idle one in the other; 2 of 10 CPUs are in use by others than the idle one."""
    svc = build.workload("svc", handle=build.handle("kubepods/burstable/pod1"))
    hog = build.workload("hog", handle=build.handle("kubepods/besteffort/pod2"), parts=parts)
    shares = {BURSTABLE: burstable, BESTEFFORT: besteffort, SVC: svc_shares}
    snap = build.snapshot(
        build.entitlement(svc, tier="sensitive"),
        build.entitlement(hog, tier="besteffort", cpu=BE),
        workloads=[svc, hog],
        values={Setting(target, "cpu.weight"): n for target, n in shares.items()},
        readings={(NODE, "cpu.usage"): 6.0, (HOG, "cpu.usage"): 4.0},
        on=build.node(10),
        now=now,
    )
    return msgspec.structs.replace(snap, support=build.support(via=via))


def test_in_a_class_that_weighs_as_much_as_a_protected_one_idle_work_is_capped() -> None:
    (p,) = suppress().propose(kubelet_tree(burstable=2.0))
    assert (p.setting, p.value) == (Setting(HOG, "cpu.max"), 600_000)  # 0.8 · 10 − 2 CPUs
    assert p.reason.endswith(
        "idle among its siblings, but group/kubepods/besteffort weighs 2 beside group/kubepods/burstable with 2"
    )


def test_until_a_kubelet_has_weighed_its_classes_best_effort_gets_as_little_as_can_be() -> None:
    (p,) = suppress().propose(kubelet_tree(burstable=2.0, svc_shares=1228.0))
    assert (p.setting, p.value) == (Setting(HOG, "cpu.max"), 1000)
    assert p.reason.startswith("as little as can be until that group is weighed; idle among its siblings, but group/")


def test_a_class_that_stays_light_starves_nobody_for_longer_than_two_minutes() -> None:
    controller = suppress()
    quotas = [
        p.value
        for now in (0.0, 119.0, 120.0, 600.0)
        for p in controller.propose(kubelet_tree(burstable=2.0, svc_shares=1228.0, now=now))
    ]
    assert quotas == [1000, 1000, 600_000, 600_000]
    list(controller.propose(kubelet_tree(burstable=1228.0, svc_shares=1228.0, now=601.0)))
    (p,) = controller.propose(kubelet_tree(burstable=2.0, svc_shares=1228.0, now=602.0))
    assert p.value == 1000  # the kubelet has started again


def test_it_is_let_go_as_soon_as_the_weights_are_right() -> None:
    controller = suppress()
    list(controller.propose(kubelet_tree(burstable=2.0)))
    (p,) = controller.propose(kubelet_tree(burstable=1228.0))  # no epoch: only a weight has moved
    assert (p.value, p.reason) == (math.inf, "idle, and in light groups, so no cap is needed")


def test_where_nobody_is_protected_nobody_is_capped() -> None:
    snap = kubelet_tree(burstable=2.0)
    nobody = {t: msgspec.structs.replace(e, chosen=t == HOG) for t, e in snap.entitlements.items()}
    (p,) = suppress().propose(msgspec.structs.replace(snap, entitlements=nobody))
    assert p.value == math.inf


@pytest.mark.parametrize(("via", "capped"), [("cgroup1", False), ("cgroup2", True)])
def test_a_pod_whose_containers_have_limits_is_not_capped_on_v1(via: str, capped: bool) -> None:
    """There a container could not be started inside a smaller quota."""
    part = Part("main", build.handle("kubepods/besteffort/pod2/main"), limits=build.ceiling("1"))
    assert bool(list(suppress().propose(kubelet_tree(2.0, parts=(part,), via=via)))) is capped
