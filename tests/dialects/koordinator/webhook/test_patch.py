"""A patch merged into a pod, as Kubernetes does."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator.webhook.patch import patched

POD = {
    "metadata": {"labels": {"a": "1", "b": "2"}},
    "spec": {
        "containers": [{"name": "x", "image": "i", "env": [{"name": "E", "value": "1"}]}, {"name": "y", "args": ["a"]}],
        "tolerations": [{"key": "k"}],
    },
}


def containers(patch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return patched(POD, {"spec": {"containers": patch}})["spec"]["containers"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"metadata": {"labels": {"a": "9", "c": "3"}}}, {"a": "9", "b": "2", "c": "3"}, id="merged"),
        pytest.param({"metadata": {"labels": {"a": None}}}, {"b": "2"}, id="a null removes"),
        pytest.param({"metadata": {"labels": {"$patch": "replace", "c": "3"}}}, {"c": "3"}, id="replaced as a whole"),
    ],
)
def test_labels(patch: dict[str, Any], expected: dict[str, str]) -> None:
    assert patched(POD, patch)["metadata"]["labels"] == expected


def test_containers_merge_by_name_and_new_ones_are_added() -> None:
    done = containers([{"name": "x", "env": [{"name": "F", "value": "2"}]}, {"name": "z"}])
    assert done == [
        {"name": "x", "image": "i", "env": [{"name": "E", "value": "1"}, {"name": "F", "value": "2"}]},
        {"name": "y", "args": ["a"]},
        {"name": "z"},
    ]


def test_a_container_may_be_deleted_and_all_may_be_replaced() -> None:
    assert [c["name"] for c in containers([{"name": "x", "$patch": "delete"}])] == ["y"]
    assert containers([{"$patch": "replace"}, {"name": "z"}]) == [{"name": "z"}]


def test_lists_without_names_are_replaced() -> None:
    assert containers([{"name": "y", "args": ["b"]}])[1]["args"] == ["b"]
    assert patched(POD, {"spec": {"tolerations": []}})["spec"]["tolerations"] == []


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("name", "containers", "env", "$patch", "a")), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECT = st.dictionaries(st.sampled_from(("name", "containers", "env", "$patch", "a")), JSON, max_size=3)


@given(OBJECT, OBJECT)
def test_any_patch_is_merged_and_neither_side_is_changed(whole: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copy.deepcopy((whole, patch))
    done = patched(whole, patch)
    assert (whole, patch) == before
    assert all(name not in done for name, value in patch.items() if value is None and name != "$patch")
