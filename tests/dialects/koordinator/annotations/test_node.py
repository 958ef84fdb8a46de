"""Annotations of nodes: read strictly; what is wrong is told and left out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.annotations.node import NodeSays, read_node
from j10ce.model.quantity import Quantity

KEYS = (
    names.RESERVATION, names.SYSTEM_QOS, names.NETWORK_BANDWIDTH, names.NORMALIZATION_RATIO, names.CPU_BASIC_INFO,
    names.CPU_TOPOLOGY, names.POD_CPU_ALLOCS, names.CPU_SHARED_POOLS, names.BE_CPU_SHARED_POOLS,
    names.CPU_MANAGER_POLICY,
)  # fmt: skip
FIELDS = ("cpuset", "resources", "reservedCPUs", "cpu", "detail", "id", "core", "policy", "options", "node")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)


def test_everything_that_a_node_may_say_is_understood() -> None:
    said = {
        names.RESERVATION: '{"resources": {"cpu": "2", "memory": "5G"}, "applyPolicy": "Default"}',
        names.SYSTEM_QOS: '{"cpuset": "0-1"}',
        names.NETWORK_BANDWIDTH: "10G",
        names.NORMALIZATION_RATIO: "1.20",
        names.CPU_BASIC_INFO: '{"cpuModel": "X", "hyperThreadEnabled": true, "vendorID": "GenuineIntel"}',
        names.CPU_TOPOLOGY: '{"detail": [{"id": 0, "core": 0, "socket": 0, "node": 0}]}',
        names.POD_CPU_ALLOCS: '[{"namespace": "a", "name": "b", "uid": "c", "cpuset": "4-5"}]',
        names.CPU_SHARED_POOLS: '[{"socket": 0, "node": 0, "cpuset": "0-7"}]',
        names.BE_CPU_SHARED_POOLS: '[{"socket": 0, "node": 0, "cpuset": "0-3"}]',
        names.CPU_MANAGER_POLICY: '{"policy": "static", "options": {"full-pcpus-only": "true"}, "reservedCPUs": "0"}',
    }
    says, findings = read_node(said)
    assert findings == []
    assert all(word is not None for word in says)
    assert (says.bandwidth, says.ratio) == (Quantity(10**10), 1.2)
    assert says.system is not None
    assert says.system.cpuset_exclusive


@pytest.mark.parametrize(
    ("text", "milli", "memory"),
    [
        ('{"resources": {"cpu": "1500m", "memory": "1Gi"}}', 1500, 2**30),
        ('{"resources": {"cpu": "1500m"}, "reservedCPUs": "0-1,4"}', 3000, 0),
        ("{}", 0, 0),
    ],
)
def test_cpus_that_are_named_beat_a_number_of_them(text: str, milli: int, memory: int) -> None:
    says, _ = read_node({names.RESERVATION: text})
    assert says.reservation is not None
    assert (says.reservation.milli(), says.reservation.memory()) == (milli, memory)


@pytest.mark.parametrize(
    ("key", "text", "path"),
    [
        (names.RESERVATION, '{"reservedCPUs": "x"}', ".reservedCPUs"),
        (names.RESERVATION, '{"applyPolicy": "Always"}', ".applyPolicy"),
        (names.SYSTEM_QOS, '{"cpuset": "-1"}', ".cpuset"),
        (names.NETWORK_BANDWIDTH, "fast", ""),
        (names.NETWORK_BANDWIDTH, "50%", ""),
        (names.NORMALIZATION_RATIO, "0.99", ""),
        (names.NORMALIZATION_RATIO, "5.01", ""),
        (names.NORMALIZATION_RATIO, "nan", ""),
        (names.CPU_TOPOLOGY, '{"detail": [{"id": 0, "core": 0}, {"id": 0, "core": 1}]}', ".detail"),
        (names.CPU_TOPOLOGY, '{"detail": [{"id": 0}]}', ".detail[0].core"),
        (names.CPU_SHARED_POOLS, '[{"cpuset": "a"}]', "[0].cpuset"),
        (names.CPU_SHARED_POOLS, "{}", ""),
        (names.CPU_MANAGER_POLICY, '{"policy": "dynamic"}', ".policy"),
    ],
)
def test_what_is_malformed_is_told_with_its_place_and_not_heeded(key: str, text: str, path: str) -> None:
    says, findings = read_node({key: text})
    assert says == NodeSays()
    assert [finding.path for finding in findings] == [f"metadata.annotations.{key}{path}"]
    assert all(finding.hint for finding in findings)


@given(st.dictionaries(st.sampled_from(KEYS), st.text()))
def test_no_text_breaks_a_node(annotations: dict[str, str]) -> None:
    says, findings = read_node(annotations)
    assert isinstance(says, NodeSays)
    assert all(finding.path.startswith("metadata.annotations.") for finding in findings)


@given(st.sampled_from(KEYS), JSON)
def test_no_json_breaks_a_node(key: str, data: Any) -> None:
    says, findings = read_node({key: json.dumps(data)})
    assert isinstance(says, NodeSays)
    assert all(finding.path.startswith(f"metadata.annotations.{key}") for finding in findings)
