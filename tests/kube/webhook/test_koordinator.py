"""Koordinator's webhooks behind ours on a real API server, as the option of deploy/ registers them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.kube.manifests import CLONE, built
from tests.kube.plane import managing
from tests.kube.webhook.test_admission import PODS, Hooked, prepare, register
from tests.lab.kube.cluster import Answer, Cluster, running
from tests.lab.kube.kubernetes import Version

pytestmark = pytest.mark.kube
NAMESPACE = "koordinator-system"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
MERGE = "application/merge-patch+json"
GROUP = "config.koordinator.sh"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"clustercolocationprofiles.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {
            "kind": "ClusterColocationProfile",
            "plural": "clustercolocationprofiles",
            "singular": "clustercolocationprofile",
        },
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
PROFILES = f"/apis/{GROUP}/v1alpha1/clustercolocationprofiles"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.fixture(scope="module")
def hooked(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hooked]:
    folder = tmp_path_factory.mktemp("koordinator")
    prefix = "" if version == "current" else "kubernetes-1.20-"
    with running(folder, version, controllers=True) as cluster:
        prepare(cluster)
        own = {"name": NAMESPACE, "labels": {"kubernetes.io/metadata.name": NAMESPACE}}
        cluster.call("POST", "/api/v1/namespaces", {"metadata": own})
        with managing(cluster, folder, host="0.0.0.0", more=("--dialect", "koordinator")) as plane:
            objects = built(CLONE / f"deploy/overlays/{prefix}koordinator")
            register(cluster, plane.port, [o for o in objects if o["kind"].endswith("WebhookConfiguration")], "Ignore")
            rig = Hooked(cluster, plane)
            cluster.wait("webhooks", rig.judged)
            yield rig


def pod(name: str = "p", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}


def created(cluster: Cluster, body: dict[str, Any]) -> Any:
    return cluster.call("POST", f"{PODS}?dryRun=All", body)


def config_map(name: str = "slo-controller-config", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {key.replace("_", "-"): text for key, text in data.items()}}


def test_without_any_of_its_crds_its_pods_are_admitted_as_they_are(hooked: Hooked) -> None:
    raws = yaml.safe_load_all((CLONE / "examples/koordinator/pods.yaml").read_text())
    for raw in (r for r in raws if r["kind"] == "Pod"):
        assert created(hooked.cluster, raw)["metadata"]["labels"] == raw["metadata"]["labels"]


def test_a_pod_that_its_rules_forbid_is_refused(hooked: Hooked) -> None:
    labels = {"koordinator.sh/qosClass": "BE", "koordinator.sh/priority-class": "koord-prod"}
    with pytest.raises(Answer, match="class BE and priority class koord-prod do not go together"):
        created(hooked.cluster, pod(**labels))


def test_the_class_of_a_pod_that_is_there_may_not_change(hooked: Hooked) -> None:
    hooked.cluster.call("POST", PODS, pod("fixed", **{"koordinator.sh/qosClass": "LS"}))
    for koord in ("BE", None):
        body = {"metadata": {"labels": {"koordinator.sh/qosClass": koord}}}
        with pytest.raises(Answer, match="is immutable; it was LS"):
            hooked.cluster.call("PATCH", f"{PODS}/fixed", body, content=MERGE)
    hooked.cluster.call("PATCH", f"{PODS}/fixed", {"metadata": {"labels": {"other": "x"}}}, content=MERGE)


def test_a_configmap_is_checked_and_others_are_not(hooked: Hooked) -> None:
    wrong = '{"clusterStrategy": {"cpuBurstPercent": 0}}'
    with pytest.raises(Answer, match=r"cpuBurstPercent.*ConfigParamInvalid"):
        hooked.cluster.call("POST", CONFIG_MAPS, config_map(cpu_burst_config=wrong))
    hooked.cluster.call("POST", CONFIG_MAPS, config_map("others", cpu_burst_config=wrong))
    hooked.cluster.call("POST", CONFIG_MAPS, config_map(cpu_burst_config='{"clusterStrategy": {"policy": "auto"}}'))
    body = {"data": {"system-config": "{"}}
    with pytest.raises(Answer, match="ParseConfigFail"):
        hooked.cluster.call("PATCH", f"{CONFIG_MAPS}/slo-controller-config", body, content=MERGE)


def test_labels_that_a_cluster_requires_count_at_once_and_not_for_pods_that_run(hooked: Hooked) -> None:
    cluster, where = hooked.cluster, f"{CONFIG_MAPS}/pod-enhanced-validator-config"
    cluster.call("POST", PODS, pod("unlabelled"))
    rule = {"name": "owner", "requiredLabels": ["team"], "namespaceWhitelist": ["kube-public"]}
    data = {"enable": "true", "rules": json.dumps([rule])}
    cluster.call("POST", CONFIG_MAPS, {"metadata": {"name": "pod-enhanced-validator-config"}, "data": data})
    cluster.wait("the rule", lambda: "rule owner requires it" in refusal(cluster))
    created(cluster, pod(team="a"))
    cluster.call("PATCH", f"{PODS}/unlabelled", {"metadata": {"labels": {"other": "x"}}}, content=MERGE)
    with pytest.raises(Answer, match=r"rules.*not JSON"):
        cluster.call("PATCH", where, {"data": {"rules": "["}}, content=MERGE)
    cluster.call("DELETE", where)
    cluster.wait("no rule", lambda: not refusal(cluster))


def test_a_profile_counts_once_its_kind_is_installed_and_a_missing_priority_refuses_the_pod(hooked: Hooked) -> None:
    cluster = hooked.cluster
    cluster.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    spec = {
        "selector": {"matchLabels": {"kind": "batch"}},
        "qosClass": "BE",
        "priorityClassName": "koord-batch",
        "labels": {"team": "data"},
    }
    made = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "ClusterColocationProfile", "metadata": {"name": "batch"}}
    cluster.wait("the kind", lambda: served(cluster))
    cluster.call("POST", PROFILES, {**made, "spec": spec})
    cluster.wait("a refusal", lambda: "no such PriorityClass" in refusal(cluster))
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "koord-batch"}}
    cluster.call("POST", PRIORITIES, {**priority, "value": 5000})
    cluster.wait("the priority", lambda: not refusal(cluster))
    after = created(cluster, pod(kind="batch"))
    assert after["metadata"]["labels"] == {"kind": "batch", "team": "data", "koordinator.sh/qosClass": "BE"}
    assert (after["spec"]["priorityClassName"], after["spec"]["priority"]) == ("koord-batch", 5000)
    assert "team" not in created(cluster, pod(kind="web"))["metadata"]["labels"]


def served(cluster: Cluster) -> bool:
    try:
        cluster.call("GET", PROFILES)
    except Answer:
        return False
    return True


def refusal(cluster: Cluster) -> str:
    try:
        created(cluster, pod(kind="batch"))
    except Answer as e:
        return str(e)
    return ""
