"""A ConfigMap as NodeStrategies: names, what is switched off, what is not heeded, what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.config.keys import SHAPES
from j10ce.dialects.koordinator.config.layers import NodeWords
from j10ce.dialects.koordinator.native.node_layers import KnownNode
from j10ce.dialects.koordinator.native.strategies import Generated, generated
from j10ce.model.kinds import NodeStrategy
from j10ce.policy.strategy import effective, fields

POOL = {"matchLabels": {"pool": "gpu"}}


def made(key: str, cluster: dict[str, Any], *entries: dict[str, Any], nodes: tuple[KnownNode, ...] = ()) -> Generated:
    shape = SHAPES[key]
    inline = cluster if not shape.cluster else {shape.cluster: cluster}
    listed = [{"name": f"e{n}", "nodeSelector": POOL, **entry} for n, entry in enumerate(entries)]
    return generated({key: json.dumps({**inline, shape.entries: listed})}, nodes)


def said(objects: list[NodeStrategy], **labels: str) -> dict[str, Any]:
    return dict(fields(effective(objects, labels).strategy))


def node(name: str, annotations: dict[str, str] | None = None, **labels: str) -> KnownNode:
    return KnownNode(name, NodeWords(labels, annotations or {}))


def test_objects_are_called_by_key_and_entry_and_labelled() -> None:
    result = made("cpu-burst-config", {"policy": "auto"}, {"name": "GPU nodes!", "policy": "none"})
    assert [o.metadata.name for o in result.all()] == [
        "koordinator-cpu-burst-gpu-nodes",
        "koordinator-cpu-burst-cluster",
    ]
    assert all(
        o.metadata.labels == {"j10ce.io/dialect": "koordinator", "j10ce.io/dialect-key": "cpu-burst-config"}
        for o in result.all()
    )


def test_entries_of_one_name_make_objects_of_two() -> None:
    same = {"name": "pool", "policy": "none"}
    objects = made("cpu-burst-config", {"policy": "auto"}, same, {**same, "nodeSelector": {"matchLabels": {"a": "b"}}})
    assert len({o.metadata.name for o in objects.all()}) == 3


def test_an_entry_switches_off_what_the_cluster_says() -> None:
    objects = made("resource-threshold-config", {"enable": True}, {"enable": False}).all()
    assert said(objects, pool="cpu")["suppress.thresholdPercent"] == 65
    assert said(objects, pool="gpu") == {}


def test_the_first_entry_that_matches_has_the_word_alone() -> None:
    first = {"enable": True, "cpuSuppressThresholdPercent": 50}
    second = {"enable": True, "cpuSuppressMinPercent": 20, "nodeSelector": {"matchLabels": {"zone": "x"}}}
    objects = made("resource-threshold-config", {}, first, second).all()
    assert "suppress.minPercent" not in said(objects, pool="gpu", zone="x")
    assert said(objects, zone="x")["suppress.minPercent"] == 20


def test_an_entry_without_applications_has_none_though_the_cluster_has() -> None:
    app = {"name": "nginx", "qos": "LS", "priority": "koord-prod", "cgroupPath": {"relativePath": "nginx.service"}}
    objects = made("host-application-config", {"applications": [app]}, {"applications": []}).all()
    (nginx,) = said(objects)["hostApplications"]
    assert (nginx.cgroup, nginx.profile, nginx.priority) == ("nginx.service", "ls", "prod")
    assert said(objects, pool="gpu") == {}


def test_lending_that_is_switched_off_lends_nothing_and_a_key_that_is_missing_says_nothing() -> None:
    off = said(made("colocation-config", {"enable": False}).all())
    assert off["overcommit.cpu.batchPercent"] == off["overcommit.memory.midPercent"] == 0
    assert generated({}).all() == []


def test_a_label_of_a_node_goes_before_the_configmap_and_equal_nodes_share_an_object() -> None:
    label = {"node.koordinator.sh/cpu-reclaim-ratio": "0.8"}
    two = (node("n1", **label), node("n2", **label), node("n3"))
    objects = made("colocation-config", {"enable": True}, nodes=two).all()
    assert len(objects) == 2
    by_name = {
        n: said(objects, **{"kubernetes.io/hostname": n})["overcommit.cpu.thresholdPercent"] for n in ("n2", "n3")
    }
    assert by_name == {"n2": 80, "n3": 60}


@pytest.mark.parametrize("config", [{"colocation-config": '{"enable": true}'}, {}], ids=["lending", "no word of it"])
def test_what_a_node_keeps_for_itself_is_not_lent(config: dict[str, str]) -> None:
    keeps = node("n1", {names.RESERVATION: '{"resources": {"cpu": "1500m", "memory": "2Gi"}}'})
    result = said(generated(config, [keeps]).all(), **{"kubernetes.io/hostname": "n1"})
    assert str(result["overcommit.cpu.reserved"]) == "1500m"
    assert str(result["overcommit.memory.reserved"]) == "2Gi"


def test_static_mid_is_said_where_it_is_switched_on() -> None:
    words = {"enable": True, "midStaticCPUReservedPercent": 20}
    assert "overcommit.cpu.midStaticPercent" not in said(made("colocation-config", words).all())
    static = said(made("colocation-config", {**words, "midReclaimMode": "static"}).all())
    assert (static["overcommit.cpu.midStaticPercent"], static["overcommit.memory.midStaticPercent"]) == (20, 0)


def test_an_annotation_of_a_node_that_is_wrong_is_reported_and_the_layers_below_hold() -> None:
    wrong = node("n1", {names.COLOCATION_STRATEGY: "{"})
    result = made("colocation-config", {"enable": True}, nodes=(wrong,))
    assert [f.path for f in result.findings] == [f"node n1: metadata.annotations.{names.COLOCATION_STRATEGY}"]
    assert said(result.all(), **{"kubernetes.io/hostname": "n1"})["overcommit.cpu.thresholdPercent"] == 60


@pytest.mark.parametrize(
    ("annotations", "ratio"),
    [
        ({}, 1.2),
        ({names.NORMALIZATION_RATIO: "1.40"}, 1.4),
        ({names.CPU_BASIC_INFO: '{"cpuModel": "fast", "turboEnabled": true}'}, 2.0),
        ({names.CPU_BASIC_INFO: '{"cpuModel": "slow"}', names.NORMALIZATION_RATIO: "1.40"}, 1.4),
    ],
    ids=["default", "as annotated", "by its model", "of a model that is not listed"],
)
def test_a_cpu_is_worth_what_its_model_its_annotation_or_the_default_says(
    annotations: dict[str, str], ratio: float
) -> None:
    config = {"enable": True, "defaultRatio": 1.2, "ratioModel": {"fast": {"baseRatio": 1.5, "turboEnabledRatio": 2.0}}}
    objects = made("cpu-normalization-config", config, nodes=(node("n1", annotations),)).all()
    assert said(objects, **{"kubernetes.io/hostname": "n1"}) == {"normalization.ratio": ratio}


def test_percentages_of_memory_that_nobody_wrote_stay_those_of_the_profile() -> None:
    block = {"lsClass": {"memoryQOS": {"enable": True, "minLimitPercent": 60, "lowLimitPercent": 30}}}
    assert said(made("resource-qos-config", block).all()) == {
        "profiles.ls.memory.minPercent": 60,
        "profiles.ls.memory.lowPercent": 60,
        "profiles.ls.memory.watermarkPercent": 95,
        "profiles.ls.memory.watermarkScale": 20,
        "profiles.ls.memory.watermarkAdjust": -25,
    }


@pytest.mark.parametrize(("enable", "said_of_it"), [(1, {"profiles.be.memory.oomPriority": 3}), (0, {})])
def test_a_priority_counts_where_it_is_switched_on(enable: int, said_of_it: dict[str, int]) -> None:
    """Of processes everywhere; a kernel that has files for it gets them as they are."""
    block = {"beClass": {"memoryQOS": {"enable": True, "priorityEnable": enable, "priority": 3}}}
    every = said(made("resource-qos-config", block).all())
    assert {path: value for path, value in every.items() if path.endswith("oomPriority")} == said_of_it
    assert every["profiles.be.memory.kernelPriority"] == 3
    assert every["profiles.be.memory.kernelPriorityOom"] is bool(enable)


def test_lse_has_the_block_of_lsr_and_best_effort_is_idle() -> None:
    cpu = {"cpuQOS": {"enable": True}}
    cache = {"resctrlQOS": {"enable": True, "catRangeEndPercent": 40}}
    result = said(made("resource-qos-config", {"beClass": cpu, "lsrClass": cache}).all())
    assert result["profiles.be.cpu.idle"] is True
    assert result["profiles.lse.cache.llcEndPercent"] == result["profiles.lsr.cache.llcEndPercent"] == 40


@pytest.mark.parametrize("block", ["lsClass", "systemClass"])
def test_a_class_that_is_switched_off_says_nothing_nor_does_that_of_system(block: str) -> None:
    fields = {"memoryQOS": {"enable": True, "wmarkRatio": 7}}
    on, off = ({"memoryQOS": fields["memoryQOS"] | {"enable": enable}} for enable in (True, False))
    assert said(made("resource-qos-config", {block: on}).all())
    assert said(made("resource-qos-config", {block: off}).all()) == {}


def test_a_key_that_cannot_be_read_makes_no_objects_and_takes_none_away() -> None:
    result = generated({"cpu-burst-config": "{", "system-config": '{"clusterStrategy": {"watermarkScaleFactor": 20}}'})
    assert "cpu-burst-config" not in result.objects
    assert said(result.all()) == {"sysctls.watermarkScaleFactor": 20}
    assert [f.path for f in result.findings] == ["cpu-burst-config"]


def test_what_has_no_equivalent_is_a_note_unless_it_is_off() -> None:
    block = {"blkioQOS": {"enable": True}, "networkQOS": {"enable": False}, "cpuQOS": {"enable": True, "schedIdle": 1}}
    result = made("resource-qos-config", {"lsClass": block})
    assert [f.path for f in result.notes] == [
        "resource-qos-config.clusterStrategy.lsClass.cpuQOS.schedIdle",
        "resource-qos-config.clusterStrategy.lsClass.blkioQOS.enable",
    ]
    assert result.findings == ()


def test_what_is_out_of_our_range_is_left_out_alone_with_a_note() -> None:
    result = made("system-config", {"watermarkScaleFactor": 5, "minFreeKbytesFactor": 100})
    assert said(result.all()) == {"sysctls.minFreeKbytesFactor": 100}
    assert [str(f) for f in result.notes] == [
        "system-config: sysctls.watermarkScaleFactor = 5: not heeded: out of range; use 10 to 400"
    ]


def test_features_and_switches_of_the_kernel_are_carried_to_the_nodes() -> None:
    features = {"NEXT_BUDDY": True, "TTWU_QUEUE": False}
    said_there = {"schedFeatures": features, "schedGroupIdentityEnabled": 1, "memcgReapBackGround": 0}
    result = made("system-config", {**said_there, "schedIdleSaverWmark": 3000000, "pageCacheLimitEnabled": 1})
    assert result.notes == ()
    assert said(result.all()) == {
        "sysctls.schedFeatures": ("NEXT_BUDDY", "NO_TTWU_QUEUE"),
        "sysctls.schedGroupIdentity": True,
        "sysctls.schedIdleSaverWmark": 3_000_000,
        "sysctls.memcgReapBackground": False,
        "sysctls.pageCacheLimit": True,
    }


@pytest.mark.parametrize("policy", ["coreSched", "groupIdentity"])
def test_who_expels_is_said_under_core_scheduling_alone(policy: str) -> None:
    block = {"cpuQOS": {"enable": True, "coreExpeller": False}}
    result = made("resource-qos-config", {"policies": {"cpuPolicy": policy}, "lsClass": block, "systemClass": block})
    expelling = {path: value for path, value in said(result.all()).items() if path.endswith("coreExpeller")}
    assert expelling == ({"profiles.ls.cpu.coreExpeller": False} if policy == "coreSched" else {})
    assert result.notes == ()


def test_annotations_of_nodes_that_no_strategy_can_say_are_notes() -> None:
    result = generated({}, [node("n1", {names.NETWORK_BANDWIDTH: "10G"})])
    assert [f.path for f in result.notes] == [f"node n1: {names.NETWORK_BANDWIDTH}"]


def test_the_cpus_of_system_are_those_that_the_node_says() -> None:
    """Nodes that say the same share one object; without the annotation nobody is set apart."""
    own = node("n1", {names.SYSTEM_QOS: '{"cpuset": "0-1"}'}), node("n2", {names.SYSTEM_QOS: '{"cpuset": "0-1"}'})
    shared = node("n3", {names.SYSTEM_QOS: '{"cpuset": "3", "cpusetExclusive": false}'})
    result = generated({}, [*own, shared, node("n4", {names.SYSTEM_QOS: '{"cpuset": ""}'})])
    hosts = {name: said(result.all(), **{"kubernetes.io/hostname": name}) for name in ("n1", "n2", "n3", "n4")}
    assert hosts["n1"] == hosts["n2"] == {"systemCpus.cpus": "0-1", "systemCpus.exclusive": True}
    assert hosts["n3"] == {"systemCpus.cpus": "3", "systemCpus.exclusive": False}
    assert (hosts["n4"], len(result.all()), result.notes, result.findings) == ({}, 2, (), ())


@pytest.mark.parametrize("text", ["{", '{"cpuset": "3-1"}', '{"cpuset": " "}', '{"cpuset": 3}'])
def test_cpus_of_system_that_are_wrong_are_reported_and_nobody_is_set_apart(text: str) -> None:
    result = generated({}, [node("n1", {names.SYSTEM_QOS: text})])
    assert result.all() == []
    assert [f.path.split(":")[0] for f in result.findings] == ["node n1"]


def test_cpus_of_system_go_with_the_annotation() -> None:
    """The key is among those that were read, so that its objects are deleted."""
    assert generated({}).objects["system-qos-resource"] == ()


def test_a_key_that_nobody_knows_is_reported_with_the_one_that_was_meant() -> None:
    (finding,) = generated({"cpu-burst-confg": "{}"}).findings
    assert "cpu-burst-config" in finding.hint
    assert generated({"theirs": "{}"}, extensions=("theirs",)).findings == ()


@given(
    st.dictionaries(
        st.sampled_from([*SHAPES, "other"]),
        st.text()
        | st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda leaf: st.lists(leaf) | st.dictionaries(st.text(), leaf),
        ).map(json.dumps),
    )
)
def test_whatever_a_configmap_holds_it_is_read(data: dict[str, str]) -> None:
    generated(data, [node("n1", {names.COLOCATION_STRATEGY: "[]"})])
