"""Group identity, and who shares a core with whom."""

from __future__ import annotations

import pytest

from j10ce.dialects.koordinator.classes import KoordClass
from j10ce.dialects.koordinator.config.qos import CpuQos
from j10ce.model.workload import NativeClass
from tests.koordinator.theirs.laws.identity import core_group, identity_rule, idle_values, pod_identity

ON = CpuQos(enable=True, group_identity=2, core_expeller=True)
BE = CpuQos(enable=True, group_identity=-1, sched_idle=1)
OFF = CpuQos(enable=False, group_identity=2, sched_idle=1)


def test_every_class_has_its_own_value_and_the_root_has_none() -> None:
    rule = identity_rule("groupIdentity", ON, CpuQos(enable=True, group_identity=1), BE)
    assert rule.enable
    assert {koord.value: value for koord, value in rule.pod.items()} == {"LSE": 2, "LSR": 2, "LS": 1, "BE": -1}
    assert rule.kube_dir == {"Guaranteed": 0, "Burstable": 1, "BestEffort": -1}
    assert rule.kube_pod == {"Guaranteed": 2, "Burstable": 1, "BestEffort": -1}


def test_a_class_that_is_off_counts_as_nothing_and_guaranteed_pods_are_ls_then() -> None:
    rule = identity_rule("groupIdentity", OFF, CpuQos(enable=True, group_identity=1), OFF)
    assert {koord.value: value for koord, value in rule.pod.items()} == {"LSE": 0, "LSR": 0, "LS": 1, "BE": 0}
    assert rule.kube_pod == {"Guaranteed": 1, "Burstable": 1, "BestEffort": 0}


@pytest.mark.parametrize("blocks", [(OFF, OFF, OFF), (CpuQos(), CpuQos(), CpuQos())])
def test_all_classes_off_is_no_rule(blocks: tuple[CpuQos, CpuQos, CpuQos]) -> None:
    assert not identity_rule("groupIdentity", *blocks).enable


def test_core_scheduling_switches_identity_off() -> None:
    rule = identity_rule("coreSched", ON, ON, BE)
    assert not rule.enable
    assert {*rule.pod.values(), *rule.kube_dir.values(), *rule.kube_pod.values()} == {0}


@pytest.mark.parametrize(
    ("koord", "native", "wish", "expected"),
    [
        ("LSE", "Guaranteed", None, 2),
        ("BE", "BestEffort", None, -1),
        ("", "BestEffort", None, -1),
        ("", "Guaranteed", None, 2),
        ("SYSTEM", "Burstable", None, 2),
        ("LS", "Burstable", CpuQos(enable=True, group_identity=1), 1),
        ("LS", "Burstable", CpuQos(group_identity=1), 0),
        ("LS", "Burstable", CpuQos(enable=False), 0),
        ("LS", "Burstable", CpuQos(enable=True), 2),
        ("LSR", "Guaranteed", CpuQos(enable=True, group_identity=1), 2),
    ],
)
def test_the_identity_of_a_pod(koord: str, native: NativeClass, wish: CpuQos | None, expected: int) -> None:
    assert pod_identity(identity_rule("groupIdentity", ON, ON, BE), KoordClass(koord), native, wish) == expected


GROUP, POLICY = "koordinator.sh/core-sched-group-id", "koordinator.sh/core-sched-policy"


@pytest.mark.parametrize(
    ("cpu", "labels", "expected"),
    [
        pytest.param(ON, {}, "-expeller", id="all protected pods share a core"),
        pytest.param(BE, {}, "", id="all best effort shares another"),
        pytest.param(ON, {GROUP: "g"}, "g-expeller", id="a group of its own"),
        pytest.param(ON, {GROUP: "g", POLICY: "exclusive"}, "uid-expeller", id="alone"),
        pytest.param(ON, {POLICY: "none"}, None, id="no cookie"),
        pytest.param(OFF, {}, None, id="the class is off"),
        pytest.param(None, {}, None, id="system"),
    ],
)
def test_who_shares_a_core(cpu: CpuQos | None, labels: dict[str, str], expected: str | None) -> None:
    assert core_group("coreSched", cpu, labels, "uid") == expected
    assert core_group("groupIdentity", cpu, labels, "uid") is None


def test_idle_is_of_directories_whose_class_is_on() -> None:
    assert idle_values(OFF, BE) == {"Burstable": 0, "BestEffort": 1}
