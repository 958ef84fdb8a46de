"""Terway's files of a node: bytes are bits here, every wrong line is named, and nothing that is written breaks us."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.terway.files import ClassRates, TerwayPod, node_rates, pods

FILE = """
# of this node
hw_tx_bps_max 900000000
hw_rx_bps_max=900000000
offline_l1_tx_bps_min = 100000000
offline_l1_tx_bps_max 200000000
l2_tx_bps_min 100000000
l2_tx_bps_max 300000000
"""


def test_rates_of_classes_are_bits_under_either_name() -> None:
    read = node_rates(FILE)
    assert not read.findings
    assert read.rates == {
        ("hw", "tx"): ClassRates(0, 7_200_000_000),
        ("hw", "rx"): ClassRates(0, 7_200_000_000),
        ("l1", "tx"): ClassRates(800_000_000, 1_600_000_000),
        ("l2", "tx"): ClassRates(800_000_000, 2_400_000_000),
    }


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        pytest.param("hw_tx_bps_max ten", ["global_bps_config:1"], id="no number"),
        pytest.param("hw_tx_bps_max 10\nspeed 5", ["global_bps_config:2"], id="an unknown key"),
        pytest.param("hw_tx_bps_max 99999999999999999999", ["global_bps_config:1"], id="too large"),
        pytest.param("l1_tx_bps_min 20\nl1_tx_bps_max 10", ["global_bps_config.l1_tx_bps_min"], id="above its maximum"),
        pytest.param(
            "hw_tx_bps_max 5\nl2_tx_bps_max 10",
            ["global_bps_config.l2_tx_bps_max", "global_bps_config.l1_tx_bps_max"],
            id="above the link",
        ),
    ],
)
def test_every_wrong_line_is_named(text: str, paths: list[str]) -> None:
    assert [f.path for f in node_rates(text).findings] == paths


def test_pods_have_a_class_and_rates() -> None:
    entry = {
        "podName": "web-0", "podNamespace": "shop", "podUID": "u1", "prio": 2, "cgroupDir": "/kubepods/u1",
        "qosConfig": {"ingressBandwidth": 1000, "egressBandwidth": 2000},
    }  # fmt: skip
    read = pods(json.dumps({"shop/web-0": entry, "bad": {"podName": "x"}, "worse": 7}))
    assert read.pods == (TerwayPod("shop", "web-0", "u1", 2, "/kubepods/u1", 16_000, 8_000),)
    assert [f.path for f in read.findings] == ["pod.json.bad", "pod.json.worse"]


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "[" * 100_000], ids=["empty", "open", "list", "number", "deep"])
def test_what_is_no_mapping_is_one_finding(text: str) -> None:
    assert len(pods(text).findings) == 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=8), v, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["podName", "podNamespace", "prio", "qosConfig", "cgroupDir", "podUID"])


@given(st.text(max_size=200) | st.lists(st.sampled_from(FILE.split()), max_size=12).map(" ".join))
def test_any_text_is_read_or_named(text: str) -> None:
    read = node_rates(text)
    assert all(rates.least >= 0 and rates.most >= 0 for rates in read.rates.values())


@given(st.dictionaries(st.text(max_size=8), st.dictionaries(KEYS, VALUES, max_size=6) | VALUES, max_size=4))
def test_any_mapping_of_pods_is_read_or_named(data: dict[str, Any]) -> None:
    read = pods(json.dumps(data))
    assert len(read.pods) + len(read.findings) == len(data)
