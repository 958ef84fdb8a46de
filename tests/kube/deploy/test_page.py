"""Every command of docs/kubernetes.md that begins with `$` works, typed in order on a fresh cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from j10ce.manager.kube.nodes import LENT
from tests.docs.pages import CLONE, blocks, commands, type_kubectl
from tests.kube.deploy.leftovers import left_over
from tests.kubectl.kubectl import Kubectl
from tests.lab.debian import program
from tests.lab.kube.cluster import Cluster
from tests.lab.kube.kubernetes import Version

KOORDINATOR = CLONE / "examples/kubernetes/koordinator"


@pytest.mark.parametrize("name", ["kubectl-old", "kubectl"])
def test_the_page_can_be_typed(empty: Cluster, tmp_path: Path, version: Version, name: str) -> None:
    if name == "kubectl-old" and version == "current":
        pytest.skip("Unsupported: deploy/ needs the kustomize of kubectl 1.21")
    old = {"-k deploy/": "-k deploy/overlays/kubernetes-1.20/"} if version == "old" else {}
    typed = type_kubectl("docs/kubernetes.md", program(name), empty.kubeconfig("admin"), tmp_path, old)
    assert typed >= 6
    assert left_over(empty) == []


def test_what_was_lent_is_removed_by_hand_as_the_page_says(empty: Cluster, tmp_path: Path) -> None:
    path, other = "/api/v1/nodes/lender", {"cpu": "8", "memory": "32Gi", "example.com/gpu": "1"}
    lent = {f"j10ce.io/{name}": "1000" for name in LENT}
    empty.call("POST", "/api/v1/nodes", {"metadata": {"name": "lender"}})
    full = {"status": {"capacity": other | lent, "allocatable": other | lent}}
    empty.call("PATCH", f"{path}/status", full, content="application/merge-patch+json")
    (block,) = (b for b in blocks() if b.page == "docs/kubernetes-manager.md" and "kubectl patch node" in b.text)
    typed = "\n".join(commands(block)).replace("kubectl", str(program("kubectl"))).replace("NODE", "lender")
    env = {"HOME": str(tmp_path), "KUBECONFIG": str(empty.kubeconfig("admin"))}
    for _ in range(2):  # what is not there any more is no mistake
        subprocess.run(["bash", "-ec", typed], env=env, check=True, timeout=150)
    status = empty.call("GET", path)["status"]
    assert (status["capacity"], status["allocatable"]) == (other, other)
    empty.call("DELETE", path)


def test_pods_of_koordinators_guide_are_taken_as_they_stand(
    installed: Cluster, kubectls: Callable[[str], Kubectl]
) -> None:
    kubectl = kubectls("kubectl")
    files = [word for file in sorted(KOORDINATOR.glob("*.yaml")) for word in ("-f", str(file))]
    output = kubectl("apply", "-n", "default", *files).splitlines()
    assert len(output) == 10
    assert all(line.endswith(" created") for line in output), output
    classes = {"system", "lse", "lsr", "ls", "be"}
    assert {f"koordinator-{name}" for name in classes} <= set(kubectl("get", "qp", "-o", NAMES).split())
    kubectl("delete", "-n", "default", *files)


NAMES = "jsonpath={.items[*].metadata.name}"
