from __future__ import annotations

import pytest

from j10ce.model.kinds import BUILT_IN_LABEL, NAMESPACE_NAME_LABEL, CpuSection, MemorySection, QoSProfile, Tier
from j10ce.model.knob import CGROUP_KNOBS
from j10ce.policy.profiles import TRUSTED_LABEL, builtin, canonical, describe, may_choose
from j10ce.policy.validation.validate import validate
from j10ce.testing.build import profile

TIERS = {
    "system": Tier.SYSTEM,
    "lse": Tier.EXCLUSIVE,
    "lsr": Tier.RESERVED,
    "guaranteed-pro": Tier.RESERVED,
    "realtime": Tier.RESERVED,
    "ls": Tier.SENSITIVE,
    "guaranteed": Tier.SENSITIVE,
    "burstable": Tier.STANDARD,
    "be": Tier.BESTEFFORT,
    "best-effort": Tier.BESTEFFORT,
}
LISTED = ("system", "lse", "lsr", "guaranteed-pro", "realtime")


def test_the_built_in_profiles_have_their_tiers() -> None:
    assert {p.metadata.name: p.spec.tier for p in builtin()} == TIERS
    assert all(p.metadata.labels == {BUILT_IN_LABEL: "true"} for p in builtin())


def each() -> list[object]:
    return [pytest.param(p, id=p.metadata.name) for p in builtin()]


@pytest.mark.parametrize("built_in", each())
def test_a_built_in_profile_is_valid_and_leaves_memory_to_reclaim(built_in: QoSProfile) -> None:
    assert validate(built_in) == []
    percent = built_in.spec.memory.min_percent
    assert not isinstance(percent, int) or percent < 100


@pytest.mark.parametrize("built_in", each())
def test_a_profile_is_described_knob_by_knob(built_in: QoSProfile) -> None:
    description = describe(built_in)
    assert [knob for knob, _ in description] == list(CGROUP_KNOBS)
    assert all(effect for _, effect in description)


def test_the_description_follows_the_profile() -> None:
    plain, other = (
        profile("a"),
        profile(
            "b", "besteffort", cpu=CpuSection(weight=7, idle=True), memory=MemorySection(oom_group=True, min_percent=3)
        ),
    )
    changed = {knob for (knob, a), (_, b) in zip(describe(plain), describe(other), strict=True) if a != b}
    assert changed == {
        "cpu.weight",
        "cpu.idle",
        "cpu.bvt_warp_ns",
        "memory.min",
        "memory.oom.group",
        "cgroup.freeze",
    }


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("GuaranteedPro", "guaranteed-pro"),
        ("guaranteed_pro", "guaranteed-pro"),
        ("LSE", "lse"),
        ("BestEffort", "best-effort"),
        ("BE", "be"),
        ("ls", "ls"),
        ("My-Own", "my-own"),
    ],
)
def test_display_names_resolve(written: str, name: str) -> None:
    assert canonical(written) == name


@pytest.mark.parametrize("built_in", each())
def test_privileged_profiles_are_for_listed_namespaces(built_in: QoSProfile) -> None:
    everyone = built_in.metadata.name not in LISTED
    assert may_choose(built_in, {}) is everyone
    assert may_choose(built_in, {NAMESPACE_NAME_LABEL: "default"}) is everyone
    assert may_choose(built_in, {NAMESPACE_NAME_LABEL: "kube-system"})
    assert may_choose(built_in, {NAMESPACE_NAME_LABEL: "default", TRUSTED_LABEL: "true"})
    assert may_choose(built_in, {NAMESPACE_NAME_LABEL: "kube-system", TRUSTED_LABEL: "false"}) is everyone
    assert may_choose(built_in, {TRUSTED_LABEL: "false"}) is everyone
