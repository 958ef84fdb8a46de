"""What is installed can run, and every overlay can be put over it."""

from __future__ import annotations

import pytest

from tests.kube.deploy.conftest import DEPLOY, SYSTEM
from tests.kubectl.conftest import Kubectl
from tests.lab.cluster import Cluster
from tests.lab.kubernetes import Version


def test_pods_of_both_processes_are_admitted(installed: Cluster) -> None:
    """By priority, security and service account; there is no kubelet to run them."""
    installed.wait("pods", lambda: components(installed) == {"agent", "controller-manager"})


def components(cluster: Cluster) -> set[str]:
    pods = cluster.call("GET", f"{SYSTEM}/pods")["items"]
    return {pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods}


@pytest.mark.parametrize("overlay", ["small", "webhooks-fail-closed", "scheduler", "strict"])
def test_an_overlay_applies_everywhere(installed: Cluster, kubectl: Kubectl, overlay: str) -> None:
    assert "namespace/j10ce-system" in kubectl("apply", "--dry-run=server", "-k", str(DEPLOY / "overlays" / overlay))


@pytest.mark.parametrize("overlay", ["cel", "current"])
def test_an_overlay_of_newer_versions_applies(
    installed: Cluster, kubectl: Kubectl, version: Version, overlay: str
) -> None:
    if version == "old" or kubectl.old:
        pytest.skip(f"Unsupported: overlay {overlay} needs a newer API server and a newer kubectl")
    told = kubectl("apply", "--dry-run=server", "-k", str(DEPLOY / "overlays" / overlay))
    assert ("validatingadmissionpolicy" in told) is (overlay == "current")
