"""`lent`: batch and mid amounts as values of cgroups, beside the literal law, which knows no mid."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.control.floors import Floors
from j10ce.control.lent import Lent
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import Setting, TargetId, part
from j10ce.model.parts.strategy import NormalizationSection, Strategy
from j10ce.model.quantity import Bytes, Millicores
from j10ce.model.resource import Resources
from j10ce.model.snapshot import Group, Snapshot
from j10ce.model.workload import Ceiling, Part, Reclaimable, lent
from j10ce.plan.arbiter import arbitrate
from j10ce.testing import build
from tests.koordinator.theirs.laws.runtime import Extended, extended_values

GIB = 1 << 30
V1 = {"cpu.shares": "cpu.weight", "cpu.cfs_quota_us": "cpu.max", "memory.limit_in_bytes": "memory.max"}
BE = CpuSection(weight=2, idle=True, suppressible=True)
limits = st.one_of(st.none(), st.integers(1, 64_000))
containers = st.lists(st.builds(Extended, st.integers(1, 64_000), limits, st.just(GIB), limits), min_size=1, max_size=4)


def reclaimable(x: Extended) -> Reclaimable:
    asked = Resources(Millicores(x.request_milli or 0), Bytes(x.request_memory or 0))
    return Reclaimable(asked, Ceiling(x.limit_milli or math.inf, x.limit_memory or math.inf))


def pod(inside: list[Extended], band: str = "batch", tier: str = "besteffort") -> Snapshot:
    parts = tuple(
        Part(f"c{n}", build.handle(f"kubepods/besteffort/p/c{n}"), reclaimable={band: reclaimable(x)})
        for n, x in enumerate(inside)
    )
    whole = Reclaimable(
        Resources(Millicores(sum(x.request_milli or 0 for x in inside))),
        Ceiling(sum(x.limit_milli or math.inf for x in inside), sum(x.limit_memory or math.inf for x in inside)),
    )
    handle = build.handle("kubepods/besteffort/p")
    w = build.workload("p", handle=handle, parts=parts, reclaimable={band: whole})
    e = build.entitlement(w, tier=tier, cpu=BE if tier == "besteffort" else CpuSection())
    cgroups = [Group(part("default", "p", p.name), w.target, p.handle.path, owned=False) for p in parts]
    return build.snapshot(e, workloads=[w], groups=build.tree([w], {w.target: e}, groups=cgroups))


def values(snap: Snapshot) -> dict[TargetId, dict[str, object]]:
    wishes = [*Lent(Lent.Config()).propose(snap), *Floors(Floors.Config()).propose(snap)]
    decided: dict[TargetId, dict[str, object]] = {}
    for setting, verdict in arbitrate(wishes, snap, (), lambda _, value: value).verdicts.items():
        decided.setdefault(setting.target, {})[setting.knob] = verdict.value
    return decided


def literal(inside: list[Extended], ratio: float = 0) -> dict[str, object]:
    theirs = extended_values(inside, ratio=ratio)
    return {V1[file]: float(value) for file, value in theirs.items() if value != -1}


@given(containers)
def test_containers_have_what_the_literal_law_gives_them(inside: list[Extended]) -> None:
    got = values(pod(inside))
    for n, one in enumerate(inside):
        assert got[part("default", "p", f"c{n}")] == literal([one])


@given(containers)
def test_so_does_the_pod_but_for_its_weight_which_an_idle_one_cannot_have(inside: list[Extended]) -> None:
    got = values(pod(inside)).get(TargetId("workload/default/p"), {})
    got.pop("cpu.weight", None)
    theirs = literal(inside)
    assert got == {knob: value for knob, value in theirs.items() if knob != "cpu.weight"}


def test_mid_is_enforced_too_and_weighs_among_its_siblings() -> None:
    inside = [Extended(1500, 2000, GIB, GIB), Extended(500, 1000, GIB, GIB)]
    got = values(pod(inside, "mid", "sensitive"))[TargetId("workload/default/p")]
    assert got == literal(inside) == {"cpu.weight": 2048.0, "cpu.max": 300_000.0, "memory.max": 2.0 * GIB}


def test_on_faster_cpus_a_quota_is_less_time() -> None:
    inside = [Extended(1000, 2000, GIB, GIB)]
    fast = replace(pod(inside), strategy=Strategy(normalization=NormalizationSection(ratio=1.1)))
    assert values(fast)[part("default", "p", "c0")] == literal(inside, 1.1)


def test_who_asks_for_nothing_lent_or_is_only_classified_is_left_alone() -> None:
    plain = build.workload("w", cpu="1", cpu_limit="2")
    snap = build.snapshot(build.entitlement(plain), workloads=[plain])
    assert list(Lent(Lent.Config()).propose(snap)) == []
    other = pod([Extended(1000, 1000, GIB, GIB)])
    classified = {t: replace(e, chosen=False) for t, e in other.entitlements.items()}
    assert list(Lent(Lent.Config()).propose(replace(other, entitlements=classified))) == []


@pytest.mark.parametrize("lacking", ["cpu.weight", "cpu.max", "memory.max"])
def test_a_machine_without_a_knob_gets_no_wish_for_it(lacking: str) -> None:
    snap = replace(pod([Extended(1000, 1000, GIB, GIB)]), support=build.support(lacking))
    wished = {p.setting.knob for p in Lent(Lent.Config()).propose(snap)}
    assert wished == {"cpu.weight", "cpu.max", "memory.max"} - {lacking}


def test_a_wish_says_what_is_asked_for() -> None:
    reasons = {p.setting: p.reason for p in Lent(Lent.Config()).propose(pod([Extended(1500, 2000, GIB, GIB)]))}
    assert reasons[Setting(part("default", "p", "c0"), "cpu.weight")] == "asks for 1500m of what is lent"
    assert reasons[Setting(TargetId("workload/default/p"), "cpu.max")] == "limit 2 of what is lent"


def test_bands_add_up() -> None:
    both = {"batch": reclaimable(Extended(1000, 2000, 1, 2)), "mid": reclaimable(Extended(500, None, 1, 2))}
    assert lent(both) == Reclaimable(Resources(Millicores(1500), Bytes(2)), Ceiling(math.inf, 4))
    assert lent({}) == Reclaimable()
