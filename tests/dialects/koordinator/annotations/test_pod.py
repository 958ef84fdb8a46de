"""Annotations of pods: read strictly; what is wrong is told, and the pod runs as if it were not there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.annotations.pod import PodWishes, read_pod, unheeded
from j10ce.model.quantity import Quantity

KEYS = (
    names.MEMORY_QOS, names.CPU_BURST, names.CPU_QOS, names.BLKIO_QOS, names.NETWORK_QOS, names.OOM_SCORE_ADJ,
    names.OOM_SCORE_ADJ_SPEC, names.EVICTION_POLICY, names.EVICTION_PRIORITY, names.RESCTRL, names.EXTENDED_RESOURCES,
    names.RESOURCE_SPEC, names.NUMA_SPEC, names.RESOURCE_STATUS, names.DEVICE_ALLOCATED, names.REPLACE_RESOURCES,
)  # fmt: skip
PER_CACHE = "schemataPerCache"
FIELDS = ("policy", "enable", "blocks", "cpuset", "llc", "mb", "schemata", "range", "percent", "containers", "requests")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)


def test_a_pod_that_says_nothing_asks_for_nothing() -> None:
    assert read_pod({"other": "{"}) == (PodWishes(), [])


def test_everything_that_a_pod_may_say_is_understood() -> None:
    said = {
        names.MEMORY_QOS: '{"policy": "auto", "minLimitPercent": 100, "pageCacheLimitSize": 1024}',
        names.CPU_BURST: '{"policy": "cpuBurstOnly", "cpuBurstPercent": 500}',
        names.CPU_QOS: '{"enable": true, "groupIdentity": -1}',
        names.BLKIO_QOS: '{"blocks": [{"name": "/dev/vda", "type": "device", "ioCfg": {"readIOPS": 100}}]}',
        names.NETWORK_QOS: '{"ingressLimit": "50M", "egressLimit": 1000}',
        names.OOM_SCORE_ADJ: "-500",
        names.OOM_SCORE_ADJ_SPEC: '{"main": 900}',
        names.EVICTION_POLICY: '["BECPUEvict"]',
        names.EVICTION_PRIORITY: "-3",
        names.RESCTRL: '{"llc": {"schemata": {"range": [0, 30]}}, "mb": {"schemataPerCache": [{"cacheID": 1}]}}',
        names.EXTENDED_RESOURCES: '{"containers": {"main": {"requests": {"kubernetes.io/batch-cpu": "500"}}}}',
        names.RESOURCE_SPEC: '{"requiredCPUBindPolicy": "FullPCPUs", "preferredCPUExclusivePolicy": "PCPULevel"}',
        names.NUMA_SPEC: '{"numaTopologyPolicy": "SingleNUMANode", "singleNUMANodeExclusive": "Required"}',
        names.RESOURCE_STATUS: '{"cpuset": "0-3", "numaNodeResources": [{"node": 1, "resources": {"cpu": "4"}}]}',
        names.DEVICE_ALLOCATED: '{"gpu": [{"minor": 0}]}',
        names.REPLACE_RESOURCES: "cpu:kubernetes.io/batch-cpu, memory:kubernetes.io/batch-memory",
    }  # fmt: skip
    wishes, findings = read_pod(said)
    assert findings == []
    assert all(wish is not None for wish in wishes)
    assert wishes.oom_scores == {"main": 900}
    assert wishes.replaced == (("cpu", "kubernetes.io/batch-cpu"), ("memory", "kubernetes.io/batch-memory"))
    assert wishes.extended is not None
    assert wishes.extended.containers["main"].requests == {"kubernetes.io/batch-cpu": Quantity(500)}
    late = (names.BLKIO_QOS, names.DEVICE_ALLOCATED, names.NUMA_SPEC, names.REPLACE_RESOURCES)
    assert unheeded(wishes) == late


@pytest.mark.parametrize(
    ("key", "text", "path"),
    [
        (names.MEMORY_QOS, "{", ""),
        (names.MEMORY_QOS, '{"policy": "Auto"}', ".policy"),
        (names.MEMORY_QOS, '{"minLimitPercent": 101}', ".minLimitPercent"),
        (names.CPU_BURST, '{"cpuBurstPercent": 10001}', ".cpuBurstPercent"),
        (names.CPU_QOS, '{"groupIdentity": -2}', ".groupIdentity"),
        (names.BLKIO_QOS, '{"blocks": [{"type": "device"}]}', ".blocks[0].name"),
        (names.BLKIO_QOS, '{"blocks": [{"name": "a"}, {"name": "a"}]}', ".blocks[1].name"),
        (names.NETWORK_QOS, '{"ingressLimit": "50%"}', ".ingressLimit"),
        (names.NETWORK_QOS, '{"ingressLimit": "-5"}', ".ingressLimit"),
        (names.OOM_SCORE_ADJ, "1001", ""),
        (names.OOM_SCORE_ADJ, "1.5", ""),
        (names.OOM_SCORE_ADJ_SPEC, '{"main": -1001}', ".main"),
        (names.OOM_SCORE_ADJ_SPEC, '{"main": true}', ".main"),
        (names.OOM_SCORE_ADJ_SPEC, "[]", ""),
        (names.EVICTION_POLICY, "BECPUEvict", ""),
        (names.EVICTION_POLICY, "{}", ""),
        (names.EVICTION_POLICY, "[1]", "[0]"),
        (names.EVICTION_PRIORITY, "2147483648", ""),
        (names.RESCTRL, '{"llc": {"schemata": {"range": [30, 30]}}}', ".llc.schemata.range"),
        (names.RESCTRL, '{"llc": {"schemataPerCache": [{"cacheID": 0, "range": [5]}]}}', f".llc.{PER_CACHE}[0].range"),
        (names.RESCTRL, '{"mb": {"schemata": {"percent": 101}}}', ".mb.schemata.percent"),
        (names.RESOURCE_SPEC, '{"requiredCPUBindPolicy": "full"}', ".requiredCPUBindPolicy"),
        (names.RESOURCE_STATUS, '{"cpuset": "3-1"}', ".cpuset"),
        (names.RESOURCE_STATUS, '{"cpuset": "0-99999999"}', ".cpuset"),
        (names.REPLACE_RESOURCES, "cpu", ""),
        (names.REPLACE_RESOURCES, "a:b:c", ""),
    ],
)  # fmt: skip
def test_what_is_malformed_is_told_with_its_place_and_not_heeded(key: str, text: str, path: str) -> None:
    wishes, findings = read_pod({key: text})
    assert wishes == PodWishes()
    assert [finding.path for finding in findings] == [f"metadata.annotations.{key}{path}"]
    assert all(finding.hint for finding in findings)


def test_a_pod_may_say_which_features_may_evict_it() -> None:
    anyone, _ = read_pod({names.EVICTION_POLICY: "[]"})
    one, _ = read_pod({names.EVICTION_POLICY: '["MemoryEvict"]'})
    assert (anyone.evictors, one.evictors) == (None, ("MemoryEvict",))


def test_a_feature_that_nobody_knows_is_told_and_evicts_nobody() -> None:
    wishes, findings = read_pod({names.EVICTION_POLICY: '["memoryEvict"]'})
    assert wishes.evictors == ("memoryEvict",)
    assert "did you mean MemoryEvict?" in findings[0].hint


def test_a_mistyped_annotation_is_told() -> None:
    _, findings = read_pod({"koordinator.sh/memoryQos": "{}"})
    assert [(f.problem, f.hint) for f in findings] == [("unknown annotation", f"did you mean {names.MEMORY_QOS}?")]


@given(st.dictionaries(st.sampled_from(KEYS), st.text()))
def test_no_text_breaks_a_pod(annotations: dict[str, str]) -> None:
    wishes, findings = read_pod(annotations)
    assert isinstance(wishes, PodWishes)
    assert all(finding.path.startswith("metadata.annotations.") for finding in findings)


@given(st.sampled_from(KEYS), JSON)
def test_no_json_breaks_a_pod(key: str, data: Any) -> None:
    wishes, findings = read_pod({key: json.dumps(data)})
    assert isinstance(wishes, PodWishes)
    assert all(finding.path.startswith(f"metadata.annotations.{key}") for finding in findings)
