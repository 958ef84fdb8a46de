"""What is installed can run, and every overlay can be put over it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kube.deploy.leftovers import DEPLOY, SYSTEM
from tests.kubectl.kubectl import Kubectl
from tests.lab.kube.cluster import Cluster
from tests.lab.kube.kubernetes import Version


def test_pods_of_both_processes_are_admitted(installed: Cluster) -> None:
    """By priority, security and service account; there is no kubelet to run them."""
    installed.wait("pods", lambda: components(installed) == {"agent", "controller-manager"})


def components(cluster: Cluster) -> set[str]:
    pods = cluster.call("GET", f"{SYSTEM}/pods")["items"]
    return {pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods}


@pytest.mark.parametrize("overlay", ["small", "fail-closed", "scheduler", "strict", "network-policy"])
def test_an_overlay_applies(
    installed: Cluster, kubectls: Callable[[str], Kubectl], version: Version, overlay: str
) -> None:
    name = overlay if version == "current" else f"kubernetes-1.20-{overlay}"
    output = kubectls("kubectl")("apply", "--dry-run=server", "-k", str(DEPLOY / "overlays" / name))
    assert "namespace/j10ce-system" in output


@pytest.mark.parametrize(
    ("role", "words", "allowed"),
    [
        ("view", "get minimalreservationpolicies.j10ce.io", "yes"),
        ("view", "create minimalreservationpolicies.j10ce.io", "no"),
        ("edit", "create minimalreservationpolicies.j10ce.io", "yes"),
        ("edit", "patch minimalreservationpolicies.j10ce.io --subresource=scale", "yes"),
        ("view", "patch minimalreservationpolicies.j10ce.io --subresource=scale", "no"),
        ("edit", "create holds.j10ce.io", "no"),
        ("admin", "create holds.j10ce.io", "yes"),
        ("admin", "update qosprofiles.j10ce.io", "no"),
    ],
)
def test_who_owns_a_namespace_has_rights_to_our_kinds_in_it(
    installed: Cluster, kubectls: Callable[[str], Kubectl], role: str, words: str, allowed: str
) -> None:
    kubectl = kubectls("kubectl")
    name = f"owner-{role}"
    binding = ("create", "rolebinding", name, f"--clusterrole={role}", f"--user={name}", "-n", "default")
    kubectl(*binding, "--save-config")
    try:
        ask = (f"--as={name}", "auth", "can-i", *words.split(), "-n", "default")
        installed.wait("aggregation", lambda: kubectl.says(*ask) == allowed)
    finally:
        kubectl("delete", "rolebinding", name, "-n", "default")
