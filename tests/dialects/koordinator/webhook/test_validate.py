"""Why a pod is refused, and what is odd about one that is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from j10ce.dialects.koordinator import names
from j10ce.dialects.koordinator.webhook.required import LabelRule, RequiredLabels
from j10ce.dialects.koordinator.webhook.validate import oddities, validate

QOS, SUB = names.QOS_LABEL, names.SUB_PRIORITY_LABEL


def pod(
    koord: str = "", priority: int | None = None, labels: dict[str, str] | None = None, **requests: str
) -> dict[str, Any]:
    amounts = {name.replace("__", "/").replace("_", "-"): amount for name, amount in requests.items()}
    own = {QOS: koord} if koord else {}
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": amounts}}]}
    return {"metadata": {"labels": own | (labels or {})}, "spec": spec | ({"priority": priority} if priority else {})}


BATCH = {"kubernetes.io__batch_cpu": "500"}


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param({}, id="nothing at all"),
        pytest.param(pod("BE", 5500, **BATCH), id="batch"),
        pytest.param(pod("BE", 7500), id="best effort of mid"),
        pytest.param(pod("LSR", 9500, cpu="4"), id="LSR of prod"),
        pytest.param(pod("LSE", 5500, cpu="4"), id="LSE of batch, which they overlooked"),
        pytest.param(pod("LS", 5500), id="LS goes with anything"),
        pytest.param(pod("SYSTEM"), id="system, too"),
        pytest.param(pod(**{"kubernetes.io__batch_cpu": "0"}), id="nothing of batch"),
    ],
)
def test_good_pods_are_admitted(raw: dict[str, Any]) -> None:
    assert validate(raw) == []


@pytest.mark.parametrize(
    ("raw", "kind", "path"),
    [
        pytest.param(pod(**BATCH), "Required", QOS, id="batch without a class"),
        pytest.param(pod("LS", 9500, **{"kubernetes.io__batch_memory": "1Gi"}), "Required", QOS, id="batch of LS"),
        pytest.param(pod("BE"), "Forbidden", QOS, id="BE without a band"),
        pytest.param(pod("BE", 9500), "Forbidden", QOS, id="BE of prod"),
        pytest.param(pod("LSR", None, cpu="1"), "Forbidden", QOS, id="LSR without a band"),
        pytest.param(pod("LSR", 7500, cpu="1"), "Forbidden", QOS, id="LSR of mid"),
        pytest.param(pod("LSR", 5500, cpu="1"), "Forbidden", QOS, id="LSR of batch"),
        pytest.param(pod("LSR", 3500, cpu="1"), "Forbidden", QOS, id="LSR of free"),
        pytest.param(pod("LSR", 9500), "Required", "requests.cpu", id="LSR without CPUs"),
        pytest.param(pod("LSE", 9500, cpu="0"), "Required", "requests.cpu", id="LSE without CPUs"),
        pytest.param(pod("LSE", 9500, cpu="1500m"), "Invalid", "requests.cpu", id="half a CPU"),
        pytest.param(
            {"metadata": {"annotations": {names.RESERVATION_POD: "true"}}},
            "Forbidden",
            names.RESERVATION_POD,
            id="the scheduler's own annotation",
        ),
        pytest.param({"spec": {"containers": 7}}, "Invalid", "", id="no pod at all"),
    ],
)
def test_bad_pods_are_refused_with_a_hint(raw: dict[str, Any], kind: str, path: str) -> None:
    (refusal,) = validate(raw, literal=True)
    assert refusal.kind == kind
    assert refusal.finding.path.endswith(path)
    assert refusal.finding.hint


@pytest.mark.parametrize("koord", ["BE", "LSR"])
def test_a_class_without_a_priority_is_refused_by_theirs_alone(koord: str) -> None:
    resources = {"requests": {"cpu": "1"}} if koord == "LSR" else {}
    raw = {
        "metadata": {"labels": {"koordinator.sh/qosClass": koord}},
        "spec": {"containers": [{"name": "c", "resources": resources}]},
    }
    assert validate(raw) == []
    assert [r.kind for r in validate(raw, literal=True)] == ["Forbidden"]


@pytest.mark.parametrize(
    ("now", "before", "paths"),
    [
        pytest.param(pod("LS"), pod("LS"), [], id="as it was"),
        pytest.param(pod(), pod("LS"), [QOS], id="the class is gone"),
        pytest.param(pod("LS"), pod(), [QOS], id="there is a class now"),
        pytest.param(pod("LS", 9001), pod("LS", 9002), [], id="another number of the same band"),
        pytest.param(pod("LS", 9001), pod("LS", 7002), ["priority"], id="another band"),
        pytest.param(pod("LS"), pod("LS", 9001), ["priority"], id="no band any more"),
        pytest.param(pod(labels={SUB: "1"}), pod(labels={SUB: "2"}), [SUB], id="another priority in the band"),
        pytest.param(pod(), pod(labels={SUB: "2"}), [SUB], id="none any more"),
    ],
)
def test_what_may_not_change(now: dict[str, Any], before: dict[str, Any], paths: list[str]) -> None:
    refusals = validate(now, before)
    assert len(refusals) == len(paths)
    assert all(refusal.finding.path.endswith(path) for refusal, path in zip(refusals, paths, strict=True))
    skipped = validate(now, before, gates=["ColocationProfileSkipValidatingPriority"])
    assert len(skipped) == len([path for path in paths if path != SUB])


RULES = RequiredLabels(
    enable=True, rules=(LabelRule(name="owner", required_labels=("team", "app"), namespace_whitelist=("infra",)),)
)


@pytest.mark.parametrize(
    ("labels", "namespace", "missing"),
    [
        ({"team": "a", "app": "b"}, "shop", 0),
        ({"team": "a"}, "shop", 1),
        ({}, "shop", 2),
        ({}, "infra", 0),
        ({names.SKIP_VALIDATION_LABEL: "true"}, "shop", 0),
    ],
)
def test_labels_that_a_cluster_requires(labels: dict[str, str], namespace: str, missing: int) -> None:
    assert len(validate(pod(labels=labels), namespace=namespace, required=RULES)) == missing
    assert validate(pod(labels=labels), namespace=namespace, required=RequiredLabels(rules=RULES.rules)) == []


def test_a_pod_that_runs_may_go_on_without_a_label_that_is_required_since_and_not_lose_one() -> None:
    assert validate(pod(), pod(), namespace="shop", required=RULES) == []
    assert len(validate(pod(), pod(), namespace="shop", required=RULES, literal=True)) == 2
    (lost,) = validate(pod(labels={"app": "b"}), pod(labels={"team": "a", "app": "b"}), required=RULES)
    assert lost.finding.path == "metadata.labels.team"


def test_what_is_admitted_and_hardly_meant_is_told() -> None:
    assert oddities(pod("BE", 5500, **BATCH)) == []
    assert [finding.path for finding in oddities(pod("BE", 5500, cpu="1"))] == [
        "spec.containers[*].resources.requests.cpu"
    ]
    assert len(oddities(pod("LSE", 5500, cpu="1"))) == 2
    whole = {"limits": {"cpu": "4", "memory": "8Gi"}, "requests": {"cpu": "4", "memory": "8Gi"}}
    guide = {"priority": 0, "containers": [{"name": "c", "resources": whole}]}  # 0: as the API server fills it in
    assert oddities({"metadata": {"labels": {QOS: "LSE"}}, "spec": guide}) == []
    assert [finding.value for finding in oddities(pod("LSX"))] == ["LSX"]
    assert oddities({"spec": 1})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("labels", "containers", "priority", "resources", "cpu")), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON, JSON)
def test_no_pod_breaks_the_rules(meta: Any, spec: Any) -> None:
    raw = {"metadata": meta, "spec": spec}
    assert all(refusal.finding.hint for refusal in validate(raw, raw, required=RULES))
    assert isinstance(oddities(raw), list)


def test_a_pod_of_more_containers_than_anybody_runs_is_refused_before_it_is_read() -> None:
    """Anyone may create one, if only for a dry run; 18,000 took a second of every manager's time."""
    many = pod()
    many["spec"]["containers"] *= 1025
    (refusal,) = validate(many)
    assert str(refusal.finding) == "spec.containers: 1025 containers; use at most 1024"
