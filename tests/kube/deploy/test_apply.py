"""deploy/ installs and goes away, whole and in parts, with an old kubectl and a current one."""

from __future__ import annotations

from collections.abc import Callable
from os.path import relpath
from pathlib import Path

import pytest

from tests.kube.deploy.leftovers import DEPLOY, left_over
from tests.kube.manifests import CLONE, built, deploy_for
from tests.kubectl.kubectl import Kubectl
from tests.lab.kube.cluster import Cluster
from tests.lab.kube.kubernetes import Version

FIRST_KINDS = [
    CLONE / f"config/crd/bases/j10ce.io_{name}.yaml" for name in ("qosprofiles", "minimalreservationpolicies")
]
BUNDLES = ("controller-manager.yaml", "agent-daemonset.yaml")
OTHERS = {"current": {"scheduler-1.20", "scheduler-1.23"}, "old": {"scheduler-1.23"}}  # components of other versions


@pytest.fixture
def fitting(kubectl: Kubectl, version: Version) -> Kubectl:
    """kubectl 1.20 reads the overlay for old API servers, and nothing else."""
    if kubectl.old and version == "current":
        pytest.skip("Unsupported: deploy/ needs the kustomize of kubectl 1.21")
    return kubectl


def test_everything_installs_again_and_again_and_is_removed(empty: Cluster, fitting: Kubectl, version: Version) -> None:
    whole = deploy_for(version)
    output = fitting("apply", "-k", str(whole)).splitlines()
    assert len(output) == len(built(whole))
    assert all(line.endswith(" created") for line in output), output
    assert len(fitting("apply", "-k", str(whole), "--dry-run=server").splitlines()) == len(output)
    fitting("delete", "--ignore-not-found", "-k", str(whole))
    assert left_over(empty) == []


@pytest.fixture
def together(version: Version, tmp_path: Path) -> Path:
    """A kustomization of one's own with every option, as the page shows it."""
    deploy = Path(relpath(DEPLOY, tmp_path.resolve()))  # kustomize takes no absolute path
    base = deploy / ("default" if version == "current" else "overlays/kubernetes-1.20")
    names = {folder.name for folder in (DEPLOY / "components").iterdir()} - OTHERS[version]
    components = "".join(f"- {deploy / 'components' / name}\n" for name in sorted(names))
    (tmp_path / "kustomization.yaml").write_text(f"resources:\n- {base}\ncomponents:\n{components}")
    return tmp_path


def test_all_options_apply_together(empty: Cluster, kubectls: Callable[[str], Kubectl], together: Path) -> None:
    kubectl = kubectls("kubectl")
    output = kubectl("apply", "-k", str(together)).splitlines()
    assert len(output) == len(built(together))
    assert all(line.endswith(" created") for line in output), output
    hooks = empty.call("GET", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/j10ce-qos")
    closed = {hook["name"] for hook in hooks["webhooks"] if hook["failurePolicy"] == "Fail"}
    assert closed == {"objects.j10ce.io", "pods.j10ce.io"}, "those of the option koordinator stay open"
    kubectl("delete", "--ignore-not-found", "-k", str(together))
    assert left_over(empty) == []


@pytest.mark.parametrize("name", BUNDLES)
def test_a_file_applies_on_its_own(
    empty: Cluster, kubectls: Callable[[str], Kubectl], version: Version, name: str
) -> None:
    if version == "old":
        pytest.skip("Unsupported: the single files are for Kubernetes 1.30 and newer")
    kubectl = kubectls("kubectl")
    output = kubectl("apply", "-f", str(DEPLOY / name)).splitlines()
    assert all(line.endswith(" created") for line in output), output
    kubectl("delete", "--ignore-not-found", "-f", str(DEPLOY / name))
    assert left_over(empty) == []


def test_file_after_file_is_the_same(empty: Cluster, kubectls: Callable[[str], Kubectl], version: Version) -> None:
    if version == "old":
        pytest.skip("Unsupported: the single files are for Kubernetes 1.30 and newer")
    kubectl = kubectls("kubectl")
    files = [*FIRST_KINDS, *(DEPLOY / name for name in BUNDLES)]
    for file in files:
        kubectl("apply", "-f", str(file))
    whole = kubectl("apply", "-k", str(DEPLOY)).splitlines()
    assert [line for line in whole if line.endswith(" created")] == []
    for file in files:
        kubectl("delete", "--ignore-not-found", "-f", str(file))
