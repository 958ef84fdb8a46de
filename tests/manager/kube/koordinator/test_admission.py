"""Koordinator's webhooks behind ours: what becomes of a pod, what is refused, and what is only said."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from typing import Any

import pytest

from j10ce.errors import Invalid, Unreachable
from j10ce.kube.client import KubeClient
from j10ce.manager.changes.patches import patched, read_operations
from j10ce.manager.kube.koordinator.admission import REQUIRED_LABELS, KoordinatorRules
from j10ce.manager.kube.koordinator.strategies import ConfigMapName
from j10ce.manager.kube.metrics import DoorMetrics
from j10ce.manager.kube.webhook import AdmissionRequest, GroupKind, PodRules, Response, WebhookDoor, pod_difference
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.model.kube.native import NativeMeta, Node, NodeStatus
from j10ce.model.quantity import Quantity
from j10ce.policy.profiles import builtin

WHERE = ConfigMapName("koordinator-system", "slo-controller-config")
OFFERED = NodeStatus(allocatable={"kubernetes.io/batch-cpu": Quantity(1000)})
BATCH = {
    "metadata": {"name": "batch"},
    "spec": {
        "selector": {"matchLabels": {"tier": "batch"}},
        "qosClass": "BE",
        "priorityClassName": "koord-batch",
        "labels": {"team": "data"},
    },
}
PRIORITY = {"metadata": {"name": "koord-batch"}, "value": 5000, "preemptionPolicy": "Never"}


def rules(
    *profiles: dict[str, Any], priorities: tuple[dict[str, Any], ...] = (PRIORITY,), nodes: tuple[Node, ...] = ()
) -> KoordinatorRules:
    client: KubeClient = None  # type: ignore[assignment]
    made = KoordinatorRules(client, lambda _: {}, lambda: nodes, WHERE)
    made.profiles.take({p["metadata"]["name"]: p for p in profiles})
    made.priorities.take({p["metadata"]["name"]: p for p in priorities})
    made.labels.take({})
    return made


def pod(resources: dict[str, Any] | None = None, **labels: str) -> dict[str, Any]:
    containers = [{"name": "c", "image": "x", "resources": resources or {}}]
    return {"metadata": {"name": "p", "labels": labels}, "spec": {"containers": containers}}


class Door:
    def __init__(self, made: KoordinatorRules, namespace_labels: dict[str, str] | None = None) -> None:
        objects: Any = None
        ours = PodRules(objects, lambda _: namespace_labels or {}, builtin)  # type: ignore[arg-type]
        self._door = WebhookDoor(ours, objects, DoorMetrics(Metrics().registry), foreign=made)

    def ask(self, verb: str, obj: dict[str, Any], old: Any = None, kind: str = "Pod", **more: str) -> Response:
        request = AdmissionRequest(
            uid="u",
            kind=GroupKind(kind),
            operation="UPDATE" if old else "CREATE",
            object=obj,
            old_object=old,
            namespace=more.get("namespace", "shop"),
            name=obj["metadata"]["name"],
        )
        return asyncio.run(self._door._judged(self._door._judges[verb], request))

    def created(self, obj: dict[str, Any]) -> dict[str, Any]:
        answer = self.ask("mutate", obj)
        assert answer.allowed, answer
        steps = read_operations(b64decode(answer.patch)) if answer.patch else ()
        after: dict[str, Any] = patched(obj, steps)
        return after


def test_a_profile_gives_a_pod_class_priority_and_labels() -> None:
    made = Door(rules(BATCH)).created(pod(tier="batch"))
    assert made["metadata"]["labels"] == {"tier": "batch", "team": "data", "koordinator.sh/qosClass": "BE"}
    assert (made["spec"]["priorityClassName"], made["spec"]["priority"]) == ("koord-batch", 5000)
    assert made["spec"]["preemptionPolicy"] == "Never"


def test_other_pods_and_clusters_without_profiles_are_left_alone() -> None:
    assert Door(rules(BATCH)).ask("mutate", pod(tier="web")).patch == ""
    assert Door(rules(priorities=())).ask("mutate", pod()).patch == ""


@pytest.mark.parametrize(("nodes", "asked"), [((Node(status=OFFERED),), "kubernetes.io/batch-cpu"), ((), "cpu")])
def test_amounts_become_those_of_batch_where_nodes_offer_them(nodes: tuple[Node, ...], asked: str) -> None:
    """Elsewhere the pod would wait for ever."""
    made = Door(rules(BATCH, nodes=nodes)).created(pod({"requests": {"cpu": "500m"}}, tier="batch"))
    assert [*made["spec"]["containers"][0]["resources"]["requests"]] == [asked]


def test_a_missing_priority_class_refuses_the_pod_and_says_which() -> None:
    answer = Door(rules(BATCH, priorities=())).ask("mutate", pod(tier="batch"))
    assert not answer.allowed
    assert answer.status is not None
    assert "ClusterColocationProfile/batch.spec.priorityClassName = 'koord-batch'" in answer.status["message"]


def test_a_profile_that_cannot_be_read_is_not_applied_and_the_others_are() -> None:
    wrong = {"metadata": {"name": "wrong"}, "spec": {"qosClass": "FAST"}}
    assert Door(rules(wrong, BATCH)).created(pod(tier="batch"))["metadata"]["labels"]["team"] == "data"


def test_profiles_that_change_count_at_once() -> None:
    made = rules(BATCH)
    door = Door(made)
    assert door.created(pod(tier="batch")) != pod(tier="batch")
    made.profiles.take({})
    assert door.ask("mutate", pod(tier="batch")).patch == ""


def test_while_profiles_are_being_read_pods_are_admitted_with_a_warning() -> None:
    client: KubeClient = None  # type: ignore[assignment]
    unread = KoordinatorRules(client, lambda _: {}, tuple, WHERE)
    with pytest.raises(Unreachable):
        unread.mutated("u", "shop", pod())
    answer = Door(unread).ask("mutate", pod())
    assert answer.allowed
    assert "still being read" in answer.warnings[0]


def test_a_default_of_the_namespace_does_not_overrule_a_class() -> None:
    default = {"j10ce.io/qos-profile": "be"}
    door = Door(rules(), default)
    assert door.created(pod())["metadata"]["labels"] == default
    assert door.ask("mutate", pod(**{"koordinator.sh/qosClass": "LS"})).patch == ""


def test_pods_as_the_guide_writes_them_are_admitted() -> None:
    door = Door(rules())
    for koord in ("BE", "LS", "SYSTEM"):
        assert door.ask("validate", pod(**{"koordinator.sh/qosClass": koord})).allowed


def test_a_class_that_its_priority_forbids_is_refused_and_one_that_is_odd_is_said() -> None:
    labels = {"koordinator.sh/qosClass": "BE", "koordinator.sh/priority-class": "koord-prod"}
    assert not Door(rules()).ask("validate", pod(**labels)).allowed
    odd = pod({"requests": {"cpu": "1"}}, **{"koordinator.sh/qosClass": "BE"})
    answer = Door(rules()).ask("validate", odd)
    assert answer.allowed
    assert "kubernetes.io/batch-cpu" in answer.warnings[0]


OWNER = {"enable": "true", "rules": '[{"name": "owner", "requiredLabels": ["team"]}]'}


def labelled(**data: str) -> dict[str, Any]:
    return {REQUIRED_LABELS: {"metadata": {"name": REQUIRED_LABELS, "uid": "u"}, "data": data}}


def test_labels_that_the_cluster_requires_follow_their_configmap() -> None:
    """One that breaks leaves what was right; without it nothing is required."""
    made = rules()
    door = Door(made)
    made.labels.take(labelled(**OWNER))
    refused = door.ask("validate", pod())
    assert not refused.allowed
    assert refused.status is not None
    assert "metadata.labels.team: missing; rule owner requires it" in refused.status["message"]
    assert door.ask("validate", pod(team="a")).allowed
    made.labels.take(labelled(enable="true", rules="["))
    assert not door.ask("validate", pod()).allowed
    made.labels.take({})
    assert door.ask("validate", pod()).allowed


def test_while_required_labels_are_being_read_other_rules_count_and_the_rest_is_admitted_with_a_warning() -> None:
    client: KubeClient = None  # type: ignore[assignment]
    door = Door(KoordinatorRules(client, lambda _: {}, tuple, WHERE))
    answer = door.ask("validate", pod())
    assert answer.allowed
    assert "still being read" in answer.warnings[0]
    labels = {"koordinator.sh/qosClass": "BE", "koordinator.sh/priority-class": "koord-prod"}
    assert not door.ask("validate", pod(**labels)).allowed


def test_rules_of_labels_that_are_wrong_are_refused() -> None:
    fresh = {"metadata": {"name": REQUIRED_LABELS}, "data": {**OWNER, "rules": "["}}
    assert not judged(fresh).allowed
    assert judged(fresh, namespace="elsewhere").allowed
    assert judged({**fresh, "data": OWNER}).allowed


def test_the_class_of_a_pod_may_not_change() -> None:
    before, after = (pod(**{"koordinator.sh/qosClass": koord}) for koord in ("LS", "BE"))
    answer = Door(rules()).ask("validate", after, before)
    assert not answer.allowed
    assert answer.status is not None
    assert "is immutable; it was LS" in answer.status["message"]


def config_map(**data: str) -> dict[str, Any]:
    return {"metadata": {"name": WHERE.name}, "data": {key.replace("_", "-"): text for key, text in data.items()}}


def judged(fresh: dict[str, Any], old: Any = None, namespace: str = WHERE.namespace) -> Response:
    node = Node(metadata=NativeMeta(name="n1", labels={"pool": "a", "zone": "x"}))
    return Door(rules(nodes=(node,))).ask("validate", fresh, old, "ConfigMap", namespace=namespace)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "ParseConfigFail"),
        ('{"clusterStrategy": {"cpuBurstPercent": 0}}', "ConfigParamInvalid"),
        (
            json.dumps(
                {
                    "nodeStrategies": [
                        {"name": "a", "nodeSelector": {"matchLabels": {"pool": "a"}}},
                        {"name": "b", "nodeSelector": {"matchLabels": {"zone": "x"}}},
                    ]
                }
            ),
            "ExistNodeConfict",
        ),
    ],
)
def test_a_configmap_that_is_wrong_is_refused_with_its_reason(text: str, reason: str) -> None:
    answer = judged(config_map(cpu_burst_config=text))
    assert not answer.allowed
    assert answer.status is not None
    assert reason in answer.status["message"]
    assert judged(config_map(cpu_burst_config=text), namespace="elsewhere").allowed


def test_an_old_mistake_in_one_key_does_not_keep_another_from_being_mended() -> None:
    old = config_map(cpu_burst_config="{", system_config="{")
    fresh = config_map(cpu_burst_config="{", system_config="{}")
    assert judged(fresh, old).allowed


def test_what_is_not_heeded_is_a_warning() -> None:
    text = json.dumps({"clusterStrategy": {"lsClass": {"networkQOS": {"enable": True}}}})
    answer = judged(config_map(resource_qos_config=text))
    assert answer.allowed
    assert "networkQOS.enable = True: not heeded" in answer.warnings[0]


def test_a_patch_says_what_differs_and_nothing_else() -> None:
    before = {"metadata": {"labels": {"a": "1"}, "name": "p"}, "spec": {"containers": [], "priority": 1}}
    after = {"metadata": {"labels": {"a": "2"}, "name": "p"}, "spec": {"containers": []}}
    steps = pod_difference(before, after)
    assert steps == [
        {"op": "add", "path": "/metadata/labels", "value": {"a": "2"}},
        {"op": "remove", "path": "/spec/priority"},
    ]
    assert pod_difference(before, before) == []


def test_a_draw_is_the_same_however_often_a_request_is_asked() -> None:
    half = {"metadata": {"name": "half"}, "spec": {"probability": "50%", "labels": {"drawn": "yes"}}}
    made = rules(half)
    draws = [made.mutated(str(n), "shop", pod()).pod for n in range(200)]
    assert draws == [made.mutated(str(n), "shop", pod()).pod for n in range(200)]
    assert 60 < sum("drawn" in p["metadata"]["labels"] for p in draws) < 140


def test_a_pod_that_is_refused_is_invalid() -> None:
    with pytest.raises(Invalid):
        rules(BATCH, priorities=()).mutated("u", "shop", pod(tier="batch"))
