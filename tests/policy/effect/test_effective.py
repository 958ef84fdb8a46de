"""Effective protection against numbers worked out by hand from the kernel's rules (mm/page_counter.c, sched/fair.c)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from j10ce.model import knob
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import Setting, TargetId, Value
from j10ce.model.snapshot import Foreign, Group, Snapshot
from j10ce.model.workload import Part, Workload
from j10ce.policy.effect.effective import Effective, effective
from j10ce.policy.effect.memory_share import effective_protection
from j10ce.testing.build import entitlement, group, handle, node, snapshot, tree, workload

GI = 1 << 30
TOP, TIER = knob.group("j10ce"), knob.group("j10ce/standard")
A, B = (workload(n) for n in "ab")


@pytest.mark.parametrize(
    ("case", "protection"),
    [
        pytest.param((50, 200, 100, 300, 150, False), 50, id="use below the setting is all that is protected"),
        pytest.param((150, 200, 100, 300, 150, False), 100, id="the setting is the most"),
        pytest.param((100, 400, 100, 150, 300, False), 50, id="an overcommitted parent is shared by use"),
        pytest.param((100, 400, 100, 100, 300, False), 33, id="integer division rounds down"),
        pytest.param((100, 400, 100, 0, 300, False), 0, id="a parent without protection annuls"),
        pytest.param((150, 400, 50, 200, 100, False), 50, id="what nobody claims is lost without recursion"),
        pytest.param((150, 400, 50, 200, 100, True), 83, id="recursion shares it by unprotected use: 50 + 100·100/300"),
        pytest.param(
            (150, 100, 50, 200, 100, True), 50, id="no recursion when the parent uses no more than is claimed"
        ),
        pytest.param((50, 400, 50, 200, 100, True), 50, id="no share for who uses no more than it claims"),
    ],
)
def test_the_kernels_rule(case: tuple[int, int, int, int, int, bool], protection: int) -> None:
    assert effective_protection(*case) == protection


def scene(
    values: Mapping[tuple[TargetId, str], Value],
    *,
    floor_a: Mapping[str, str] | None = None,
    used: Mapping[TargetId, float] | None = None,
    foreign: Mapping[str, list[Foreign]] | None = None,
    recursive: bool = False,
    lacking: tuple[str, ...] = (),
    ws: tuple[Workload, ...] = (A, B),
) -> Snapshot:
    """Workloads a and b in tier standard of a 4-CPU, 8 GiB machine."""
    given = {e.target: e for e in (entitlement(A, **(floor_a or {})), *(entitlement(w) for w in ws[1:]))}  # type: ignore[arg-type]
    current = used or {}
    extra = [
        group(
            path, owned=path != "", foreign=(foreign or {}).get(path, []), current=int(current.get(knob.group(path), 0))
        )
        for path in ("", "j10ce", "j10ce/standard")
    ]
    groups = tree(ws, given, groups=extra, current=current)
    settings = {Setting(t, k): v for (t, k), v in values.items()}
    return snapshot(
        *given.values(),
        workloads=ws,
        on=node(recursive_protection=recursive),
        groups=groups,
        values=settings,
        lacking=lacking,
    )


def of_a(snap: Snapshot) -> Effective:
    return effective(snap)[A.target]


class TestMemory:
    USED = {TOP: 4.0 * GI, TIER: 4.0 * GI, A.target: 2.0 * GI, B.target: 2.0 * GI}  # noqa: RUF012

    def test_a_covered_floor_holds(self) -> None:
        values = {(t, "memory.min"): 1.0 * GI for t in (TOP, TIER, A.target)}
        e = of_a(scene(values, floor_a={"floor_memory": "1Gi"}, used=self.USED))
        assert (e.memory, e.memory_min, e.memory_low, e.memory_reason) == (GI, GI, 0, "")

    def test_a_floor_that_an_ancestor_annuls_names_it(self) -> None:
        values = {(TOP, "memory.min"): 1.0 * GI, (A.target, "memory.min"): 1.0 * GI}
        e = of_a(scene(values, floor_a={"floor_memory": "1Gi"}, used=self.USED))
        assert (e.memory, e.memory_min) == (0, 0)
        assert e.memory_reason == "memory.min of group/j10ce/standard is 0"

    def test_a_floor_that_was_never_set_says_so(self) -> None:
        e = of_a(scene({}, floor_a={"floor_memory": "1Gi"}, used=self.USED))
        assert e.memory_reason == "memory.min of group/j10ce is 0"

    def test_siblings_that_claim_more_than_the_parent_has_share_it(self) -> None:
        values = {(t, "memory.min"): 1.0 * GI for t in (TOP, TIER, A.target)} | {(B.target, "memory.min"): 3.0 * GI}
        e = of_a(scene(values, floor_a={"floor_memory": "1Gi"}, used=self.USED))
        assert e.memory_min == GI // 3 // 4096 * 4096  # b uses 2 of its 3: 1·1/(1+2)
        assert e.memory == GI // 4  # b uses all of its 3
        assert e.memory_reason == "group/j10ce/standard has 1Gi to protect and 4Gi are claimed inside"

    def test_a_foreign_sibling_takes_its_share_too(self) -> None:
        values = {(t, "memory.low"): 1.0 * GI for t in (TOP, TIER, A.target)}
        foreign = {"j10ce": [Foreign("other", 1024, memory_low=1.0 * GI, memory_current=1.0 * GI)]}
        e = of_a(scene(values, floor_a={"floor_memory": "1Gi"}, used=self.USED, foreign=foreign))
        assert (e.memory_low, e.memory) == (GI // 2, GI // 2)
        assert e.memory_reason == "group/j10ce has 1Gi to protect and 2Gi are claimed inside"

    def test_an_unused_floor_holds_though_nothing_is_protected_yet(self) -> None:
        values = {(t, "memory.min"): 1.0 * GI for t in (TOP, TIER, A.target)}
        e = of_a(scene(values, floor_a={"floor_memory": "1Gi"}))
        assert (e.memory_min, e.memory, e.holds) == (0, GI, True)

    def test_recursive_protection_reaches_who_claims_nothing(self) -> None:
        values = {(t, "memory.min"): 2.0 * GI for t in (TOP, TIER)}
        assert of_a(scene(values, used=self.USED)).memory_min == 0
        assert of_a(scene(values, used=self.USED, recursive=True)).memory_min == GI

    def test_a_limit_below_the_floor_is_named(self) -> None:
        values = {(t, "memory.min"): 1.0 * GI for t in (TOP, TIER, A.target)} | {(TOP, "memory.max"): 0.5 * GI}
        e = of_a(scene(values, floor_a={"floor_memory": "1Gi"}, used=self.USED))
        assert (e.memory, e.memory_reason) == (GI // 2, "memory.max of group/j10ce is 512Mi")

    def test_a_limit_below_what_is_promised_to_all_is_named_with_both_numbers(self) -> None:
        values: dict[tuple[TargetId, str], Value] = {(t, "memory.min"): 4.0 * GI for t in (TOP, TIER)}
        values |= {
            (A.target, "memory.min"): 1.0 * GI,
            (B.target, "memory.min"): 3.0 * GI,
            (TOP, "memory.max"): 2.0 * GI,
        }
        e = of_a(scene(values, floor_a={"floor_memory": "1Gi"}, used=self.USED))
        assert e.memory == GI / 2
        assert e.memory_reason == "memory.max of group/j10ce is 2Gi, and 4Gi are protected inside"

    def test_a_limit_that_all_fit_into_is_none(self) -> None:
        values: dict[tuple[TargetId, str], Value] = {(t, "memory.min"): 1.0 * GI for t in (TOP, TIER, A.target)}
        e = of_a(scene(values | {(TOP, "memory.max"): 1.5 * GI}, floor_a={"floor_memory": "1Gi"}, used=self.USED))
        assert e.holds

    def test_pages_from_before_a_group_counted_apart_are_not_protected(self) -> None:
        """The group above has 6 GiB charged, those inside 4: the rest is its own, and no floor inside it counts."""
        values = {(t, "memory.min"): 3.0 * GI for t in (TOP, TIER, A.target)}
        snap = scene(values, floor_a={"floor_memory": "3Gi"}, used=self.USED | {TOP: 6.0 * GI})
        assert of_a(snap).holds
        e = effective(snap, counted_late={TOP})[A.target]
        assert (e.memory, e.memory_now) == (GI, 2 * GI)
        assert (
            e.memory_reason == "2Gi are charged to group/j10ce itself, from before memory was counted apart inside it"
        )

    @pytest.mark.parametrize("target", [A.target, TIER], ids=["its own", "above it"])
    def test_a_floor_whose_setting_cannot_be_read_is_not_said_to_hold(self, target: TargetId) -> None:
        values = {(t, "memory.min"): 1.0 * GI for t in (TOP, TIER, A.target)}
        snap = scene(values, floor_a={"floor_memory": "1Gi"}, used=self.USED, recursive=True)
        read = {s: v for s, v in snap.settings.items() if s != Setting(target, "memory.min")}
        e = of_a(replace(snap, settings=read))
        assert (e.memory, e.memory_reason) == (0, f"memory.min of {target} cannot be read")

    def test_what_is_protected_now_is_no_more_than_what_is_in_use(self) -> None:
        values = {(t, "memory.min"): 3.0 * GI for t in (TOP, TIER, A.target)}
        e = of_a(scene(values, floor_a={"floor_memory": "3Gi"}, used=self.USED))
        assert (e.memory_used, e.memory_now, e.holds) == (2 * GI, 2 * GI, True)

    def test_memory_high_takes_away_as_well(self) -> None:
        values = {(t, "memory.min"): 1.0 * GI for t in (TOP, TIER, A.target)} | {(A.target, "memory.high"): 0.5 * GI}
        e = of_a(scene(values, floor_a={"floor_memory": "1Gi"}, used=self.USED))
        assert e.memory_reason == "memory.high of workload/default/a is 512Mi"

    def test_less_than_a_page_is_rounding_not_a_broken_promise(self) -> None:
        values = {(t, "memory.min"): 1.0 * GI for t in (TOP, TIER, A.target)}
        assert of_a(scene(values, floor_a={"floor_memory": str(GI + 4095)}, used=self.USED)).holds
        assert not of_a(scene(values, floor_a={"floor_memory": str(GI + 4096)}, used=self.USED)).holds

    def test_low_protects_where_min_does_not_reach(self) -> None:
        values: dict[tuple[TargetId, str], Value] = {(t, "memory.min"): 0.9 * GI for t in (TOP, TIER, A.target)}
        values |= {(t, "memory.low"): 1.0 * GI for t in (TOP, TIER, A.target)}
        assert of_a(scene(values, floor_a={"floor_memory": "1Gi"}, used=self.USED)).holds

    def test_a_machine_without_memory_min_says_what_it_needs(self) -> None:
        e = of_a(scene({}, floor_a={"floor_memory": "1Gi"}, lacking=("memory.min",)))
        assert e.memory_reason == "memory.min is not enforceable here: needs another kernel"


class TestCpu:
    def test_weights_divide_level_by_level(self) -> None:
        e = of_a(scene({(A.target, "cpu.weight"): 3072.0}))
        assert e.cpu == 3000

    def test_foreign_siblings_count_at_their_weight(self) -> None:
        foreign = {"": [Foreign("system.slice", 1024), Foreign("tasks", 2048)]}
        assert of_a(scene({}, foreign=foreign)).cpu == 500  # a quarter of 4 CPUs, halved with b

    def test_an_annulled_floor_names_the_level(self) -> None:
        foreign = {"": [Foreign("system.slice", 3072)]}
        e = of_a(scene({}, floor_a={"floor_cpu": "1500m"}, foreign=foreign))
        assert e.cpu_reason == "group/j10ce has 1024 of 4096 shares: 1000m of 4000m"
        inner = of_a(scene({}, floor_a={"floor_cpu": "2500m"}))
        assert inner.cpu_reason == "workload/default/a has 1024 of 2048 shares: 2000m of 4000m"

    def test_an_idle_sibling_weighs_next_to_nothing(self) -> None:
        e = of_a(scene({(B.target, "cpu.idle"): 1.0}))
        assert e.cpu == pytest.approx(4000 * 1024 / 1027)

    def test_an_idle_ancestor_annuls(self) -> None:
        foreign = {"": [Foreign("system.slice", 1024)]}
        e = of_a(scene({(TOP, "cpu.idle"): 1.0}, floor_a={"floor_cpu": "500m"}, foreign=foreign))
        assert e.cpu_reason == "group/j10ce has 3 of 1027 shares, cpu.idle is set: 12m of 4000m"

    def test_a_quota_cuts(self) -> None:
        e = of_a(scene({(TIER, "cpu.max"): 100_000.0}, floor_a={"floor_cpu": "1500m"}))
        assert (e.cpu, e.cpu_reason) == (500, "cpu.max of group/j10ce/standard allows 1000m")

    def test_own_cpus_are_not_shared(self) -> None:
        values: dict[tuple[TargetId, str], Value] = {
            (A.target, "cpuset.cpus"): frozenset({2, 3}),
            (B.target, "cpuset.cpus"): frozenset({0, 1}),
        }
        assert of_a(scene(values, floor_a={"floor_cpu": "2"})).cpu == 2000

    def test_cpus_that_others_keep_off_count_in_full(self) -> None:
        # b runs on CPUs 0-1 with density 512, a everywhere with 256: a third of two CPUs, and two whole ones.
        e = of_a(scene({(B.target, "cpuset.cpus"): frozenset({0, 1})}))
        assert e.cpu == pytest.approx(2000 / 3 + 2000)

    def test_a_cpuset_outside_the_parents_falls_back_to_it(self) -> None:
        values = {(TIER, "cpuset.cpus"): frozenset({0, 1}), (A.target, "cpuset.cpus"): frozenset({3})}
        assert of_a(scene(values)).cpu == 1000  # two CPUs, halved with b

    def test_too_few_cpus_are_named(self) -> None:
        e = of_a(scene({(TIER, "cpuset.cpus"): frozenset({0})}, floor_a={"floor_cpu": "1500m"}))
        assert e.cpu_reason == "cpuset.cpus of group/j10ce/standard has 1 CPUs"

    def test_half_a_millicore_is_rounding_not_a_broken_promise(self) -> None:
        e = of_a(scene({(A.target, "cpu.weight"): 1023.9}, floor_a={"floor_cpu": "2"}))
        assert (e.cpu, e.cpu_reason) == (2000, "")

    def test_a_machine_without_the_cpu_controller_says_so(self) -> None:
        e = of_a(scene({}, floor_a={"floor_cpu": "3"}, lacking=("cpu.weight",)))
        assert e.cpu_reason.startswith("cpu.weight is not enforceable here")


def test_limits_of_containers_below_the_floor_of_their_pod_are_named() -> None:
    """The pod's own limits give way to its floor; those of its containers are the kubelet's, and stay."""
    parts = tuple(Part(name, handle(f"pods/pod1/{name}")) for name in ("web", "log"))
    pod = workload("pod", handle=handle("pods/pod1"), parts=parts)
    containers = {knob.part("default", "pod", p.name): p.handle.path for p in parts}
    inside = [Group(target, pod.target, path, owned=False) for target, path in containers.items()]
    values: dict[Setting, Value] = {Setting(t, "memory.min"): 1.0 * GI for t in (knob.group("pods"), pod.target)}
    values |= {Setting(t, "memory.min"): GI / 2 for t in containers}
    limits: dict[Setting, Value] = {Setting(t, "cpu.max"): 15_000.0 for t in containers}
    limits |= {Setting(t, "memory.max"): GI / 4 for t in containers}

    def judge(limits: Mapping[Setting, Value]) -> Effective:
        promised = entitlement(pod, floor_cpu="1", floor_memory="1Gi")
        groups = tree([pod], {pod.target: promised}, groups=inside)
        return effective(snapshot(promised, workloads=[pod], groups=groups, values={**values, **limits}))[pod.target]

    judged = judge(limits)
    assert (judged.cpu, judged.cpu_reason) == (300, "cpu.max of its containers allows 300m")
    assert (judged.memory, judged.memory_reason) == (GI / 2, "memory.max of its containers is 512Mi")
    assert judge(dict([*limits.items()][::2])).holds, "the other container may use the rest"


@pytest.mark.parametrize(
    ("used", "inside", "recursive", "kept"),
    [
        pytest.param(GI, [], False, GI, id="all in the service itself"),
        pytest.param(GI, [Foreign("worker", 1024, memory_current=0.75 * GI)], False, GI / 4, id="in a worker's cgroup"),
        pytest.param(GI, [Foreign("worker", 1024, 0.75 * GI, 0.0, 0.75 * GI)], False, GI, id="that protects itself"),
        pytest.param(GI, [Foreign("worker", 1024, memory_current=0.75 * GI)], True, GI, id="with memory_recursiveprot"),
        pytest.param(3 * GI, [Foreign("worker", 1024, memory_current=2.0 * GI)], False, GI, id="enough outside of it"),
    ],
)
def test_memory_in_cgroups_inside_a_service_is_protected_by_their_own_settings_alone(
    used: float, inside: list[Foreign], recursive: bool, kept: float
) -> None:
    db = workload("db", handle=handle("db.service"))
    promised = entitlement(db, floor_memory="1Gi")
    there = Group(db.target, knob.ROOT, "db.service", owned=False, foreign=tuple(inside), memory_current=used)
    groups = tree([db], {db.target: promised}, groups=[there])
    values: dict[Setting, Value] = {Setting(db.target, "memory.min"): 1.0 * GI}
    on = node(recursive_protection=recursive)
    judged = effective(snapshot(promised, workloads=[db], groups=groups, values=values, on=on))[db.target]
    assert (judged.memory, judged.memory_now) == (kept, kept)
    assert judged.memory_reason == (
        ""
        if kept == GI
        else "768Mi are in cgroups inside workload/default/db, beyond their own memory.min; "
        "cgroup2 is mounted without memory_recursiveprot"
    )


def test_an_adopted_workload_is_judged_where_it_is() -> None:
    pod = workload("pod", handle=handle("kubepods/burstable/pod1"))
    values: dict[Setting, Value] = {Setting(pod.target, "memory.min"): 1.0 * GI}
    snap = snapshot(entitlement(pod, floor_memory="1Gi"), workloads=[pod], values=values)
    assert effective(snap)[pod.target].memory_reason == "memory.min of group/kubepods is 0"


def test_what_uses_nothing_right_below_the_root_has_nothing_protected_yet() -> None:
    service = workload("db", handle=handle("db.service"))
    values: dict[Setting, Value] = {Setting(service.target, "memory.min"): 1.0 * GI}
    e = effective(snapshot(entitlement(service, floor_memory="1Gi"), workloads=[service], values=values))
    assert (e[service.target].memory_min, e[service.target].memory, e[service.target].holds) == (0, GI, True)


def test_a_workload_without_a_place_is_left_out() -> None:
    assert effective(snapshot(workloads=[A], groups=tree([B], {}))) == {}


def test_no_promise_no_complaint() -> None:
    e = of_a(scene({(TOP, "memory.max"): math.inf}))
    assert e.holds


def test_a_floor_beside_exclusive_cpus_is_not_called_broken() -> None:
    """The exclusive one's tasks weigh on its own two CPUs alone: the other has all of the two that are left."""
    db, web = workload("db"), workload("web")
    whole = entitlement(db, tier="exclusive", floor_cpu="2", cpu=CpuSection(pinning="exclusive"))
    floor = entitlement(web, tier="sensitive", floor_cpu="1500m")
    heavy = {TargetId("group/j10ce/exclusive"): 4096.0, TargetId("group/j10ce/sensitive"): 1024.0}
    values: dict[Setting, Value] = {Setting(t, "cpu.weight"): w for t, w in heavy.items()}
    values |= {Setting(db.target, "cpuset.cpus"): frozenset({2, 3})}
    values |= {Setting(TargetId("group/j10ce/sensitive"), "cpuset.cpus"): frozenset({0, 1})}
    effects = effective(snapshot(whole, floor, workloads=[db, web], values=values, on=node(4)))
    assert effects[web.target].cpu == 2000
    assert not effects[web.target].cpu_reason
    assert not effects[db.target].cpu_reason


def test_what_idle_work_has_of_cpus_that_are_lent_breaks_no_floor() -> None:
    """It has 3 shares of 1027 of the one CPU, while it waits to give way."""
    db, job = workload("db"), workload("job")
    reserved = entitlement(db, tier="reserved", floor_cpu="1", cpu=CpuSection(pinning="reserved"))
    idle = entitlement(job, tier="besteffort", cpu=CpuSection(idle=True))
    values: dict[Setting, Value] = {Setting(db.target, "cpuset.cpus"): frozenset({1})}
    values |= {Setting(TargetId("group/j10ce_besteffort"), "cpu.idle"): 1.0}
    effects = effective(snapshot(reserved, idle, workloads=[db, job], values=values, on=node(2)))
    assert (effects[db.target].cpu, effects[db.target].cpu_reason) == (1000, "")
