"""Evictions go through the API server, which heeds disruption budgets: nothing is ever deleted behind its back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from j10ce.agent.cache import Cache
from j10ce.agent.config import AgentConfig
from j10ce.agent.sync.kube_node import KubeNode
from j10ce.errors import NotFound
from j10ce.host.mounts import Hierarchies
from j10ce.model.knob import workload
from tests.kube.agent.installed import Installed
from tests.lab.kube.kubernetes import Version

PATIENCE_S = 60.0


@asynccontextmanager
async def node_of(lab: Installed, folder: Path) -> AsyncIterator[KubeNode]:
    """An agent's way to the cluster, with its pods known. Its own account may not evict: no controller does so yet."""
    settings = AgentConfig(server=f"kube://{lab.cluster.kubeconfig('admin')}")
    kube = KubeNode(settings, lab.node.name, Cache(folder, folder), Hierarchies.discover())
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(kube.adapter.run())
        events = kube.adapter.workloads()
        async with asyncio.timeout(PATIENCE_S):
            while (await anext(events)).type != "SYNCED":
                pass
        yield kube
        run.cancel()
    await kube.api.close()


def budget(version: Version) -> str:
    return f"/apis/policy/{'v1' if version == 'current' else 'v1beta1'}/namespaces/default/poddisruptionbudgets"


@pytest.fixture
def limited(lab: Installed, version: Version) -> dict[str, Any]:
    """A pod whose budget allows no disruption, as no controller has judged it yet."""
    lab.node.run("web", labels={"app": "web"})
    chosen = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    made: dict[str, Any] = lab.cluster.call("POST", budget(version), {"metadata": {"name": "web"}, "spec": chosen})
    return made


async def test_a_pod_is_evicted(lab: Installed, tmp_path: Path) -> None:
    uid = lab.node.run("web")
    async with node_of(lab, tmp_path) as kube:
        await kube.adapter.evict(workload("default", "web"), "it is in the way")
    obj = lab.cluster.call("GET", "/api/v1/namespaces/default/pods")["items"]
    assert not [p for p in obj if p["metadata"]["uid"] == uid and "deletionTimestamp" not in p["metadata"]]


async def test_a_disruption_budget_is_heeded(
    lab: Installed, tmp_path: Path, limited: dict[str, Any], version: Version
) -> None:
    try:
        async with node_of(lab, tmp_path) as kube:
            uid = lab.node.get("web")["metadata"]["uid"]
            assert await kube.evict("default", "web", uid) is False
            await kube.adapter.evict(workload("default", "web"), "it is in the way")  # asked for again later
            assert "deletionTimestamp" not in lab.node.get("web")["metadata"]
            allow(lab, limited, version)
            assert await kube.evict("default", "web", uid) is True
    finally:
        lab.cluster.call("DELETE", f"{budget(version)}/web")


def allow(lab: Installed, made: dict[str, Any], version: Version) -> None:
    counts = {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
    status = {**counts, "observedGeneration": made["metadata"]["generation"]}
    patch = {"status": status}
    path = f"{budget(version)}/web/status"
    lab.cluster.call("PATCH", path, patch, content="application/merge-patch+json")


async def test_another_pod_of_the_same_name_is_left_alone(lab: Installed, tmp_path: Path) -> None:
    lab.node.run("web")
    async with node_of(lab, tmp_path) as kube:
        assert await kube.evict("default", "web", "00000000-0000-0000-0000-000000000000") is True
        assert "deletionTimestamp" not in lab.node.get("web")["metadata"]
        assert await kube.evict("default", "nobody", "u") is True


async def test_what_is_no_pod_of_this_node_cannot_be_evicted(lab: Installed, tmp_path: Path) -> None:
    async with node_of(lab, tmp_path) as kube:
        with pytest.raises(NotFound):
            await kube.adapter.evict(workload("default", "stranger"), "by mistake")
