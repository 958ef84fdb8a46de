"""Koordinator's ConfigMap on a real API server, with the rights that deploy/ gives for it and none of its CRDs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kube.manager.managing import GROUP, MERGE, Manager, agent, managing, plain_node
from tests.kube.manager.test_cli import Cli
from tests.kube.manager.test_nodes import MEASURED
from tests.kube.manifests import CLONE
from tests.kubectl.kubectl import Kubectl
from tests.lab.debian import program
from tests.lab.kube.cluster import Cluster

pytestmark = pytest.mark.kube
NAMESPACE = "koordinator-system"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
CONFIG = f"{CONFIG_MAPS}/slo-controller-config"
EXAMPLE = CLONE / "examples/koordinator/slo-controller-config.yaml"
BATCH = "kubernetes.io/batch-cpu"
SAID = "j10ce.io/dialect-findings"


@pytest.fixture(scope="module", autouse=True)
def obeying(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    """A leader with the option, beside a namespace for the ConfigMap."""
    folder = tmp_path_factory.mktemp("koordinator")
    kubectl = Kubectl(program("kubectl"), cluster.kubeconfig("admin"), folder, "j10ce-system")
    kubectl("apply", "-f", str(CLONE / "deploy/components/koordinator/rbac.yaml"))
    cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    with managing(cluster, folder, "koordinator", "--dialect", "koordinator") as started:
        cluster.wait("leadership", lambda: started.leads)
        yield started


@pytest.fixture
def config(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """The example's, taken back with all that was made of it."""
    body = yaml.safe_load(EXAMPLE.read_text())
    cluster.call("POST", CONFIG_MAPS, body)
    yield body
    if "slo-controller-config" in {o["metadata"]["name"] for o in cluster.call("GET", CONFIG_MAPS)["items"]}:
        cluster.call("DELETE", CONFIG)
    body["data"] = {"system-config": "{}"}
    cluster.call("POST", CONFIG_MAPS, body)
    cluster.wait("nothing", lambda: not strategies(cluster))
    cluster.call("DELETE", CONFIG)


def strategies(cluster: Cluster) -> dict[str, Any]:
    listed = cluster.call("GET", f"{GROUP}/nodestrategies?labelSelector=j10ce.io/dialect=koordinator")["items"]
    return {s["metadata"]["name"]: s for s in listed}


def annotations(cluster: Cluster, name: str) -> dict[str, str]:
    said: dict[str, str] = strategies(cluster)[name]["metadata"].get("annotations", {})
    return said


def written(cluster: Cluster, **keys: str) -> None:
    data = {key.replace("_", "-"): text for key, text in keys.items()}
    cluster.call("PATCH", CONFIG, {"data": data}, content=MERGE)


def events(cluster: Cluster, reason: str) -> list[str]:
    listed = cluster.call("GET", f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
    return [e["message"] for e in listed if e["reason"] == reason and e["involvedObject"]["kind"] == "ConfigMap"]


def whole(cluster: Cluster) -> dict[str, Any]:
    cluster.wait("all strategies", lambda: len(strategies(cluster)) == 5)
    return strategies(cluster)


def test_the_example_becomes_strategies_and_they_do_not_move_again(
    cluster: Cluster, config: dict[str, Any], obeying: Manager
) -> None:
    made = whole(cluster)
    assert made["koordinator-resource-threshold-online"]["spec"]["suppress"]["thresholdPercent"] == 50
    cluster.wait("a note", lambda: any("networkQOS" in m for m in events(cluster, "NotHeeded")))
    written(cluster, system_config=json.dumps({"clusterStrategy": {"watermarkScaleFactor": 30}}))
    cluster.wait("a sixth", lambda: len(strategies(cluster)) == 6)
    after = strategies(cluster)
    assert {name: s["metadata"]["generation"] for name, s in after.items()} == dict.fromkeys(after, 1)


def test_a_key_that_breaks_keeps_its_last_good_value_and_the_others_count(
    cluster: Cluster, config: dict[str, Any]
) -> None:
    before = whole(cluster)["koordinator-cpu-burst-cluster"]["spec"]
    written(cluster, cpu_burst_config="{", system_config='{"clusterStrategy": {"watermarkScaleFactor": 40}}')
    cluster.wait("the other key", lambda: "koordinator-system-cluster" in strategies(cluster))
    cluster.wait("its word", lambda: SAID in annotations(cluster, "koordinator-cpu-burst-cluster"))
    assert strategies(cluster)["koordinator-cpu-burst-cluster"]["spec"] == before
    cluster.wait("an event", lambda: any(m.startswith("cpu-burst-config") for m in events(cluster, "Refused")))


def test_a_configmap_that_is_deleted_leaves_everything_and_is_said(cluster: Cluster, config: dict[str, Any]) -> None:
    before = whole(cluster)
    cluster.call("DELETE", CONFIG)
    cluster.wait("an event", lambda: events(cluster, "ConfigMapDeleted"))
    assert {n: s["spec"] for n, s in strategies(cluster).items()} == {n: s["spec"] for n, s in before.items()}


def test_a_node_with_a_label_of_its_own_lends_by_it(cluster: Cluster, config: dict[str, Any]) -> None:
    whole(cluster)

    def own() -> list[str]:
        return [name for name in strategies(cluster) if name.startswith("koordinator-colocation-nodes-")]

    with plain_node(cluster, "generous", **{"node.koordinator.sh/cpu-reclaim-ratio": "0.9"}):
        cluster.wait("its own", own)
        (spec,) = (strategies(cluster)[name]["spec"] for name in own())
        assert spec["overcommit"]["cpu"]["thresholdPercent"] == 90
        assert spec["nodeSelector"]["matchExpressions"][0]["values"] == ["generous"]
    cluster.wait("its end", lambda: not own())


def test_what_may_be_lent_is_offered_by_its_names_unless_somebody_else_does(cluster: Cluster) -> None:
    def offered(node: str) -> str | None:
        value: str | None = cluster.call("GET", f"/api/v1/nodes/{node}")["status"]["allocatable"].get(BATCH)
        return value

    theirs = {"status": {"capacity": {BATCH: "7"}, "allocatable": {BATCH: "7"}}}
    status = "/api/v1/nodes/fake-0002/status?fieldManager=koord-manager"
    cluster.call("PATCH", status, theirs, content=MERGE)
    with agent(cluster, "fake-0002", **MEASURED), agent(cluster, "fake-0003", **MEASURED):
        cluster.wait("batch-cpu", lambda: offered("fake-0003"))
        allocatable = cluster.call("GET", "/api/v1/nodes/fake-0003")["status"]["allocatable"]
        assert allocatable[BATCH] == allocatable["j10ce.io/batch-cpu"]
        beside = "/api/v1/nodes/fake-0002"
        cluster.wait("ours", lambda: "j10ce.io/batch-cpu" in cluster.call("GET", beside)["status"]["allocatable"])
        assert offered("fake-0002") == "7"
    cluster.wait("its end", lambda: not offered("fake-0003"))
    cluster.call("PATCH", status, {"status": {"capacity": {BATCH: None}, "allocatable": {BATCH: None}}}, content=MERGE)


def test_explain_says_what_a_pod_gets_of_its_words(
    cluster: Cluster, config: dict[str, Any], namespace: str, tmp_path: Path
) -> None:
    whole(cluster)
    meta = {
        "name": "lse",
        "labels": {"koordinator.sh/qosClass": "LSE"},
        "annotations": {
            "koordinator.sh/memoryQOS": '{"minLimitPercent": 50}',
            "koordinator.sh/networkQOS": '{"egressLimit": "100M"}',
            "scheduling.koordinator.sh/resource-status": '{"cpuset": "0-1"}',
        },
    }
    spec = {"nodeName": "fake-0001", "containers": [{"name": "c", "image": "none"}]}
    cluster.call("POST", f"/api/v1/namespaces/{namespace}/pods", {"metadata": meta, "spec": spec})
    text = Cli(tmp_path, "--kubeconfig", str(cluster.kubeconfig("admin")))("explain", "pod/lse", "-n", namespace)
    assert "profile ls, tier sensitive, by label koordinator.sh/qosClass=LSE" in text
    assert "label the namespace j10ce.io/trusted=true" in text
    assert "annotation koordinator.sh/memoryQOS" in text
    assert "annotation koordinator.sh/networkQOS" in text
    assert "the agent chooses CPUs itself, which is not heeded" in text


def test_a_leader_that_starts_with_a_broken_key_leaves_the_last_good_value(
    cluster: Cluster, config: dict[str, Any], obeying: Manager, tmp_path: Path
) -> None:
    before = whole(cluster)["koordinator-cpu-burst-cluster"]["spec"]
    written(cluster, cpu_burst_config="{")
    cluster.wait("an event", lambda: any(m.startswith("cpu-burst-config") for m in events(cluster, "Refused")))
    with managing(cluster, tmp_path, "next", "--dialect", "koordinator") as follower:
        obeying.kill()
        cluster.wait("another leader", lambda: follower.leads)
        written(cluster, system_config='{"clusterStrategy": {"watermarkScaleFactor": 50}}')
        cluster.wait("that it obeys", lambda: "koordinator-system-cluster" in strategies(cluster))
        assert strategies(cluster)["koordinator-cpu-burst-cluster"]["spec"] == before
        written(cluster, cpu_burst_config='{"clusterStrategy": {"policy": "none"}}')
        cluster.wait(
            "that it heals",
            lambda: strategies(cluster)["koordinator-cpu-burst-cluster"]["spec"]["burst"]["policy"] == "none",
        )
        cluster.call("DELETE", CONFIG)
        cluster.call("DELETE", f"{GROUP}/nodestrategies?labelSelector=j10ce.io/dialect=koordinator")
        config["data"] = {}
        cluster.call("POST", CONFIG_MAPS, config)
