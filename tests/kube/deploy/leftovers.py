"""What an installation leaves on a cluster, and how it is cleared away."""

from __future__ import annotations

from tests.kube.manifests import CLONE
from tests.lab.kube.cluster import Answer, Cluster

DEPLOY = CLONE / "deploy"
SYSTEM = "/api/v1/namespaces/j10ce-system"
CLUSTER_WIDE = {
    "apiextensions.k8s.io/v1": ("customresourcedefinitions",),
    "rbac.authorization.k8s.io/v1": ("clusterroles", "clusterrolebindings"),
    "admissionregistration.k8s.io/v1": ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
}
SINCE_1_30 = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")


def clear(cluster: Cluster) -> None:
    for path in left_over(cluster):
        cluster.call("DELETE", path)
    cluster.wait("an empty cluster", lambda: not left_over(cluster))


def left_over(cluster: Cluster) -> list[str]:
    """Paths of all that is ours."""
    left = [SYSTEM] if exists(cluster, SYSTEM) else []
    for group, kinds in CLUSTER_WIDE.items():
        policies = group.startswith("admission") and cluster.version == "current"
        for kind in (*kinds, *(SINCE_1_30 if policies else ())):
            listed = cluster.call("GET", f"/apis/{group}/{kind}")["items"]
            names = (item["metadata"]["name"] for item in listed)
            left += [f"/apis/{group}/{kind}/{name}" for name in names if "j10ce" in name]
    return left


def exists(cluster: Cluster, path: str) -> bool:
    try:
        return bool(cluster.call("GET", path))
    except Answer as answer:
        if answer.status == 404:
            return False
        raise
