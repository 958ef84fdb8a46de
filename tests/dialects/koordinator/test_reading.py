"""JSON of others: whatever it is, there is a value or there are findings, and never an exception."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.config.burst import BurstWish
from j10ce.dialects.koordinator.reading import read

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def test_what_is_right_is_read_without_findings() -> None:
    value, findings = read('{"policy": "auto", "cpuBurstPercent": 100}', BurstWish, "burst")
    assert (value, findings) == (BurstWish(policy="auto", cpu_burst_percent=100), [])


def test_a_null_is_what_was_left_out() -> None:
    assert read('{"policy": null}', BurstWish, "burst") == (BurstWish(), [])


def test_an_unknown_field_is_told_and_the_others_hold() -> None:
    value, findings = read('{"policy": "auto", "cpuBurstPercen": 1}', BurstWish, "burst")
    assert value == BurstWish(policy="auto")
    assert [(f.path, f.problem, f.hint) for f in findings] == [
        ("burst.cpuBurstPercen", "unknown field", "did you mean cpuBurstPercent?")
    ]


def test_a_field_that_is_named_twice_is_told() -> None:
    value, findings = read('{"policy": "auto", "policy": "none"}', BurstWish, "burst")
    assert value == BurstWish(policy="none")
    assert [(f.path, f.problem) for f in findings] == [("burst.policy", "duplicate field")]


@pytest.mark.parametrize(
    ("text", "path", "value", "hint"),
    [
        ('{"cpuBurstPercent": 0}', "burst.cpuBurstPercent", 0, "use 1 to 10000"),
        ('{"cpuBurstPercent": "5"}', "burst.cpuBurstPercent", "5", "use 1 to 10000"),
        ('{"cfsQuotaBurstPeriodSeconds": -2}', "burst.cfsQuotaBurstPeriodSeconds", -2, "use -1 to 2.14748e+09"),
        ('{"policy": "atuo"}', "burst.policy", "atuo", "did you mean auto? use one of auto, cfsQuotaBurstOnly, "),
    ],
)
def test_a_wrong_value_is_told_with_what_is_allowed_and_nothing_holds(
    text: str, path: str, value: Any, hint: str
) -> None:
    read_value, findings = read(text, BurstWish, "burst")
    assert read_value is None
    assert [(f.path, f.value) for f in findings] == [(path, value)]
    assert findings[0].hint.startswith(hint)


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "null", '"x"', "\ud800", "[" * 100_000, "{}" * 2, "nan"])
def test_text_that_is_no_object_is_told(text: str) -> None:
    value, findings = read(text, BurstWish, "burst")
    assert value is None
    assert findings
    assert all(f.hint for f in findings)


@given(st.text())
def test_any_text_is_read_or_told(text: str) -> None:
    value, findings = read(text, BurstWish, "burst")
    assert value is not None or findings


@given(JSON, st.dictionaries(st.sampled_from(("policy", "cpuBurstPercent", "x")), JSON))
def test_any_json_is_read_or_told(anything: Any, fields: dict[str, Any]) -> None:
    for data in (anything, fields):
        value, findings = read(json.dumps(data), BurstWish, "burst")
        assert value is not None or findings
        assert all(f.path.startswith("burst") for f in findings)
