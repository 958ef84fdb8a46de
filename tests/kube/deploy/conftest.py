"""A control plane of its own: installing and removing everything is what these tests do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.kube.conftest import CLONE, deploy_for
from tests.kubectl.conftest import Kubectl
from tests.lab.cluster import Answer, Cluster, running
from tests.lab.debian import program
from tests.lab.kubernetes import Version
from tests.lab.kwok import node

DEPLOY = CLONE / "deploy"
SYSTEM = "/api/v1/namespaces/j10ce-system"
CLUSTER_WIDE = {
    "apiextensions.k8s.io/v1": ("customresourcedefinitions",),
    "rbac.authorization.k8s.io/v1": ("clusterroles", "clusterrolebindings"),
    "admissionregistration.k8s.io/v1": ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
}
SINCE_1_30 = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")


@pytest.fixture(scope="package")
def cluster(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("deploy"), version, controllers=True) as started:
        started.call("POST", "/api/v1/nodes", node(0))
        yield started


@pytest.fixture(scope="package")
def kubectls(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Kubectl]:
    """By name; as an administrator, in whatever namespace the objects say."""
    home = tmp_path_factory.mktemp("home")
    return lambda name: Kubectl(program(name), cluster.kubeconfig("admin"), home, "")


@pytest.fixture(params=["kubectl-old", "kubectl"])
def kubectl(request: pytest.FixtureRequest, kubectls: Callable[[str], Kubectl]) -> Kubectl:
    return kubectls(request.param)


@pytest.fixture
def empty(cluster: Cluster) -> Iterator[Cluster]:
    """Whatever a test leaves behind is gone for the next one."""
    clear(cluster)
    yield cluster
    clear(cluster)


@pytest.fixture(scope="module")
def installed(cluster: Cluster, kubectls: Callable[[str], Kubectl]) -> Iterator[Cluster]:
    """With everything that the page says to apply on this version."""
    kubectls("kubectl")("apply", "-k", str(deploy_for(cluster.version)))
    yield cluster
    clear(cluster)


def clear(cluster: Cluster) -> None:
    for path in left_over(cluster):
        cluster.call("DELETE", path)
    cluster.wait("an empty cluster", lambda: not left_over(cluster))


def left_over(cluster: Cluster) -> list[str]:
    """Paths of all that is ours."""
    found = [SYSTEM] if exists(cluster, SYSTEM) else []
    for group, kinds in CLUSTER_WIDE.items():
        policies = group.startswith("admission") and cluster.version == "current"
        for kind in (*kinds, *(SINCE_1_30 if policies else ())):
            listed = cluster.call("GET", f"/apis/{group}/{kind}")["items"]
            names = (item["metadata"]["name"] for item in listed)
            found += [f"/apis/{group}/{kind}/{name}" for name in names if "j10ce" in name]
    return found


def exists(cluster: Cluster, path: str) -> bool:
    try:
        return bool(cluster.call("GET", path))
    except Answer as answer:
        if answer.status == 404:
            return False
        raise
