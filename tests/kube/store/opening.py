"""A store on the shared cluster, and the namespaces it needs."""

from __future__ import annotations

import time

from j10ce.kube.access import read_access
from j10ce.store.kube.store import KubeStore
from tests.lab.kube.cluster import Answer, Cluster

OURS = "/apis/j10ce.io/v1alpha1"
PLURALS = ("minimalreservationpolicies", "qosprofiles", "nodeqoses", "holds", "policyrevisions")


def opened(cluster: Cluster, **more: float) -> KubeStore:
    """As an administrator."""
    return KubeStore(read_access(f"kube://{cluster.kubeconfig('admin')}", {}), time.time, **more)  # type: ignore[arg-type]  # noqa: TID251


def make_namespace(cluster: Cluster, name: str) -> None:
    try:
        cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    except Answer as e:
        if e.status != 409:
            raise
