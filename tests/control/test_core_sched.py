"""Who shares a core with whom."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from j10ce.control.core_sched import CoreSched
from j10ce.dialects.koordinator.classes import KoordClass
from j10ce.dialects.koordinator.config.qos import CpuQos
from j10ce.dialects.koordinator.names import CORE_GROUP_LABEL, CORE_POLICY_LABEL
from j10ce.dialects.koordinator.overrides import translate
from j10ce.model.kinds import CpuSection
from j10ce.model.knob import Support
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import CoreWish, Overrides
from j10ce.testing import build
from tests.koordinator.theirs.laws.identity import core_group

ON = CpuSection(core_sched=True)
SILENT = CoreWish()
OFFERED = {"sched.cookie": Support(True)}


def groups(snap: Snapshot) -> dict[str, str]:
    return {p.setting.target: str(p.value) for p in CoreSched(CoreSched.Config()).propose(snap)}


def one(tier: str, wish: CoreWish = SILENT, **of: Any) -> str | None:
    w = build.workload("a", overrides=Overrides(core=wish))
    snap = build.snapshot(build.entitlement(w, tier=tier, **{"cpu": ON} | of), workloads=[w])
    return groups(replace(snap, support=OFFERED)).get(w.target)


@pytest.mark.parametrize(
    ("tier", "wish", "group"),
    [
        pytest.param("exclusive", CoreWish(), "shared-expeller", id="protected tiers share"),
        pytest.param("sensitive", CoreWish(), "shared-expeller", id="the same"),
        pytest.param("besteffort", CoreWish(), "shared", id="the others share"),
        pytest.param("standard", CoreWish("build"), "default_build", id="a group of its namespace"),
        pytest.param("reserved", CoreWish("build"), "default_build-expeller", id="a protected one"),
        pytest.param("reserved", CoreWish("build", "exclusive"), "default__a", id="nobody else"),
        pytest.param("reserved", CoreWish("build", "none"), None, id="anybody"),
        pytest.param("system", CoreWish("build"), None, id="system is in no rule"),
    ],
)
def test_who_shares_a_core(tier: str, wish: CoreWish, group: str | None) -> None:
    assert one(tier, wish) == group


def test_nobody_shares_a_core_with_one_that_is_to_be_alone_by_naming_a_group_like_it() -> None:
    assert one("standard", CoreWish("a")) != one("standard", CoreWish("", "exclusive"))


def test_a_user_s_word_for_his_namespace_does_not_bring_him_onto_the_cores_of_others_there() -> None:
    users = {uid: build.workload(f"w{uid}", overrides=Overrides(core=CoreWish("build"))) for uid in (0, 1000, 1001)}
    placed = [replace(w, uid=uid, vouched=uid == 0) for uid, w in users.items()]
    snap = build.snapshot(*(build.entitlement(w, tier="standard", cpu=ON) for w in placed), workloads=placed)
    assert len({*groups(replace(snap, support=OFFERED)).values()}) == 3


@pytest.mark.parametrize("tier", ["sensitive", "standard", "besteffort"])
@pytest.mark.parametrize(("said", "group"), [(True, "shared-expeller"), (False, "shared")])
def test_whose_cores_others_stay_off_can_be_said(tier: str, said: bool, group: str) -> None:
    assert one(tier, cpu=CpuSection(core_sched=True, core_expeller=said)) == group


def test_only_where_the_profile_asks_for_it_and_somebody_chose_it() -> None:
    assert one("sensitive", cpu=CpuSection()) is None
    assert one("sensitive", chosen=False) is None


def test_a_machine_without_it_gets_no_wish() -> None:
    w = build.workload("a")
    assert groups(build.snapshot(build.entitlement(w, cpu=ON), workloads=[w], lacking=["sched.cookie"])) == {}


@pytest.mark.parametrize("koord", [KoordClass.LSE, KoordClass.LSR, KoordClass.LS, KoordClass.BE])
@pytest.mark.parametrize("policy", ["", "exclusive", "none"])
@pytest.mark.parametrize("group", ["", "team"])
def test_their_labels_divide_pods_as_their_law_does(koord: KoordClass, policy: str, group: str) -> None:
    """Names differ; who shares with whom does not."""
    tiers = {KoordClass.LSE: "exclusive", KoordClass.LSR: "reserved", KoordClass.LS: "sensitive"}
    labels = {CORE_GROUP_LABEL: group, CORE_POLICY_LABEL: policy}
    w = translate(build.workload("a", labels=labels))
    law = core_group("coreSched", CpuQos(enable=True, core_expeller=koord is not KoordClass.BE), labels, "uid-a")
    ours = one(tiers.get(koord, "besteffort"), w.overrides.core)
    assert (ours is None) == (law is None)
    if ours is not None and law is not None and policy != "exclusive":
        base, _, expels = law.partition("-expeller")
        assert ours == (f"default_{base}" if base else "shared") + ("-expeller" if "-expeller" in law else expels)


def test_a_policy_that_nobody_knows_is_said() -> None:
    w = translate(build.workload("a", labels={CORE_POLICY_LABEL: "alone"}))
    assert w.overrides.core == CoreWish()
    assert [n.text for n in w.overrides.notes] == [
        "koordinator.sh/core-sched-policy 'alone' (known are exclusive, none) is not heeded"
    ]
