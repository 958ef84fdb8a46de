"""A real node with a real agent on it: kubelet, containerd, runc, and our kinds in its API server.

The agent runs as its service account, with the rights that deploy/ gives it and no others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.agent.installed import SYSTEM, Installed, PodAgent
from tests.lab.kube.cluster import running
from tests.lab.kube.kubernetes import Version
from tests.lab.kube.node import joined


@pytest.fixture(scope="package")  # no longer: there can be one real node at a time
def installed(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    if os.geteuid():
        pytest.skip("Unsupported: a real node needs root")
    with running(tmp_path_factory.mktemp("node"), version) as cluster, joined(cluster) as node:
        lab = Installed(cluster, node)
        lab.install()
        yield lab


@pytest.fixture
def lab(installed: Installed) -> Iterator[Installed]:
    yield installed
    installed.tidy()


@pytest.fixture
def agent(lab: Installed, tmp_path: Path, clone: Path) -> Iterator[PodAgent]:
    one = PodAgent(tmp_path, clone, lab)
    one.configure(daemonset=f"{SYSTEM}/j10ce-qos-agent", kubelet=f"https://127.0.0.1:{lab.node.kubelet_port}")
    yield one
    one.clean()
