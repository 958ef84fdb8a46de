"""Keys of the ConfigMap: defaults, what is refused, and the last good value of each."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.config.keys import SHAPES, Accepted, KeyConfig, accept, merged, read_key
from j10ce.dialects.koordinator.reading import checked
from j10ce.errors import Finding

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
BURST = '{"clusterStrategy": {"policy": "auto"}}'


def accepted(previous: dict[str, KeyConfig] | None = None, **texts: str) -> Accepted:
    return accept(previous or {}, {name.replace("_", "-"): text for name, text in texts.items()})


def paths(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.path for finding in findings]


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


@pytest.mark.parametrize("broken", ["{", "", "[]", '{"clusterStrategy": {"policy": "atuo"}}', '{"clusterStrategy": 1}'])
def test_one_broken_key_of_many_keeps_its_last_good_value(broken: str) -> None:
    before = accepted(cpu_burst_config=BURST, system_config="{}")
    after = accept(
        before.keys,
        {"cpu-burst-config": broken, "system-config": '{"clusterStrategy": {"watermarkScaleFactor": 20}}'},
    )
    assert after.keys["cpu-burst-config"].cluster == {"policy": "auto"}
    assert after.keys["system-config"].cluster == {"watermarkScaleFactor": 20}
    assert any("the last good value stays" in finding.problem for finding in after.findings)
    assert all(path.startswith("cpu-burst-config") for path in paths(after.findings))


def test_a_key_that_was_never_good_has_its_defaults() -> None:
    after = accepted(cpu_burst_config="{")
    assert after.keys == {}
    assert any("the defaults are in force" in finding.problem for finding in after.findings)


def test_a_key_that_is_gone_has_its_defaults_again() -> None:
    before = accepted(cpu_burst_config=BURST)
    assert accept(before.keys, {}) == Accepted({})


def test_a_configmap_that_is_gone_leaves_everything_as_it_was() -> None:
    before = accepted(cpu_burst_config=BURST)
    after = accept(before.keys, None)
    assert after.keys == before.keys
    assert [finding.problem for finding in after.findings] == ["was deleted"]
    assert accept({}, None) == Accepted({})


def test_unknown_keys_are_told_and_those_of_third_parties_are_carried() -> None:
    data = {"cpu-burst-confg": "{}", "yarn-config": '{"clusterStrategy": {"anything": [1]}}'}
    after = accept({}, data, extensions=["yarn-config"])
    assert after.keys == {"yarn-config": KeyConfig({"anything": [1]})}
    assert [(f.path, f.problem) for f in after.findings] == [("cpu-burst-confg", "unknown key")]
    assert "did you mean cpu-burst-config?" in after.findings[0].hint


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


@given(st.sampled_from([*SHAPES]), JSON, JSON)
def test_no_document_breaks_the_reader(key: str, strategy: Any, entries: Any) -> None:
    shape = SHAPES[key]
    whole = {shape.cluster or "enable": strategy, shape.entries: entries}
    for data in (strategy, whole, {shape.entries: [entries]}):
        config, findings = read_key(key, json.dumps(data), shape)
        assert config is not None or findings


@given(st.dictionaries(st.sampled_from((*SHAPES, "other")), st.text()))
def test_no_configmap_breaks_the_reader(data: dict[str, str]) -> None:
    after = accept({}, data)
    assert after.keys.keys() <= data.keys()


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
