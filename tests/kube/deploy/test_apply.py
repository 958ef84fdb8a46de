"""deploy/ installs and goes away, whole and in parts, with an old kubectl and a current one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kube.conftest import CLONE, built
from tests.kube.deploy.conftest import DEPLOY, left_over
from tests.kubectl.conftest import Kubectl
from tests.lab.cluster import Cluster

BUNDLES = ("controller-manager.yaml", "agent-daemonset.yaml")


def test_everything_installs_again_and_again_and_is_removed(empty: Cluster, kubectl: Kubectl) -> None:
    told = kubectl("apply", "-k", str(DEPLOY)).splitlines()
    assert len(told) == len(built(DEPLOY))
    assert all(line.endswith(" created") for line in told), told
    assert len(kubectl("apply", "-k", str(DEPLOY), "--dry-run=server").splitlines()) == len(told)
    kubectl("delete", "--ignore-not-found", "-k", str(DEPLOY))
    assert left_over(empty) == []


@pytest.mark.parametrize("name", BUNDLES)
def test_a_file_applies_on_its_own(empty: Cluster, kubectls: Callable[[str], Kubectl], name: str) -> None:
    kubectl = kubectls("kubectl")
    told = kubectl("apply", "-f", str(DEPLOY / name)).splitlines()
    assert all(line.endswith(" created") for line in told), told
    kubectl("delete", "--ignore-not-found", "-f", str(DEPLOY / name))
    assert left_over(empty) == []


def test_file_after_file_is_the_same(empty: Cluster, kubectls: Callable[[str], Kubectl]) -> None:
    kubectl = kubectls("kubectl-old")
    files = [CLONE / "config/crd/bases/", *(DEPLOY / name for name in BUNDLES)]
    for file in files:
        kubectl("apply", "-f", str(file))
    whole = kubectl("apply", "-k", str(DEPLOY)).splitlines()
    new = [line for line in whole if line.endswith(" created")]
    assert [line.partition(".")[0] for line in new] == [
        "mutatingwebhookconfiguration",
        "validatingwebhookconfiguration",
    ]
    for file in files:
        kubectl("delete", "--ignore-not-found", "-f", str(file))
