"""The ConfigMap that says which labels pods must have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.webhook.required import NONE_REQUIRED, LabelRule, RequiredLabels, read_rules

OWNER = '[{"name": "owner", "requiredLabels": ["team"], "namespaceWhitelist": ["infra"]}]'
RULE = LabelRule(name="owner", required_labels=("team",), namespace_whitelist=("infra",))


@pytest.mark.parametrize(
    ("data", "rules"),
    [
        pytest.param({}, NONE_REQUIRED, id="empty: off"),
        pytest.param({"rules": OWNER}, RequiredLabels(rules=(RULE,)), id="off unless said"),
        pytest.param({"enable": " True ", "rules": OWNER}, RequiredLabels(enable=True, rules=(RULE,)), id="on"),
        pytest.param({"enable": "true"}, RequiredLabels(enable=True), id="without rules"),
        pytest.param({"enable": "true", "rules": "null"}, RequiredLabels(enable=True), id="null rules"),
    ],
)
def test_it_is_read_as_it_is_written(data: dict[str, str], rules: RequiredLabels) -> None:
    assert read_rules(data) == (rules, ())


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"enable": "yes"}, "enable"),
        ({"enable": "true", "rules": "["}, "rules"),
        ({"enable": "true", "rules": "{}"}, "rules"),
        ({"rules": '[{"requiredLabels": "team"}]'}, "rules[0].requiredLabels"),
    ],
)
def test_what_is_wrong_makes_it_worth_nothing_and_is_named(data: dict[str, str], path: str) -> None:
    rules, findings = read_rules(data)
    assert rules is None
    assert [f.path for f in findings] == [path]


def test_what_nobody_knows_is_reported_and_the_rest_counts() -> None:
    rules, findings = read_rules({"enable": "true", "rules": '[{"name": "a", "weight": 1}]', "enabel": "x"})
    assert rules == RequiredLabels(enable=True, rules=(LabelRule(name="a"),))
    assert [f.path for f in findings] == ["enabel", "rules[0].weight"]


@given(st.dictionaries(st.sampled_from(("enable", "rules", "other")), st.text(max_size=20)))
def test_no_text_breaks_it(data: dict[str, str]) -> None:
    read_rules(data)
