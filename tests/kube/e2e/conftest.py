"""All of deploy/ as pods: images of build/, a scheduler, controllers, and a real node that runs what they make.

The API server is where pods look for it (10.96.0.1:443) and calls webhooks at the addresses of their pods, so that no
proxy of services is needed; apart from that, this is a cluster like any other. Manifests are applied as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.kube.e2e.site import TAG, Site
from tests.lab.image import images
from tests.lab.kube.cluster import running
from tests.lab.kube.kubernetes import Version
from tests.lab.kube.node import joined


@pytest.fixture(scope="package")
def ground(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """With images on its node, and nothing of ours installed."""
    if os.geteuid():
        pytest.skip("Unsupported: a real node needs root")
    folder = tmp_path_factory.mktemp("e2e")
    archive = images(tmp_path_factory.mktemp("images"), TAG)
    with running(folder, version, scheduler=True, controllers=True, for_pods=True) as cluster, joined(cluster) as node:
        node.load(archive)
        site = Site(cluster, node, tmp_path_factory.mktemp("home"))
        site.begin()
        yield site


@pytest.fixture
def site(ground: Site) -> Site:
    """With deploy/ and the examples, whatever the test before has left."""
    ground.install()
    return ground
