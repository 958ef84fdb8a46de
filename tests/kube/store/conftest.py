"""A store on the shared cluster, without objects, and the namespaces that the conformance suite writes into."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from j10ce.kube.access import read_access
from j10ce.store.kube.store import KubeStore
from tests.lab.cluster import Answer, Cluster

OURS = "/apis/j10ce.io/v1alpha1"
PLURALS = ("minimalreservationpolicies", "qosprofiles", "nodeqoses", "holds", "policyrevisions")


@pytest.fixture(scope="session")
def namespaces(crds: Cluster) -> Cluster:
    for name in ("a", "b", "j10ce-system"):
        make_namespace(crds, name)
    return crds


@pytest.fixture
def empty(namespaces: Cluster) -> Cluster:
    for plural in PLURALS:
        for found in namespaces.call("GET", f"{OURS}/{plural}")["items"]:
            meta = found["metadata"]
            scope = f"namespaces/{meta['namespace']}/" if "namespace" in meta else ""
            namespaces.call("DELETE", f"{OURS}/{scope}{plural}/{meta['name']}")
    return namespaces


@pytest.fixture
async def store(empty: Cluster) -> AsyncIterator[KubeStore]:
    store = opened(empty)
    yield store
    await store.close()


def opened(cluster: Cluster, **more: float) -> KubeStore:
    """As an administrator."""
    return KubeStore(read_access(f"kube://{cluster.kubeconfig('admin')}", {}), time.time, **more)  # type: ignore[arg-type]  # noqa: TID251


def make_namespace(cluster: Cluster, name: str) -> None:
    try:
        cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    except Answer as e:
        if e.status != 409:
            raise
