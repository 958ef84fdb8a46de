"""What the ConfigMap's webhook refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.config.conflicts import MOST_PAIRS, overlap, refusals
from j10ce.dialects.koordinator.config.keys import MOST_ENTRIES
from j10ce.model.kinds import Requirement, Selector
from j10ce.policy.select import matches

NODES = {"n1": {"pool": "a", "zone": "x"}, "n2": {"pool": "b"}}


def reasons(*selectors: dict[str, Any], **fields: Any) -> list[str]:
    entries = [{"name": f"e{n}", "nodeSelector": s} for n, s in enumerate(selectors)]
    text = json.dumps({"nodeStrategies": entries, **fields})
    return [refusal.reason for refusal in refusals({"cpu-burst-config": text}, NODES)]


def labelled(**labels: str) -> dict[str, Any]:
    return {"matchLabels": labels}


def expressed(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "pool", "operator": operator, "values": list(values)}]}


def test_a_good_configmap_is_admitted_and_keys_of_others_are_not_judged() -> None:
    assert reasons(labelled(pool="a"), labelled(pool="b"), clusterStrategy={"policy": "auto"}) == []
    assert refusals({"somebody-elses": "{"}, NODES) == []


@pytest.mark.parametrize("text", ["{", "[]", "", "7"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    assert {refusal.reason for refusal in refusals({"cpu-burst-config": text}, {})} == {"ParseConfigFail"}


def test_what_is_out_of_range_is_refused_in_the_cluster_and_in_entries() -> None:
    assert reasons(clusterStrategy={"cpuBurstPercent": 0}) == ["ConfigParamInvalid"]
    entry = {"name": "e", "nodeSelector": labelled(pool="a"), "cpuBurstPercent": 0}
    assert reasons(nodeStrategies=[entry]) == ["ConfigParamInvalid"]


def test_an_unknown_field_is_not_refused() -> None:
    assert reasons(clusterStrategy={"fresh": 1}) == []


def test_an_entry_needs_a_selector() -> None:
    assert reasons({}) == ["ConfigParamInvalid"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (labelled(pool="a"), labelled(pool="b"), []),
        (labelled(pool="a"), labelled(zone="y"), ["NodeStrategiesOverlap"]),
        (labelled(pool="a"), labelled(zone="x"), ["NodeStrategiesOverlap", "ExistNodeConfict"]),
        (labelled(pool="a"), expressed("NotIn", "a"), []),
        (labelled(pool="c"), expressed("Exists"), ["NodeStrategiesOverlap"]),
        (labelled(pool="a"), expressed("DoesNotExist"), []),
        (expressed("In", "c", "d"), expressed("In", "d", "e"), ["NodeStrategiesOverlap"]),
        (expressed("In", "c"), expressed("In", "d"), []),
        (expressed("Exists"), expressed("NotIn", "a"), ["NodeStrategiesOverlap", "ExistNodeConfict"]),
    ],
)
def test_two_entries_may_not_want_one_node(one: dict[str, Any], other: dict[str, Any], expected: list[str]) -> None:
    assert reasons(one, other) == expected


def test_classes_may_not_ask_for_more_bandwidth_than_another_key_says_there_is() -> None:
    classes = {"lsClass": {"networkQOS": {"egressRequest": "6G"}}, "beClass": {"networkQOS": {"egressRequest": "5G"}}}
    data = {
        "resource-qos-config": json.dumps({"clusterStrategy": classes}),
        "system-config": json.dumps({"clusterStrategy": {"totalNetworkBandwidth": "10G"}}),
    }
    assert [refusal.reason for refusal in refusals(data, {})] == ["ConfigParamInvalid"]
    data["system-config"] = json.dumps({"clusterStrategy": {"totalNetworkBandwidth": "11G"}})
    assert refusals(data, {}) == []


def test_who_mends_some_of_many_overlaps_hears_of_the_others() -> None:
    """Each pair of 256 entries beside each of 5,000 nodes would take hours, while all webhooks wait."""
    said = reasons(*(labelled(pool="a") for _ in range(MOST_ENTRIES)))
    assert said == ["NodeStrategiesOverlap", "ExistNodeConfict"] * MOST_PAIRS


def test_more_entries_than_can_be_compared_are_refused() -> None:
    assert reasons(*(labelled(pool=f"p{n}") for n in range(MOST_ENTRIES))) == []
    assert reasons(*(labelled(pool=f"p{n}") for n in range(MOST_ENTRIES + 1))) == ["ConfigParamInvalid"]


VALUES = st.sampled_from("ab")
REQUIREMENTS = st.builds(
    lambda key, operator, values: Requirement(
        key=key, operator=operator, values=values if operator in ("In", "NotIn") else ()
    ),
    st.sampled_from("kl"),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
    st.lists(VALUES, min_size=1).map(tuple),
)
SELECTORS = st.builds(
    lambda labels, expressions: Selector(match_labels=labels, match_expressions=expressions),
    st.dictionaries(st.sampled_from("kl"), VALUES, max_size=1),
    st.lists(REQUIREMENTS, max_size=3).map(tuple),
)
WORLD = [
    {key: value for key, value in (("k", k), ("l", v)) if value is not None}
    for k in ("a", "b", "other", None)
    for v in ("a", "b", "other", None)
]


@given(SELECTORS, SELECTORS)
def test_selectors_overlap_exactly_if_some_node_could_match_both(one: Selector, other: Selector) -> None:
    assert overlap(one, other) == any(matches(one, labels) and matches(other, labels) for labels in WORLD)
