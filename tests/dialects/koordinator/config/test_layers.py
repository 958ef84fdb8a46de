"""What holds on one node, and which layer said so."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.config.burst import BurstWish
from j10ce.dialects.koordinator.config.colocation import Colocation
from j10ce.dialects.koordinator.config.keys import SHAPES, KeyConfig, read_key
from j10ce.dialects.koordinator.config.layers import Layer, NodeWords, effective

NOWHERE = NodeWords({}, {})


def config(key: str, document: object) -> KeyConfig:
    read, findings = read_key(key, json.dumps(document), SHAPES[key])
    assert not findings
    assert read is not None
    return read


@pytest.mark.parametrize("key", SHAPES)
def test_without_a_configmap_the_defaults_hold(key: str) -> None:
    strategy = effective(key, None, NOWHERE)
    assert strategy.plain == SHAPES[key].defaults
    assert {*strategy.layers.values()} <= {Layer("default")}
    assert strategy.strategy is not None


def test_the_first_entry_that_matches_lies_over_the_cluster_and_later_ones_do_not() -> None:
    document = {
        "clusterStrategy": {"policy": "auto", "cpuBurstPercent": 500},
        "nodeStrategies": [
            {"name": "other", "nodeSelector": {"matchLabels": {"pool": "x"}}, "policy": "none"},
            {"name": "first", "nodeSelector": {"matchLabels": {"pool": "a"}}, "cpuBurstPercent": 100},
            {"name": "second", "nodeSelector": {"matchLabels": {"pool": "a"}}, "policy": "none"},
        ],
    }
    strategy = effective("cpu-burst-config", config("cpu-burst-config", document), NodeWords({"pool": "a"}, {}))
    assert isinstance(strategy.strategy, BurstWish)
    assert (strategy.strategy.policy, strategy.strategy.cpu_burst_percent) == ("auto", 100)
    assert {path: str(layer) for path, layer in strategy.layers.items()} == {
        "policy": "cluster",
        "cpuBurstPercent": "node entry first",
        "cfsQuotaBurstPercent": "default",
        "cfsQuotaBurstPeriodSeconds": "default",
        "sharePoolThresholdPercent": "default",
    }


def test_nested_blocks_merge_field_by_field_and_lists_replace() -> None:
    document = {
        "clusterStrategy": {"beClass": {"cpuQOS": {"enable": True}, "blkioQOS": {"blocks": [{"name": "/dev/a"}]}}},
        "nodeStrategies": [
            {
                "name": "n",
                "nodeSelector": {"matchLabels": {"a": "b"}},
                "beClass": {"cpuQOS": {"groupIdentity": 0}, "blkioQOS": {"blocks": [{"name": "/dev/b"}]}},
            }
        ],
    }
    strategy = effective("resource-qos-config", config("resource-qos-config", document), NodeWords({"a": "b"}, {}))
    block = strategy.plain["beClass"]
    assert block["cpuQOS"] == {"enable": True, "groupIdentity": 0, "schedIdle": 0, "coreExpeller": False}
    assert [disk["name"] for disk in block["blkioQOS"]["blocks"]] == ["/dev/b"]
    assert strategy.layers["beClass.cpuQOS.enable"] == Layer("cluster")
    assert strategy.layers["beClass.cpuQOS.groupIdentity"] == Layer("node entry", "n")
    assert strategy.layers["beClass.cpuQOS.schedIdle"] == Layer("default")


def test_a_nodes_annotation_lies_over_its_entry_and_its_labels_over_that() -> None:
    node = NodeWords(
        {names.CPU_RECLAIM_LABEL: "0.29"},
        {names.COLOCATION_STRATEGY: '{"enable": true, "cpuReclaimThresholdPercent": 70}'},
    )
    strategy = effective("colocation-config", config("colocation-config", {"memoryReclaimThresholdPercent": 80}), node)
    assert isinstance(strategy.strategy, Colocation)
    assert (strategy.strategy.enable, strategy.strategy.cpu_reclaim_threshold_percent) == (True, 29)
    assert strategy.layers["enable"] == Layer("annotation", names.COLOCATION_STRATEGY)
    assert strategy.layers["cpuReclaimThresholdPercent"] == Layer("label", names.CPU_RECLAIM_LABEL)
    assert strategy.layers["memoryReclaimThresholdPercent"] == Layer("cluster")
    assert strategy.findings == ()


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        ({names.CPU_RECLAIM_LABEL: "much"}, {}),
        ({names.CPU_RECLAIM_LABEL: "-0.5"}, {}),
        ({names.MID_STATIC_CPU_LABEL: "1.01"}, {}),
        ({}, {names.COLOCATION_STRATEGY: "{"}),
        ({}, {names.COLOCATION_STRATEGY: '{"degradeTimeMinutes": 0}'}),
    ],
)
def test_a_layer_of_the_node_that_is_wrong_is_told_and_left_out(
    labels: dict[str, str], annotations: dict[str, str]
) -> None:
    strategy = effective("colocation-config", None, NodeWords(labels, annotations))
    assert strategy.plain == SHAPES["colocation-config"].defaults
    assert len(strategy.findings) == 1


def test_an_unknown_field_in_an_annotation_does_not_cost_the_others() -> None:
    node = NodeWords({}, {names.COLOCATION_STRATEGY: '{"enable": true, "fresh": 1}'})
    strategy = effective("colocation-config", None, node)
    assert strategy.plain["enable"] is True
    assert [finding.problem for finding in strategy.findings] == ["unknown field"]


def test_a_node_may_switch_normalisation_and_name_its_bandwidth() -> None:
    node = NodeWords({names.NORMALIZATION_ENABLED: "true"}, {names.NETWORK_BANDWIDTH: "10G"})
    assert effective("cpu-normalization-config", None, node).plain["enable"] is True
    assert effective("system-config", None, node).plain["totalNetworkBandwidth"] == "10G"
    wrong = NodeWords({names.NORMALIZATION_ENABLED: "yes"}, {names.NETWORK_BANDWIDTH: "10%"})
    for key in ("cpu-normalization-config", "system-config"):
        strategy = effective(key, None, wrong)
        assert strategy.plain == SHAPES[key].defaults
        assert len(strategy.findings) == 1


@given(st.dictionaries(st.sampled_from((names.CPU_RECLAIM_LABEL, names.NORMALIZATION_ENABLED)), st.text()), st.text())
def test_nothing_that_a_node_says_breaks_its_strategy(labels: dict[str, str], annotation: str) -> None:
    node = NodeWords(labels, {names.COLOCATION_STRATEGY: annotation, names.NETWORK_BANDWIDTH: annotation})
    for key in SHAPES:
        strategy = effective(key, None, node)
        assert strategy.strategy is not None
        assert all(map(str, strategy.layers.values()))
