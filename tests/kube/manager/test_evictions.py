"""Evictions on a real API server: asked for by an agent, carried out by the leader, within disruption budgets.

With the rights that deploy/ gives the manager; the budget's controller is Kubernetes' own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.kube.manager.managing import GROUP, Work, agent
from tests.lab.kube.cluster import Cluster
from tests.lab.kube.kubernetes import Version

pytestmark = [pytest.mark.kube, pytest.mark.usefixtures("manager")]
STRATEGIES = f"{GROUP}/nodestrategies"


@contextmanager
def strategy(cluster: Cluster, **spec: Any) -> Iterator[None]:
    eviction = {"mode": "enforce", "perMinute": 60, "memory": {"thresholdPercent": 80}}
    body = {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeStrategy", "metadata": {"name": "evict"}}
    cluster.call("POST", STRATEGIES, body | {"spec": {"eviction": eviction, **spec}})
    try:
        yield
    finally:
        cluster.call("DELETE", f"{STRATEGIES}/evict")


@pytest.fixture
def enforced(cluster: Cluster) -> Iterator[None]:
    with strategy(cluster):
        yield


def pods(cluster: Cluster, work: Work) -> dict[str, dict[str, Any]]:
    """Those that nobody has asked to end."""
    listed = cluster.call("GET", f"/api/v1/namespaces/{work.namespace}/pods")["items"]
    return {p["metadata"]["name"]: p for p in listed if "deletionTimestamp" not in p["metadata"]}


def node_of(cluster: Cluster, number: int = 0) -> str:
    return str(cluster.call("GET", "/api/v1/nodes")["items"][number]["metadata"]["name"])


def runs(cluster: Cluster, work: Work, name: str, node: str) -> dict[str, Any]:
    """A pod of an owner, so that a budget counts it; as a request."""
    work.pod(name, node, app="web")
    path = f"/api/v1/namespaces/{work.namespace}/pods/{name}"
    cluster.wait(f"pod {name}", lambda: cluster.call("GET", path)["status"].get("phase") == "Running")
    uid = cluster.call("GET", path)["metadata"]["uid"]
    return {"namespace": work.namespace, "name": name, "uid": uid, "why": "memory of the node 96 % in use"}


def reasons(cluster: Cluster, work: Work) -> set[str]:
    listed = cluster.call("GET", f"/api/v1/namespaces/{work.namespace}/events")["items"]
    return {e["reason"] for e in listed if e["involvedObject"]["kind"] == "Pod"}


@pytest.mark.usefixtures("enforced")
def test_what_an_agent_asks_for_leaves_and_nobody_else(cluster: Cluster, work: Work) -> None:
    node = node_of(cluster)
    asked, other = runs(cluster, work, "web-0", node), runs(cluster, work, "web-1", node)
    with agent(cluster, node) as tell:
        tell(evictions=[asked, {**other, "uid": "00000000-0000-0000-0000-000000000000"}])
        cluster.wait("web-0 to leave", lambda: "web-0" not in pods(cluster, work))
        cluster.wait("an event", lambda: "EvictedForQoS" in reasons(cluster, work))
        assert "web-1" in pods(cluster, work)


@pytest.mark.usefixtures("enforced")
def test_a_budget_is_heeded_and_a_request_that_is_withdrawn_is_never_carried_out(
    cluster: Cluster, work: Work, version: Version
) -> None:
    node = node_of(cluster)
    asked = runs(cluster, work, "web-0", node)
    api = f"/apis/policy/{'v1' if version == 'current' else 'v1beta1'}/namespaces/{work.namespace}/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    cluster.call("POST", api, {"metadata": {"name": "web"}, "spec": spec})
    cluster.wait(
        "a judged budget", lambda: cluster.call("GET", f"{api}/web").get("status", {}).get("observedGeneration")
    )
    with agent(cluster, node) as tell:
        tell(evictions=[asked])
        cluster.wait("a refusal", lambda: "EvictionPending" in reasons(cluster, work))
        assert "web-0" in pods(cluster, work)
        tell(evictions=[])
        cluster.call("DELETE", f"{api}/web")
        marker = runs(cluster, work, "marker", node)
        tell(evictions=[marker])
        cluster.wait("the next one to leave", lambda: "marker" not in pods(cluster, work))
        assert "web-0" in pods(cluster, work), "it was withdrawn"
        tell(evictions=[asked])
        cluster.wait("web-0 to leave", lambda: "web-0" not in pods(cluster, work))


def test_nobody_leaves_a_node_whose_strategy_does_not_say_so(cluster: Cluster, work: Work) -> None:
    """The pod of the other node is the clock: its request came later."""
    here, there = node_of(cluster), node_of(cluster, 1)
    asked, other = runs(cluster, work, "web-0", here), runs(cluster, work, "web-1", there)
    with strategy(cluster, nodeSelector={"matchLabels": {"kubernetes.io/hostname": there}}):
        with agent(cluster, here) as tell, agent(cluster, there) as tell_there:
            tell(evictions=[asked])
            tell_there(evictions=[other])
            cluster.wait("web-1 to leave", lambda: "web-1" not in pods(cluster, work))
            assert "web-0" in pods(cluster, work)
