"""Who tells of pods while the API server does not: the kubelet where it lets us, else what is remembered."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from j10ce.agent.cache import Cache
from j10ce.agent.config import AgentConfig
from j10ce.agent.sync.kube_node import KubeNode
from j10ce.host.mounts import Hierarchies
from j10ce.model.kube.native import NativeMeta
from j10ce.model.kube.pod import Pod
from tests.kube.agent.installed import Installed


def node_of(lab: Installed, folder: Path, kubelet: str) -> KubeNode:
    cache = Cache(folder, folder)
    cache.keep_pods([Pod(metadata=NativeMeta(name="remembered", namespace="default"))])
    settings = AgentConfig(server=f"kube://{lab.cluster.kubeconfig('agent')}")
    return KubeNode(replace(settings, kubelet=kubelet), lab.node.name, cache, Hierarchies.discover())


async def test_the_kubelet_tells_its_pods_to_the_agents_account(lab: Installed, tmp_path: Path) -> None:
    if lab.cluster.version == "old":
        pytest.skip("Unsupported: a right to list pods alone needs Kubernetes 1.33")
    lab.node.run("web")
    kube = node_of(lab, tmp_path, f"https://127.0.0.1:{lab.node.kubelet_port}")
    pods = {pod.metadata.name: pod for pod in await kube.stand_in()}
    assert set(pods) == {"web"}
    assert pods["web"].status.container_statuses[0].container_id.startswith("containerd://")


@pytest.mark.one_version
@pytest.mark.parametrize("kubelet", ["", "https://127.0.0.1:1"])
async def test_without_a_kubelet_what_is_remembered_counts(lab: Installed, tmp_path: Path, kubelet: str) -> None:
    kube = node_of(lab, tmp_path, kubelet)
    assert [pod.metadata.name for pod in await kube.stand_in()] == ["remembered"]
