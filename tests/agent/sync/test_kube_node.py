"""Who stands in for an API server that is away: the kubelet, wherever it listens, else what is remembered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from j10ce.agent.cache import Cache
from j10ce.agent.config import AgentConfig
from j10ce.agent.sync.kube_node import KubeNode
from j10ce.errors import Unreachable, Unsupported
from j10ce.host.mounts import Hierarchies
from j10ce.http.client import Client, Peer
from j10ce.model.kube.native import NativeMeta
from j10ce.model.kube.pod import Pod


def kubeconfig(folder: Path, **user: object) -> str:
    cluster = {"server": "https://127.0.0.1:1"}
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    (folder / "config").write_text(json.dumps(config))
    return f"kube://{folder}/config"


@pytest.mark.parametrize("ip", ["::1", "127.0.0.1", "fd00::zz"])
async def test_a_kubelet_that_does_not_answer_leaves_what_is_remembered(
    ip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_IP", ip)
    cache = Cache(tmp_path, tmp_path)
    cache.keep_pods([Pod(metadata=NativeMeta(name="web", namespace="shop", uid="u"))])
    node = KubeNode(AgentConfig(server=kubeconfig(tmp_path)), "n1", cache, Hierarchies.discover())
    assert [pod.metadata.name for pod in await node.stand_in()] == ["web"]
    await node.api.close()


async def test_an_address_that_is_none_is_nobody() -> None:
    with pytest.raises(Unreachable, match="is no address"):
        await Client(Peer("http://fd00::1:10250")).ask("GET", "/pods")


async def test_an_agent_does_not_run_what_a_person_would_have_to_answer(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "aws", "interactiveMode": "Never"}
    settings = AgentConfig(server=kubeconfig(tmp_path, exec=plugin))
    with pytest.raises(Unsupported, match="needs a token"):
        KubeNode(settings, "n1", Cache(tmp_path, tmp_path), Hierarchies.discover())
