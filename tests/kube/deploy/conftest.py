"""A control plane of its own: installing and removing everything is what these tests do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.kube.deploy.leftovers import clear
from tests.kube.manifests import deploy_for
from tests.kubectl.kubectl import Kubectl
from tests.lab.debian import program
from tests.lab.kube.cluster import Cluster, running
from tests.lab.kube.kubernetes import Version
from tests.lab.kube.kwok import node


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
