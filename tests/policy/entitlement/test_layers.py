"""What is said of a workload, layer on layer: the last word counts, what makes no sense does not, and each is named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from j10ce.model.kinds import CacheSection, CpuSection, MemorySection, QoSProfile, ReclaimSection
from j10ce.model.parts.sections import CpuOverlay, MemoryOverlay, ProfileOverlay
from j10ce.model.workload import Entitlement, Note, Overrides, Source, Workload
from j10ce.policy.document.document import NodeDocument
from j10ce.policy.entitlement.resolve import admit, resolve
from j10ce.policy.profiles import TRUSTED_LABEL
from j10ce.policy.strategy import merged
from j10ce.testing import build

PROFILE = build.profile("web", "sensitive", cpu=CpuSection(weight=10), memory=MemorySection(low_percent=50))
CPU_BURST = "koordinator.sh/cpuBurst"


def entitled(
    own: ProfileOverlay | None = None,
    *,
    profile: QoSProfile = PROFILE,
    overlays: dict[str, ProfileOverlay] | None = None,
    trusted: str = "",
    **overrides: Any,
) -> Entitlement:
    w = workload(own, profile, trusted, **overrides)
    document = NodeDocument(node="n1", profiles=(profile,))
    said = merged([build.strategy("pool", {"profiles": msgspec.to_builtins(overlays or {})})])
    granted = resolve([w], document, build.node(), wall=build.WALL, strategy=said)
    empty = resolve([], document, build.node(), wall=build.WALL, strategy=said)
    late = admit([w], document, build.node(), wall=build.WALL, before=empty, strategy=said)
    assert late.entitlements == granted.entitlements, "an arrival is no different"
    return granted.entitlements[w.target]


def workload(own: ProfileOverlay | None, profile: QoSProfile, trusted: str, **overrides: Any) -> Workload:
    return build.workload(
        "a",
        profile=profile.metadata.name,
        memory="1Gi",
        namespace_labels={TRUSTED_LABEL: trusted} if trusted else {},
        overrides=Overrides(own or ProfileOverlay(), **overrides),
    )


def notes(e: Entitlement) -> list[str]:
    return [*map(str, e.notes)]


def test_the_workload_has_the_last_word_then_the_strategy_then_the_profile() -> None:
    strategy = {"web": ProfileOverlay(cpu=CpuOverlay(weight=20), memory=MemoryOverlay(low_percent=60))}
    granted = entitled(ProfileOverlay(cpu=CpuOverlay(weight=30)), overlays=strategy, origins={"cpu.weight": CPU_BURST})
    assert (granted.cpu.weight, granted.memory.low_percent) == (30, 60)
    assert granted.sources[1:] == (
        Source("cpu.weight", "NodeStrategy/pool", "cpu.weight 20 for profile web"),
        Source("memory.lowPercent", "NodeStrategy/pool", "memory.lowPercent 60 for profile web"),
        Source("cpu.weight", CPU_BURST, "cpu.weight 30 of this workload alone"),
    )
    assert granted.notes == ()


def test_a_strategy_says_nothing_of_other_profiles() -> None:
    assert entitled(overlays={"other": ProfileOverlay(cpu=CpuOverlay(weight=20))}).cpu.weight == 10


def test_the_cache_of_a_profile_is_part_of_what_its_workloads_are_entitled_to() -> None:
    cache = CacheSection(llc_end_percent=50)
    assert entitled(ProfileOverlay(cache=cache)).cache == cache
    assert notes(entitled(ProfileOverlay(cache=cache))) == []


def test_memory_that_is_promised_by_an_override_is_in_the_ledger() -> None:
    granted = entitled(ProfileOverlay(memory=MemoryOverlay(min_percent=50)))
    assert granted.floor.memory == 512 << 20


@pytest.mark.parametrize(
    ("own", "kept", "why"),
    [
        pytest.param(
            ProfileOverlay(cpu=CpuOverlay(idle=True, weight=5)),
            CpuSection(weight=5),
            "cpu.idle true: tier sensitive is never held back; use tier standard or besteffort",
            id="a protected tier is not idle",
        ),
        pytest.param(
            ProfileOverlay(cpu=CpuOverlay(weight=-1)),
            CpuSection(weight=10),
            "cpu.weight -1: out of range; use 2 to 262144",
            id="out of range",
        ),
        pytest.param(
            ProfileOverlay(cpu=CpuOverlay(pinning="exclusive")),
            CpuSection(weight=10),
            "cpu.pinning exclusive: namespace 'default' may not choose it",
            id="CPUs of its own in a namespace that may not have them",
        ),
    ],
)
def test_what_makes_no_sense_or_is_not_allowed_is_left_as_it_was_with_a_note(
    own: ProfileOverlay, kept: CpuSection, why: str
) -> None:
    granted = entitled(own)
    assert granted.cpu == kept
    assert notes(granted) == [f"Workload/default/a: {why}"]


def test_a_trusted_namespace_may_choose_cpus_of_its_own() -> None:
    granted = entitled(ProfileOverlay(cpu=CpuOverlay(pinning="exclusive")), trusted="true")
    assert (granted.cpu.pinning, notes(granted)) == ("exclusive", [])


def test_what_could_not_be_understood_is_told() -> None:
    note = Note("Note", CPU_BURST, "no JSON")
    assert entitled(notes=(note,)).notes == (note,)


def test_without_a_profile_or_a_policy_nothing_is_changed_and_a_note_says_so() -> None:
    w = build.workload("a", overrides=Overrides(ProfileOverlay(cpu=CpuOverlay(weight=5))))
    granted = resolve([w], NodeDocument(node="n1"), build.node(), wall=build.WALL).entitlements[w.target]
    assert (granted.chosen, granted.cpu, granted.sources) == (False, CpuSection(), ())
    assert notes(granted) == ["Workload/default/a: not heeded: no profile and no policy is for it"]


def test_real_time_without_a_cpu_floor_is_a_note() -> None:
    asked = build.profile("web", cpu=CpuSection(latency="realtime"))
    assert notes(entitled(profile=asked)) == ["sched.realtime: without a CPU floor its threads stay fair"]


def test_a_pod_alone_is_real_time_only_in_a_trusted_namespace() -> None:
    wish = ProfileOverlay(cpu=CpuOverlay(latency="realtime"))
    assert entitled(wish).cpu.latency == "normal"
    assert entitled(wish, trusted="true").cpu.latency == "realtime"


def test_a_section_inside_a_section_is_laid_over_field_by_field() -> None:
    profile = build.profile("web", memory=MemorySection(reclaim=ReclaimSection(enabled=True, target_pressure=0.5)))
    strategy = {"web": ProfileOverlay(memory=MemoryOverlay(reclaim=ReclaimSection(target_pressure=2.0)))}
    own = ProfileOverlay(memory=MemoryOverlay(reclaim=ReclaimSection(enabled=False)))
    granted = entitled(own, profile=profile, overlays=strategy, origins={"memory.reclaim.enabled": "annotation x"})
    assert granted.memory.reclaim == ReclaimSection(enabled=False, target_pressure=2.0)
    assert granted.sources[1:] == (
        Source(
            "memory.reclaim.targetPressure", "NodeStrategy/pool", "memory.reclaim.targetPressure 2.0 for profile web"
        ),
        Source("memory.reclaim.enabled", "annotation x", "memory.reclaim.enabled false of this workload alone"),
    )


@pytest.mark.parametrize(
    ("own", "path"),
    [
        pytest.param(MemoryOverlay(oom_priority=1), "memory.oomPriority 1", id="killed after others"),
        pytest.param(MemoryOverlay(kernel_priority=1), "memory.kernelPriority 1", id="the same, by a vendor's kernel"),
        pytest.param(MemoryOverlay(watermark_adjust=-1), "memory.watermarkAdjust -1", id="reclaimed after others"),
    ],
)
def test_to_be_spared_at_the_cost_of_others_is_for_trusted_namespaces(own: MemoryOverlay, path: str) -> None:
    overlay = ProfileOverlay(memory=own)
    refused = entitled(overlay)
    assert refused.memory == PROFILE.spec.memory
    assert notes(refused) == [f"Workload/default/a: {path}: namespace 'default' may not choose it"]
    assert notes(entitled(overlay, trusted="true")) == []


@pytest.mark.parametrize(
    ("own", "path"),
    [
        pytest.param(CacheSection(llc_start_percent=0), "cache.llcStartPercent 0", id="from below its class"),
        pytest.param(CacheSection(llc_end_percent=60), "cache.llcEndPercent 60", id="beyond its class"),
        pytest.param(CacheSection(memory_bandwidth_percent=80), "cache.memoryBandwidthPercent 80", id="bandwidth"),
    ],
)
def test_to_fill_more_of_the_cache_than_its_class_is_for_trusted_namespaces(own: CacheSection, path: str) -> None:
    """A best-effort pod in any namespace wrote itself an annotation, and had the cache of those it was kept from."""
    base = build.profile("web", "besteffort")
    least = CacheSection(llc_start_percent=10, llc_end_percent=30, memory_bandwidth_percent=50)
    narrow = replace(base, spec=replace(base.spec, cache=least))
    overlay = ProfileOverlay(cache=own)
    refused = entitled(overlay, profile=narrow)
    assert refused.cache == narrow.spec.cache
    assert notes(refused) == [f"Workload/default/a: {path}: namespace 'default' may not choose it"]
    assert notes(entitled(overlay, profile=narrow, trusted="true")) == []


def test_to_fill_less_of_the_cache_than_its_class_is_for_everybody() -> None:
    less = CacheSection(llc_start_percent=10, llc_end_percent=20, memory_bandwidth_percent=30)
    granted = entitled(ProfileOverlay(cache=less))
    assert (granted.cache, notes(granted)) == (less, [])


def test_to_go_before_others_is_for_everybody() -> None:
    own = MemoryOverlay(oom_priority=-500, watermark_adjust=50)
    granted = entitled(ProfileOverlay(memory=own))
    assert (granted.memory.oom_priority, granted.memory.watermark_adjust, notes(granted)) == (-500, 50, [])


def test_a_namespace_that_may_not_have_the_profile_whose_selector_matches_is_told() -> None:
    listed = build.profile("db", selector=build.selector({"app": "db"}), namespaces=build.selector({"team": "db"}))
    w = build.workload("a", labels={"app": "db"})
    granted = resolve([w], NodeDocument(node="n1", profiles=(listed,)), build.node(), wall=build.WALL)
    assert notes(granted.entitlements[w.target]) == [
        "namespace 'default' may not have profile 'db', whose selector matches"
    ]


cpu = st.builds(
    CpuOverlay,
    weight=st.one_of(st.just(UNSET), st.integers(-5, 300_000)),
    idle=st.one_of(st.just(UNSET), st.booleans()),
    suppressible=st.one_of(st.just(UNSET), st.booleans()),
    bind=st.one_of(st.just(UNSET), st.sampled_from(["spread", "full-cores"])),
    pinning=st.one_of(st.just(UNSET), st.sampled_from(["none", "shared", "reserved", "exclusive"])),
)
memory = st.builds(
    MemoryOverlay,
    min_percent=st.one_of(st.just(UNSET), st.integers(-5, 120)),
    low_percent=st.one_of(st.just(UNSET), st.integers(-5, 120)),
)


@given(st.sampled_from(["system", "sensitive", "standard", "besteffort"]), cpu, memory, st.sampled_from(["", "true"]))
def test_whatever_is_said_what_counts_is_a_valid_profile(
    tier: str, cpu: CpuOverlay, memory: MemoryOverlay, trusted: str
) -> None:
    profile = build.profile("web", tier)
    granted = entitled(ProfileOverlay(cpu=cpu, memory=memory), profile=profile, trusted=trusted)
    weight = 2 if granted.cpu.weight is UNSET else granted.cpu.weight
    assert 2 <= weight <= 262_144
    assert not (granted.cpu.idle and tier in ("system", "sensitive"))
    assert granted.cpu.pinning in ("none", "shared") or trusted
    changed = {f for f in ("cpu.weight", "cpu.idle", "cpu.pinning") if any(s.field == f for s in granted.sources)}
    base = profile.spec.cpu
    assert granted.cpu.weight == (cpu.weight if "cpu.weight" in changed else base.weight)
