"""Pods that go for others on a real API server: by its eviction API, within disruption budgets, each with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kube.scheduler.scheduling import NAME, PODS, Replica, node, node_of, permit, pod, replica
from tests.lab.kube.cluster import Cluster, running
from tests.lab.kube.kubernetes import Version

pytestmark = pytest.mark.kube
EVENTS = "/api/v1/namespaces/default/events"
MERGE = "application/merge-patch+json"
BY_PRIORITY = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": NAME}],
}


@pytest.fixture(scope="module")
def cluster(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("kubernetes"), version) as started:
        permit(started)
        for name, value in (("low", 1), ("high", 1000)):
            body = {"metadata": {"name": name}, "value": value}
            started.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
        yield started


@pytest.fixture
def scheduler(cluster: Cluster, tmp_path: Path) -> Iterator[Replica]:
    """With the profile of Kubernetes, on one node of four CPUs."""
    cluster.call("POST", "/api/v1/nodes", node("a"))
    (tmp_path / "config.json").write_text(json.dumps(BY_PRIORITY))
    with replica(cluster, tmp_path, more=["--config", str(tmp_path / "config.json")]) as started:
        cluster.wait("it to lead", lambda: started.leads)
        yield started
    cluster.call("DELETE", f"{PODS}?gracePeriodSeconds=0")
    cluster.call("DELETE", "/api/v1/nodes/a")
    cluster.wait("an empty cluster", lambda: not cluster.call("GET", PODS)["items"])


def run(cluster: Cluster, name: str, cpu: str, priority: str) -> None:
    made = pod(name, cpu, priorityClassName=priority)
    made["metadata"]["labels"] = {"app": name}
    cluster.call("POST", PODS, made)


def there(cluster: Cluster, name: str) -> bool:
    return any(p["metadata"]["name"] == name for p in cluster.call("GET", PODS)["items"])


def waits_because(cluster: Cluster, name: str) -> str:
    conditions: list[dict[str, Any]] = cluster.call("GET", f"{PODS}/{name}")["status"].get("conditions", [])
    return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")


def preempted(cluster: Cluster, name: str) -> list[str]:
    events = cluster.call("GET", EVENTS)["items"]
    return [e["message"] for e in events if e["involvedObject"]["name"] == name and e["reason"] == "Preempted"]


@pytest.mark.usefixtures("scheduler")
def test_the_least_important_goes_and_its_event_names_for_whom_and_why(cluster: Cluster) -> None:
    run(cluster, "low", "3", "low")
    cluster.wait("its node", lambda: node_of(cluster, "low"))
    run(cluster, "high", "3", "high")
    cluster.wait("the other one's node", lambda: node_of(cluster, "high"))
    assert not there(cluster, "low")
    cluster.wait("why", lambda: preempted(cluster, "low"))
    assert preempted(cluster, "low") == [
        "Preempted by default/high on node a: priority 1 is below 1000 of default/high, which needs its room"
    ]


@pytest.mark.usefixtures("scheduler")
def test_a_budget_keeps_a_pod_until_it_allows_that_it_goes(cluster: Cluster, version: Version) -> None:
    run(cluster, "guarded", "3", "low")
    cluster.wait("its node", lambda: node_of(cluster, "guarded"))
    # As a kubelet would: budgets do not guard what has not run yet.
    runs = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    cluster.call("PATCH", f"{PODS}/guarded/status", {"status": runs}, content=MERGE)
    budgets = f"/apis/policy/{'v1' if version == 'current' else 'v1beta1'}/namespaces/default/poddisruptionbudgets"
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "guarded"}}}
    made = cluster.call("POST", budgets, {"metadata": {"name": "kept"}, "spec": spec})
    allow(cluster, budgets, made, 0)
    run(cluster, "waiting", "3", "high")
    cluster.wait("a refusal", lambda: "disruption budget" in waits_because(cluster, "waiting"))
    assert there(cluster, "guarded")
    assert not preempted(cluster, "guarded")
    allow(cluster, budgets, made, 1)
    cluster.wait("the other one's node", lambda: node_of(cluster, "waiting"))
    assert not there(cluster, "guarded")


def allow(cluster: Cluster, budgets: str, made: dict[str, Any], disruptions: int) -> None:
    """As the controller of budgets would."""
    healthy = {"currentHealthy": 1, "desiredHealthy": 1 - disruptions, "expectedPods": 1}
    status = {"observedGeneration": made["metadata"]["generation"], "disruptionsAllowed": disruptions, **healthy}
    path = f"{budgets}/{made['metadata']['name']}/status"
    cluster.call("PATCH", path, {"status": status}, content=MERGE)
