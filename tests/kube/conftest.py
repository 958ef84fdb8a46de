"""One Kubernetes control plane for all tests that leave it whole: API server, etcd and controller manager.

Who breaks it, or needs a scheduler or nodes, starts one of its own: `with running(folder, version) as cluster`.
J10CE_KUBE_VERSION says which version: current, or old for v1.20.2.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.manifests import install_crds
from tests.kubectl.kubectl import Kubectl
from tests.lab.debian import program
from tests.lab.kube.cluster import Cluster, running
from tests.lab.kube.kubernetes import Version


@pytest.fixture(scope="session")
def version() -> Version:
    match os.environ.get("J10CE_KUBE_VERSION", "current"):
        case ("current" | "old") as known:
            return known
        case other:
            raise pytest.UsageError(f"J10CE_KUBE_VERSION={other!r}: use current or old")


@pytest.fixture(scope="session")
def cluster(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("kubernetes"), version, controllers=True) as started:
        yield started


@pytest.fixture(scope="session")
def crds(cluster: Cluster) -> Cluster:
    """The cluster with our kinds."""
    install_crds(cluster)
    return cluster


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh one."""
    name = f"test-{secrets.token_hex(4)}"
    cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    cluster.call("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(params=["kubectl-old", "kubectl"])
def kubectl(request: pytest.FixtureRequest, cluster: Cluster, namespace: str, tmp_path: Path) -> Kubectl:
    """An administrator's, in a namespace of its own; an old one and a current one."""
    return Kubectl(program(request.param), cluster.kubeconfig("admin"), tmp_path, namespace)
