"""Profiles applied to a pod that is created."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.webhook.mutate import Mutation, PriorityClass, mutate
from j10ce.dialects.koordinator.webhook.profile import ColocationProfile, is_drawn, read_profile

CLASSES = {"batch": PriorityClass(5500, "Never"), "mid": PriorityClass(7500), "free": PriorityClass(3500)}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def pod(*, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "labels": labels or {}}, "spec": {"containers": [], **spec}}


def container(name: str = "main", **resources: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": resources}


def profile(name: str = "p", *, keeps_resources: bool = False, **spec: Any) -> ColocationProfile:
    read, findings = read_profile(name, spec, keeps_resources=keeps_resources)
    assert findings == []
    assert read is not None
    return read


def done(raw: dict[str, Any], *profiles: ColocationProfile, draw: int = 0, **options: Any) -> Mutation:
    return mutate(raw, {"team": "a"}, profiles, CLASSES, lambda _: draw, **options)


def test_a_pod_that_no_profile_is_for_is_left_as_it_is() -> None:
    raw = pod(containers=[container(requests={"cpu": "1"})])
    other = profile(selector={"matchLabels": {"a": "b"}}, labels={"x": "y"})
    elsewhere = profile(namespaceSelector={"matchLabels": {"team": "b"}}, labels={"x": "y"})
    assert done(raw, other, elsewhere) == Mutation(raw)


ALL_OF_IT = {
    "namespaceSelector": {"matchLabels": {"team": "a"}},
    "selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    "qosClass": "BE",
    "priorityClassName": "batch",
    "koordinatorPriority": -7,
    "labels": {"l": "1"},
    "annotations": {"a": "2"},
    "labelKeysMapping": {"from": "to", "missing": "empty"},
    "annotationKeysMapping": {"a": "b"},
    "labelSuffixes": {"app": "-x", "to": "-y", "absent": "-z"},
    "schedulerName": "koord-scheduler",
    "patch": {"spec": {"terminationGracePeriodSeconds": 5}},
}


def test_everything_that_a_profile_says_is_done_and_the_pod_itself_is_not_touched() -> None:
    raw = pod(labels={"app": "web", "from": "v"}, schedulerName="default-scheduler")
    before = copy.deepcopy(raw)
    fresh = done(raw, profile(**ALL_OF_IT))
    assert raw == before
    assert fresh.applied == ("p",)
    assert fresh.pod["metadata"] == {
        "name": "p",
        "labels": {
            "app": "web-x",
            "from": "v",
            "l": "1",
            "to": "v-y",
            "empty": "",
            names.QOS_LABEL: "BE",
            names.SUB_PRIORITY_LABEL: "-7",
        },
        "annotations": {"a": "2", "b": "2"},
    }
    assert fresh.pod["spec"] == {
        "containers": [],
        "schedulerName": "koord-scheduler",
        "priorityClassName": "batch",
        "priority": 5500,
        "preemptionPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
    }


def test_a_null_in_a_patch_removes_a_field() -> None:
    fast = profile(patch={"spec": {"nodeSelector": {"disk": None, "zone": "a"}}})
    assert done(pod(nodeSelector={"disk": "ssd"}), fast).pod["spec"]["nodeSelector"] == {"zone": "a"}


def test_profiles_are_applied_in_the_order_of_their_names() -> None:
    fresh = done(pod(), profile("b", labels={"x": "b"}), profile("a", labels={"x": "a", "y": "a"}))
    assert fresh.applied == ("a", "b")
    assert fresh.pod["metadata"]["labels"] == {"x": "b", "y": "a"}


@pytest.mark.parametrize(
    ("probability", "draw", "applied"),
    [
        (0, 0, False),
        ("0%", 0, False),
        (50, 50, True),
        ("50%", 51, False),
        (100, 99, True),
        ("100%", 99, True),
        (1, 1, True),
    ],
)
def test_a_profile_is_drawn_by_its_probability(probability: Any, draw: int, applied: bool) -> None:
    assert is_drawn(profile(probability=probability), draw) is applied
    assert bool(done(pod(), profile(probability=probability, labels={"x": "y"}), draw=draw).applied) is applied


def test_a_priority_class_that_is_not_there_refuses_the_pod() -> None:
    raw = pod()
    fresh = done(raw, profile(priorityClassName="gone", labels={"x": "y"}))
    assert fresh.pod == raw
    assert fresh.refused is not None
    assert (fresh.refused.value, fresh.refused.problem) == ("gone", "no such PriorityClass")


AMOUNTS = {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"}


@pytest.mark.parametrize(("chosen", "kind"), [("batch", "batch"), ("mid", "mid")])
def test_amounts_of_every_container_and_the_overhead_become_those_of_the_band(chosen: str, kind: str) -> None:
    raw = pod(
        containers=[container(requests=AMOUNTS, limits=AMOUNTS), container("second")],
        initContainers=[container("init", limits={"cpu": "0.1"})],
        overhead={"cpu": "1", "memory": "1M"},
    )
    spec = done(raw, profile(priorityClassName=chosen)).pod["spec"]
    amounts = {f"kubernetes.io/{kind}-cpu": "500", f"kubernetes.io/{kind}-memory": "1Gi", "nvidia.com/gpu": "1"}
    assert spec["containers"][0]["resources"] == {"requests": amounts, "limits": amounts}
    assert spec["containers"][0]["image"] == "i"
    assert spec["containers"][1]["resources"] == {}
    copied = {f"kubernetes.io/{kind}-cpu": "100"}
    assert spec["initContainers"][0]["resources"] == {"requests": copied, "limits": copied}
    assert spec["overhead"] == {f"kubernetes.io/{kind}-cpu": "1000", f"kubernetes.io/{kind}-memory": "1M"}


def test_amounts_are_rewritten_by_priority_though_no_profile_is_there() -> None:
    fresh = done(pod(priority=5999, containers=[container(requests={"cpu": "1"})]))
    assert fresh.pod["spec"]["containers"][0]["resources"] == {"requests": {names.BATCH_CPU: "1000"}}
    spec = json.loads(fresh.pod["metadata"]["annotations"][names.EXTENDED_RESOURCES])
    assert spec == {"containers": {"main": {"requests": {names.BATCH_CPU: "1000"}}}}


@pytest.mark.parametrize(
    ("options", "spec"),
    [
        pytest.param({"keep_resources": True}, {"priorityClassName": "batch"}, id="the gate says so"),
        pytest.param({}, {"priorityClassName": "free"}, id="free is not rewritten"),
    ],
)
def test_amounts_that_stay(options: dict[str, Any], spec: dict[str, Any]) -> None:
    raw = pod(containers=[container(requests={"cpu": "1"})])
    assert done(raw, profile(**spec), **options).pod["spec"]["containers"] == raw["spec"]["containers"]


def test_a_profile_that_is_for_the_pod_may_keep_its_amounts() -> None:
    raw = pod(priority=5000, containers=[container(requests={"cpu": "1"})])
    assert done(raw, profile(keeps_resources=True)).pod["spec"] == raw["spec"]
    elsewhere = profile(keeps_resources=True, selector={"matchLabels": {"a": "b"}})
    assert done(raw, elsewhere).pod["spec"] != raw["spec"]


def test_an_amount_that_is_none_stays_and_is_told() -> None:
    fresh = done(pod(priority=5000, overhead={"cpu": "much", "memory": "1"}))
    assert fresh.pod["spec"]["overhead"] == {"cpu": "much", names.BATCH_MEMORY: "1"}
    assert [finding.path for finding in fresh.findings] == ["spec.overhead.cpu"]


@pytest.mark.parametrize(
    "selector", [{"matchLabels": {"a": 1}}, {"matchExpressions": [{"key": "a", "operator": "In"}]}, 7]
)
def test_a_selector_that_cannot_be_read_selects_nothing_and_theirs_everything(selector: Any) -> None:
    read, findings = read_profile("p", {"selector": selector, "labels": {"x": "y"}})
    assert read is not None
    assert findings
    assert done(pod(), read).applied == ()
    assert done(pod(), read, literal=True).applied == ("p",)


@pytest.mark.parametrize(
    "spec",
    [{"probability": "half"}, {"probability": 101}, {"probability": "-1%"}, {"qosClass": "BEST"}, {"labels": {"a": 1}},
     {"koordinatorPriority": 2**40}, [], "x"],
)  # fmt: skip
def test_a_profile_that_is_wrong_is_told_and_not_applied(spec: Any) -> None:
    read, findings = read_profile("p", spec)
    assert read is None
    assert findings
    assert all(finding.path.startswith("ClusterColocationProfile/p.spec") for finding in findings)


@given(JSON, JSON)
def test_no_profile_breaks_the_reader_and_no_patch_the_pod(spec: Any, patch: Any) -> None:
    read_profile("p", spec)
    read, findings = read_profile("p", {"patch": patch})
    assert read is not None or findings
    if read is not None:
        assert isinstance(done(pod(containers=[container()]), read).pod, dict)


@given(JSON, JSON)
def test_no_pod_breaks_the_webhook(meta: Any, spec: Any) -> None:
    for raw in ({"metadata": meta, "spec": spec}, {"metadata": {"labels": meta}, "spec": {"containers": spec}}):
        assert isinstance(done(raw, profile(labels={"x": "y"}, priorityClassName="batch")), Mutation)
