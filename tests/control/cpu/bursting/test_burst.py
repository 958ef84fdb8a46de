"""`cpu-burst` beside `limits`: one wants more, the other says how far it may go."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from j10ce.control.cpu.bursting.burst import CpuBurst
from j10ce.control.limits import Limits
from j10ce.dialects.koordinator.classes import KoordClass
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import NODE, Setting, part
from j10ce.model.parts.strategy import BurstSection, NormalizationSection, Strategy
from j10ce.model.plan import Bound
from j10ce.model.quantity import Quantity
from j10ce.model.snapshot import Group, Snapshot
from j10ce.model.workload import Part
from j10ce.plan.arbiter import arbitrate
from j10ce.testing import build
from tests.control.cpu.world import World
from tests.koordinator.theirs.laws.burst import PoolUse, QuotaUse, node_state, quota_burst

CPUS, SECONDS = 16, 600
WEB = build.workload("web").target
MAIN, SIDE = part("default", "p", "main"), part("default", "p", "side")
QUOTA = Strategy(burst=BurstSection(policy="quota"))
AUTO = Strategy(burst=BurstSection(policy="auto"))


def service(limit: str = "1", tier: str = "sensitive") -> Snapshot:
    web, other = build.workload("web", cpu_limit=limit), build.workload("other")
    return build.snapshot(
        build.entitlement(web, tier=tier), build.entitlement(other), workloads=[web, other], on=build.node(CPUS)
    )


def throttled(snap: Snapshot, *targets: str, node: float = 1.0) -> Snapshot:
    readings = {(t, "cpu.throttled"): 0.5 for t in targets} | {(t, "cpu.usage"): 1.0 for t in targets}
    return replace(snap, readings=build.FixedReadings({**readings, (NODE, "cpu.usage"): node}))  # type: ignore[dict-item]


def pod(*limits: str | None) -> Snapshot:
    named = dict(zip(("main", "side"), limits, strict=True))
    parts = tuple(Part(n, build.handle(f"kubepods/p/{n}"), limits=build.ceiling(limit)) for n, limit in named.items())
    whole = None if None in limits else f"{sum(int(x) for x in limits if x)}"
    w = build.workload("p", handle=build.handle("kubepods/p"), parts=parts, cpu_limit=whole)
    e = build.entitlement(w, tier="sensitive")
    inside = [Group(part("default", "p", p.name), w.target, p.handle.path, owned=False) for p in parts]
    groups = build.tree([w], {w.target: e}, groups=inside)
    values = {Setting(part("default", "p", p.name), "cpu.max"): p.limits.cpu * 100 for p in parts}
    return build.snapshot(e, workloads=[w], groups=groups, values=values, on=build.node(CPUS))  # type: ignore[arg-type]


def decided(snap: Snapshot, said: Strategy) -> dict[tuple[str, str], object]:
    snap = replace(snap, strategy=said)
    wishes = [*Limits(Limits.Config()).propose(snap), *CpuBurst(CpuBurst.Config()).propose(snap)]
    return {(s.target, s.knob): v.value for s, v in arbitrate(wishes, snap, (), lambda _, v: v).verdicts.items()}


def test_a_throttled_service_has_up_to_three_times_its_limit_and_says_why() -> None:
    snap = replace(throttled(service(), WEB), strategy=QUOTA)
    (p,) = CpuBurst(CpuBurst.Config()).propose(snap)
    assert (p.setting, p.bound, p.value) == (Setting(WEB, "cpu.max"), Bound.WANT, 300_000)
    assert p.reason == (
        "throttled at 100000 (1 CPU); 3 times that is allowed while less than 50% of the shared CPUs are in use"
    )
    assert decided(snap, QUOTA)[WEB, "cpu.max"] == 300_000


@pytest.mark.parametrize(
    ("said", "tier", "node"),
    [
        pytest.param(Strategy(), "sensitive", 1.0, id="without a policy"),
        pytest.param(QUOTA, "reserved", 1.0, id="with CPUs of its own"),
        pytest.param(QUOTA, "besteffort", 1.0, id="as best effort"),
        pytest.param(QUOTA, "sensitive", 9.0, id="while the shared CPUs are busy"),
    ],
)
def test_the_limit_holds(said: Strategy, tier: str, node: float) -> None:
    assert decided(throttled(service(tier=tier), WEB, node=node), said)[WEB, "cpu.max"] == 100_000


def test_what_is_saved_up_is_no_more_than_the_kernel_takes() -> None:
    assert decided(service(), AUTO)[WEB, "cpu.max.burst"] == 100_000


def test_a_pods_quota_rises_by_what_its_containers_have_more() -> None:
    got = decided(throttled(pod("1", "2"), MAIN), QUOTA)
    assert got[MAIN, "cpu.max"] == 300_000
    assert got[SIDE, "cpu.max"] == 200_000, "its limit: nothing throttles it"
    assert got["workload/default/p", "cpu.max"] == 500_000


def test_a_pod_without_a_quota_gets_none() -> None:
    got = decided(throttled(pod("1", None), MAIN), QUOTA)
    assert got[MAIN, "cpu.max"] == 300_000
    assert ("workload/default/p", "cpu.max") not in got


def test_on_faster_cpus_a_limit_and_its_burst_are_less_time() -> None:
    fast = Strategy(burst=QUOTA.burst, normalization=NormalizationSection(ratio=1.1))
    assert decided(service(), fast)[WEB, "cpu.max"] == 90_910  # ⌈100000 / 1.1⌉
    assert decided(throttled(service(), WEB), fast)[WEB, "cpu.max"] == 272_730
    assert decided(service(tier="reserved"), fast)[WEB, "cpu.max"] == 100_000, "whole CPUs are whole CPUs"


def test_a_profile_that_lets_save_up_goes_on_without_a_policy() -> None:
    web = build.workload("web", cpu_limit="1")
    e = build.entitlement(web, tier="sensitive", cpu=CpuSection(burst=Quantity.parse("50%")))
    assert decided(build.snapshot(e, workloads=[web]), Strategy())[WEB, "cpu.max.burst"] == 50_000


def step(n: int) -> float:
    return 2.6 if n // 30 % 2 else 0.5


def noisy(n: int) -> float:
    return 1.0 + random.Random(n).uniform(-0.8, 0.8)


def diurnal(n: int) -> float:
    return 1.5 + math.sin(2 * math.pi * n / SECONDS)


def background(n: int) -> float:
    """Of everyone else: around the threshold of 50 % of 16 CPUs for half of the time."""
    return 4.0 + 3.5 * math.sin(2 * math.pi * n / 200) + random.Random(n).uniform(-0.5, 0.5)


def theirs(wanted: Callable[[int], float]) -> tuple[int, float]:
    """(writes, CPU seconds that the service was refused) under the literal law."""
    quota, writes, refused = 100_000, 0, 0.0
    nodes: list[float] = []
    for n in range(SECONDS):
        used = min(wanted(n), quota / 100_000)
        refused += wanted(n) - used
        nodes = [*nodes, used + background(n)][-5:]
        mean = math.fsum(nodes) / len(nodes)
        pool = node_state(round(mean * 1000), CPUS, 50, [PoolUse(KoordClass.LS, 0, round(used * 1000))])
        one = QuotaUse("main", 1000, quota, 1.0 if wanted(n) > used else 0.0)
        following = quota_burst("auto", 300, pool, -1, [one]).containers["main"]
        writes, quota = writes + (following != quota), following
    return writes, refused


@pytest.mark.parametrize("load", [step, noisy, diurnal])
def test_beside_theirs_a_third_of_the_writes_and_no_more_throttling(load: Callable[[int], float]) -> None:
    snap = service()
    started = replace(snap, settings={**snap.settings, Setting(WEB, "cpu.max"): 100_000.0})
    controllers = [Limits(Limits.Config()), CpuBurst(CpuBurst.Config())]
    world = World(started, controllers, QUOTA, web=load, other=background)
    seconds = world.run(SECONDS)
    writes = sum(s.writes for s in seconds)
    refused = math.fsum(s.throttled[WEB] * load(n) for n, s in enumerate(seconds))
    their_writes, their_refused = theirs(load)
    assert writes * 3 <= their_writes, (writes, their_writes)
    assert refused <= their_refused * 1.05, (refused, their_refused)
