"""Selectors as people write them: read by hand, in time linear in their length, which is bounded."""

from __future__ import annotations

import pytest

from j10ce.errors import Finding, Invalid
from j10ce.manager.api import query
from j10ce.model.bounds import may_repeat, repeated_keys, too_deep, too_many
from j10ce.model.schema import parse_plain
from j10ce.policy.validation import syntax

TABLE = [
    ("a=b", [("a", "In", ("b",))]),
    ("a==b", [("a", "In", ("b",))]),
    (" a = b , c != d ", [("a", "In", ("b",)), ("c", "NotIn", ("d",))]),
    ("a=", [("a", "In", ("",))]),
    ("e in (f,g)", [("e", "In", ("f", "g"))]),
    ("e  in( f , g ),x", [("e", "In", ("f", "g")), ("x", "Exists", ())]),
    ("h notin (i),!k", [("h", "NotIn", ("i",)), ("k", "DoesNotExist", ())]),
    ("! k", [("k", "DoesNotExist", ())]),
    ("e in ()", [("e", "In", ("",))]),
    ("kubernetes.io/in=in", [("kubernetes.io/in", "In", ("in",))]),
    ("in in (in)", [("in", "In", ("in",))]),
    ("", []),
    ("   ", []),
]


@pytest.mark.parametrize(("text", "wanted"), TABLE)
def test_a_selector_is_read(text: str, wanted: list[tuple[str, str, tuple[str, ...]]]) -> None:
    findings: list[Finding] = []
    requirements = query.label_selector(text, findings)
    assert [(r.key, r.operator, r.values) for r in requirements.match_expressions] == wanted
    assert findings == []


@pytest.mark.parametrize(
    "text",
    [
        "a=b,",
        ",",
        "=b",
        "a=b c",
        "e in (f",
        "e in f)",
        "e at (f)",
        "a in b in (c)",
        "a=é",
        "!",
        "a,,b",
        "(a)",
        "x" * 1025,
    ],
)
def test_a_selector_that_means_nothing_is_one_finding(text: str) -> None:
    findings: list[Finding] = []
    query.label_selector(text, findings)
    assert [finding.path for finding in findings] == ["labelSelector"]


@pytest.mark.parametrize("name", ["labelSelector", "fieldSelector", "continue", "resourceVersion"])
def test_a_long_question_is_refused_by_its_length(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        query.read({name: "a" * 100_000})
    assert [finding.path for finding in refused.value.findings] == [name]
    assert len(str(refused.value)) < 1_000


def test_a_long_target_is_none() -> None:
    assert syntax.is_target("group/" + "x/" * 400 + "x")
    assert not syntax.is_target("group/" + "x/" * 600 + "x")


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ('{"a":[{"b":1}]}', 3),
        ('["[[[[[[",{"\\\\":"]"}]', 2),
        ('{"a\\"{":{"\\\\\\"[":[]}}', 3),
        ("[[],[[]],[]]", 3),
        ("1", 0),
    ],
)
def test_the_levels_of_any_text_are_counted(text: str, levels: int) -> None:
    parse_plain(text)
    padded = "[" + "{}," * 100 + text + "]"  # so many brackets that they are looked at
    assert not too_deep(padded, levels + 1 if levels else 2)
    assert too_deep(padded, max(levels, 1))


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('{"a":1,"b":{"a":1}}', []),
        ('[{"a":1},{"a":2}]', []),
        ('{"a":1,"a":2}', ["a"]),
        ('{"s":[{"x":{"y":1,"y":2}}]}', ["s[0].x.y"]),
        ('{"a":"b",":k":1,":k":2}', [":k"]),
        ('{"a\\"":1,"a":2}', []),
        ('{"\\u0061":1,"a":2}', ["a"]),
        ('{"a":":::","a":1}', ["a"]),
        ('{"a": {":": ":"}, "b": ":", "a" :{":":":"}}', ["a"]),
        (' {"a":{"b":1,"c":2},"d":{"b":":"},"a":":"}', ["a"]),
    ],
)
def test_keys_that_stand_twice_are_found(text: str, paths: list[str]) -> None:
    assert repeated_keys(text) == paths
    assert may_repeat(text) or not paths


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0", 0),
        ("[]", 0),
        ('{"a": {}, "b": [ ]}', 2),
        ('{"a": [[], [0, {"b": 1}]]}', 6),
        ('{"a": ",[{", "\\"[,": "\\\\"}', 2),
        ('{"a": [1, 2], "a": 0}', 4),
    ],
)
def test_the_values_of_any_text_are_counted(text: str, values: int) -> None:
    parse_plain(text)
    assert too_many(text, values - 1)
    assert not too_many(text, values)
