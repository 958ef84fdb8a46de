"""deploy/ with the option koordinator as pods on a cluster with one real node, as a user installs it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.kube.e2e.site import SYSTEM, TAG, Site
from tests.kube.manifests import CLONE
from tests.kubectl.kubectl import Kubectl
from tests.lab.debian import program
from tests.lab.image import images
from tests.lab.kube.cluster import running
from tests.lab.kube.kubernetes import Version
from tests.lab.kube.node import joined


@pytest.fixture(scope="package")  # no longer: there can be one real node at a time
def site(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if os.geteuid():
        pytest.skip("Unsupported: a real node needs root")
    folder = tmp_path_factory.mktemp("koordinator")
    archive = images(tmp_path_factory.mktemp("images"), TAG)
    overlay = CLONE / f"deploy/overlays/{'' if version == 'current' else 'kubernetes-1.20-'}koordinator"
    with running(folder, version, scheduler=True, controllers=True, for_pods=True) as cluster, joined(cluster) as node:
        node.load(archive)
        made = Site(cluster, node, tmp_path_factory.mktemp("home"))
        # Options are kustomize components, which kubectl knows since 1.21.
        made.kubectl = Kubectl(program("kubectl"), cluster.kubeconfig("admin"), tmp_path_factory.mktemp("home"), "")
        made.kubectl("apply", "-k", str(overlay))
        made.kubectl("-n", SYSTEM, "rollout", "status", "deployment/j10ce-qos-controller-manager")
        cluster.wait("the agent", made.has_agent)
        for name in ("shop", "koordinator-system"):
            made.kubectl("create", "namespace", name)
        made.kubectl("label", "namespace", "shop", "j10ce.io/trusted=true")
        made.kubectl(
            "label", "namespace", "koordinator-system", "kubernetes.io/metadata.name=koordinator-system", "--overwrite"
        )
        yield made
