"""Evictions from end to end: an agent sees that nothing is lent any more, the leader evicts, the kubelet ends the pod.

The trigger is Koordinator's own: what pods ask of batch memory, and what the ConfigMap lets the node lend.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kube.e2e.site import Site

pytestmark = pytest.mark.timeout(900)  # a trigger waits ten seconds, the manager looks every fifteen
ASKED = "kubernetes.io/batch-memory"
AMOUNT = {ASKED: "64Mi"}
ENFORCE = {
    "apiVersion": "j10ce.io/v1alpha1",
    "kind": "NodeStrategy",
    "metadata": {"name": "enforce"},
    "spec": {"eviction": {"mode": "enforce", "perMinute": 60}},
}


def lending(site: Site, percent: int) -> None:
    """The ConfigMap lets best effort have so much of the memory, and evicts where more is asked for than is lent."""
    data = {
        "colocation-config": {"enable": True, "memoryReclaimThresholdPercent": percent},
        "resource-threshold-config": {
            "clusterStrategy": {"enable": True, "memoryAllocatableEvictThresholdPercent": 100}
        },
    }
    name = {"name": "slo-controller-config", "namespace": "koordinator-system"}
    texts = {key: json.dumps(value) for key, value in data.items()}
    site.kubectl("apply", "-f", "-", given={"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": texts})


def lent(site: Site) -> int:
    node = site.kubectl.read("node", site.node.name)
    return int(node["status"]["allocatable"].get(ASKED, "-1"))


def wishes(site: Site) -> set[str]:
    """Of the agent, as its NodeQoS has them."""
    report = site.kubectl.read("nodeqos", site.node.name).get("status", {}).get("node", {})
    return {wish["name"] for wish in report.get("evictions", ())}


def batch_pod(name: str) -> dict[str, Any]:
    resources = {"requests": AMOUNT, "limits": AMOUNT}
    container = {"name": "c", "image": "busybox:1.37", "command": ["sleep", "2147483647"], "resources": resources}
    labels = {"koordinator.sh/qosClass": "BE", "koordinator.sh/priority-class": "koord-batch", "app": name}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def there(site: Site) -> set[str]:
    items = site.kubectl.read("-n", "batch", "pods")["items"]
    return {p["metadata"]["name"] for p in items if "deletionTimestamp" not in p["metadata"]}


def said(site: Site, name: str) -> set[str]:
    events = site.kubectl.read("-n", "batch", "events")["items"]
    return {e["reason"] for e in events if e["involvedObject"]["name"] == name}


@pytest.fixture
def batch(site: Site) -> Iterator[Site]:
    """Two pods on amounts that are lent: one that a budget keeps, and one that nobody does."""
    site.kubectl("create", "namespace", "batch")
    site.kubectl("apply", "-f", "-", given=ENFORCE)
    lending(site, 90)
    site.cluster.wait("memory that is lent", lambda: lent(site) > 1 << 30)
    for name in ("kept", "free"):
        site.kubectl("create", "-n", "batch", "-f", "-", given=batch_pod(name))
    version = "policy/v1" if site.cluster.version == "current" else "policy/v1beta1"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    budget = {"apiVersion": version, "kind": "PodDisruptionBudget", "metadata": {"name": "kept"}, "spec": spec}
    site.kubectl("create", "-n", "batch", "-f", "-", given=budget)
    site.cluster.wait("both to run", lambda: running(site) == {"kept", "free"})
    yield site
    site.kubectl("delete", "nodestrategy", "enforce")
    site.kubectl("delete", "namespace", "batch", "--wait=false")


def running(site: Site) -> set[str]:
    items = site.kubectl.read("-n", "batch", "pods")["items"]
    return {p["metadata"]["name"] for p in items if p["status"].get("phase") == "Running"}


def test_pods_leave_once_nothing_is_lent_within_budgets_and_stay_once_it_is_again(batch: Site) -> None:
    assert wishes(batch) == set()
    lending(batch, 0)
    batch.cluster.wait("nothing to be lent", lambda: lent(batch) == 0)
    batch.cluster.wait("the one without a budget to leave", lambda: "free" not in there(batch))
    batch.cluster.wait("its event", lambda: "EvictedForQoS" in said(batch, "free"))
    batch.cluster.wait("the other one to be asked for", lambda: "EvictionPending" in said(batch, "kept"))
    assert there(batch) == {"kept"}
    lending(batch, 90)
    batch.cluster.wait("nobody to be asked for", lambda: wishes(batch) == set())
    batch.kubectl("-n", "batch", "delete", "pdb", "kept")
    batch.kubectl("create", "-n", "batch", "-f", "-", given=batch_pod("marker"))
    batch.cluster.wait("the next one to run", lambda: "marker" in running(batch))
    assert there(batch) == {"kept", "marker"}, "what was withdrawn is never carried out"
