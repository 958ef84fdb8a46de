"""Keys of the ConfigMap: defaults, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.config.keys import SHAPES, KeyConfig, merged, read_key
from j10ce.dialects.koordinator.reading import checked

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("key", SHAPES)
def test_the_defaults_of_every_key_are_right(key: str) -> None:
    shape = SHAPES[key]
    assert shape.struct is not None
    value, findings = checked(shape.defaults, shape.struct, key)
    assert value is not None
    assert [*findings, *shape.rules(value)] == []


@pytest.mark.parametrize("key", SHAPES)
def test_an_empty_document_is_the_defaults(key: str) -> None:
    assert read_key(key, "{}", SHAPES[key]) == (KeyConfig({}), [])


@pytest.mark.parametrize(
    ("key", "strategy", "path"),
    [
        ("colocation-config", {"resourceDiffThreshold": 0}, "resourceDiffThreshold"),
        ("colocation-config", {"degradeTimeMinutes": 0}, "degradeTimeMinutes"),
        ("colocation-config", {"midCPUThresholdPercent": 101}, "midCPUThresholdPercent"),
        ("colocation-config", {"cpuCalculatePolicy": "request"}, "cpuCalculatePolicy"),
        ("colocation-config", {"metricAggregatePolicy": {"durations": ["0s"]}}, "metricAggregatePolicy.durations[0]"),
        ("resource-threshold-config", {"cpuSuppressThresholdPercent": 101}, "cpuSuppressThresholdPercent"),
        ("resource-threshold-config", {"memoryEvictLowerPercent": 70}, "memoryEvictLowerPercent"),
        (
            "resource-threshold-config",
            {"cpuAllocatableEvictThresholdPercent": 110, "cpuAllocatableEvictLowerPercent": 110},
            "cpuAllocatableEvictLowerPercent",
        ),
        (
            "resource-threshold-config",
            {"cpuEvictBESatisfactionLowerPercent": 61, "cpuEvictBESatisfactionUpperPercent": 70},
            "cpuEvictBESatisfactionLowerPercent",
        ),
        (
            "resource-threshold-config",
            {"cpuEvictBESatisfactionUpperPercent": 70},
            "cpuEvictBESatisfactionLowerPercent",
        ),
        ("resource-threshold-config", {"allocatableEvictPriorityThreshold": 8000}, "allocatableEvictPriorityThreshold"),
        ("resource-qos-config", {"beClass": {"cpuQOS": {"groupIdentity": 3}}}, "beClass.cpuQOS.groupIdentity"),
        ("resource-qos-config", {"lsClass": {"memoryQOS": {"wmarkMinAdj": -26}}}, "lsClass.memoryQOS.wmarkMinAdj"),
        (
            "resource-qos-config",
            {"beClass": {"resctrlQOS": {"catRangeStartPercent": 30}}},
            "beClass.resctrlQOS.catRangeStartPercent",
        ),
        (
            "resource-qos-config",
            {"lsClass": {"networkQOS": {"ingressLimit": 50}}, "beClass": {"networkQOS": {"egressLimit": "50M"}}},
            "beClass.networkQOS.egressLimit",
        ),
        (
            "resource-qos-config",
            {"lsClass": {"networkQOS": {"ingressRequest": 60}}, "beClass": {"networkQOS": {"ingressRequest": 41}}},
            "networkQOS.ingressRequest",
        ),
        (
            "resource-qos-config",
            {"beClass": {"blkioQOS": {"blocks": [{"name": "/dev/vda", "ioCfg": {"ioWeightPercent": 0}}]}}},
            "beClass.blkioQOS.blocks[0].ioCfg.ioWeightPercent",
        ),
        ("cpu-burst-config", {"cfsQuotaBurstPercent": 99}, "cfsQuotaBurstPercent"),
        ("system-config", {"watermarkScaleFactor": 401}, "watermarkScaleFactor"),
        ("system-config", {"minFreeKbytesFactor": 0}, "minFreeKbytesFactor"),
        ("system-config", {"schedFeatures": {"ID_IDLE_AVG": "yes"}}, "schedFeatures.ID_IDLE_AVG"),
        ("host-application-config", {"applications": [{"name": "a"}]}, "applications[0].cgroupPath"),
        (
            "host-application-config",
            {"applications": [{"name": "a", "cgroupPath": {"relativePath": "../x"}}]},
            "applications[0].cgroupPath",
        ),
        ("cpu-normalization-config", {"defaultRatio": 5.01}, "defaultRatio"),
        ("cpu-normalization-config", {"ratioModel": {"X": {"baseRatio": 0.9}}}, "ratioModel.X.baseRatio"),
        (
            "resource-amplification-config",
            {"resourceAmplificationRatio": {"cpu": 0.5}},
            "resourceAmplificationRatio.cpu",
        ),
    ],
)
def test_what_is_out_of_range_is_told_with_a_hint_and_the_key_is_refused(
    key: str, strategy: dict[str, Any], path: str
) -> None:
    shape = SHAPES[key]
    text = json.dumps({shape.cluster: strategy} if shape.cluster else strategy)
    config, findings = read_key(key, text, shape)
    assert config is None
    assert [finding.path for finding in findings] == [f"{key}.{shape.cluster}.{path}".replace("..", ".")]
    assert all(finding.hint for finding in findings)


def test_more_than_the_whole_node_may_be_sold() -> None:
    config, findings = read_key("colocation-config", '{"cpuReclaimThresholdPercent": 150}', SHAPES["colocation-config"])
    assert (config, findings) == (KeyConfig({"cpuReclaimThresholdPercent": 150}), [])


def test_a_wrong_node_entry_is_dropped_alone_and_its_nodes_get_the_clusters_strategy() -> None:
    entries = [
        {"name": "bad", "nodeSelector": {"matchLabels": {"pool": "a"}}, "policy": "atuo"},
        {"name": "good", "nodeSelector": {"matchLabels": {"pool": "b"}}, "policy": "none"},
    ]
    text = json.dumps({"clusterStrategy": {"policy": "auto"}, "nodeStrategies": entries})
    config, findings = read_key("cpu-burst-config", text, SHAPES["cpu-burst-config"])
    assert config is not None
    assert [(entry.name, entry.overlay) for entry in config.entries] == [("bad", {}), ("good", {"policy": "none"})]
    assert [finding.path for finding in findings] == ["cpu-burst-config.nodeStrategies[0].policy"]


def test_an_entry_is_judged_together_with_the_cluster_below_it() -> None:
    entry = {"name": "n", "nodeSelector": {"matchLabels": {"a": "b"}}, "memoryEvictLowerPercent": 75}
    for threshold, paths in ((80, []), (75, ["resource-threshold-config.nodeStrategies[0].memoryEvictLowerPercent"])):
        text = json.dumps({"clusterStrategy": {"memoryEvictThresholdPercent": threshold}, "nodeStrategies": [entry]})
        _, findings = read_key("resource-threshold-config", text, SHAPES["resource-threshold-config"])
        assert [finding.path for finding in findings] == paths


@pytest.mark.parametrize(
    "selector", [{"matchLabels": {"a": 1}}, {"matchLabel": {"a": "b"}}, 7, {"matchExpressions": [{"key": "a"}]}]
)
def test_an_entry_whose_selector_cannot_be_read_selects_nobody(selector: object) -> None:
    text = json.dumps({"nodeStrategies": [{"name": "n", "nodeSelector": selector, "policy": "auto"}]})
    config, findings = read_key("cpu-burst-config", text, SHAPES["cpu-burst-config"])
    assert config == KeyConfig({})
    assert findings


@pytest.mark.parametrize("entry", [{"name": "n", "policy": "auto"}, {"name": "n", "nodeSelector": None}])
def test_an_entry_without_a_selector_selects_nobody(entry: dict[str, object]) -> None:
    """As theirs; one that is empty selects every node."""
    text = json.dumps({"nodeStrategies": [entry]})
    config, findings = read_key("cpu-burst-config", text, SHAPES["cpu-burst-config"])
    assert config == KeyConfig({})
    assert [finding.path for finding in findings] == ["cpu-burst-config.nodeStrategies[0].nodeSelector"]
    config, findings = read_key("cpu-burst-config", text.replace("null", "{}"), SHAPES["cpu-burst-config"])
    assert config is not None
    assert len(config.entries) == (1 if "nodeSelector" in entry else 0)


@given(st.sampled_from([*SHAPES]), JSON, JSON)
def test_no_document_breaks_the_reader(key: str, strategy: Any, entries: Any) -> None:
    shape = SHAPES[key]
    whole = {shape.cluster or "enable": strategy, shape.entries: entries}
    for data in (strategy, whole, {shape.entries: [entries]}):
        config, findings = read_key(key, json.dumps(data), shape)
        assert config is not None or findings


OBJECTS = st.recursive(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner | st.integers(0, 3)),
    max_leaves=8,
)


@given(OBJECTS, OBJECTS)
def test_what_lies_on_top_is_seen_and_what_it_does_not_cover_stays(lower: Any, upper: Any) -> None:
    whole = merged(lower, upper)
    assert whole.keys() == lower.keys() | upper.keys()
    assert all(whole[name] == value for name, value in upper.items() if not isinstance(value, dict))
    assert all(whole[name] == value for name, value in lower.items() if name not in upper)
    assert merged(whole, upper) == whole
