"""Controller-managers on a real API server, with the rights that deploy/ gives them, and nodes that kwok plays."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.kube.manager.managing import GROUP, Manager, Work, managed, managing
from tests.lab.kube.cluster import Cluster
from tests.lab.kube.kubernetes import Version


@pytest.fixture(scope="package")
def cluster(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with managed(tmp_path_factory.mktemp("managed"), version) as started:
        yield started


@pytest.fixture(scope="module")
def manager(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    with managing(cluster, tmp_path_factory.mktemp("manager")) as started:
        cluster.wait("leadership", lambda: started.leads)
        yield started


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh one; what it held is gone before the next test looks at the nodes."""
    name = f"test-{secrets.token_hex(4)}"
    cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    cluster.wait_for_account(name)
    yield name
    cluster.call("DELETE", f"{GROUP}/namespaces/{name}/minimalreservationpolicies")
    cluster.call("DELETE", f"/api/v1/namespaces/{name}/pods?gracePeriodSeconds=0")
    cluster.call("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def work(cluster: Cluster, namespace: str) -> Work:
    return Work(cluster, namespace)
