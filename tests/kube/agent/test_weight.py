"""An agent on a full node stays small. Its pods exist in the API server and in the cgroup tree, and nowhere else."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from j10ce.host.mounts import Hierarchies
from tests.agent.process import AgentProcess, eventually
from tests.lab.kube.cluster import Cluster

pytestmark = pytest.mark.one_version

PODS = 110
BUDGET_MIB = 55.0
NODE = "full"
MAPS = "/proc/{}/smaps_rollup"


@pytest.fixture
def full_node(crds: Cluster, namespace: str) -> Iterator[str]:
    """Below which group its pods are."""
    if os.geteuid():
        pytest.skip("Unsupported: making cgroups needs root")
    crds.call("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    root = f"j10cetest-pods-{os.getpid()}"
    crds.wait_for_account(namespace)
    made = [crds.call("POST", f"/api/v1/namespaces/{namespace}/pods", pod(n)) for n in range(PODS)]
    for number, each in enumerate(made):
        path = f"/api/v1/namespaces/{namespace}/pods/{each['metadata']['name']}/status"
        crds.call("PATCH", path, {"status": running(number)}, content="application/merge-patch+json")
        place(f"{root}/kubepods/burstable/pod{each['metadata']['uid']}", number)
    try:
        yield root
    finally:
        crds.call("DELETE", f"/api/v1/nodes/{NODE}")
        for mount in Hierarchies.discover().in_use().values():
            for folder, _, _ in os.walk(f"{mount.path}/{root}", topdown=False):
                os.rmdir(folder)


def pod(number: int) -> dict[str, Any]:
    asked = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}}
    noise = {f"example.com/annotation-{n}": "x" * 200 for n in range(5)}
    labels = {"app": f"app-{number % 7}", "pod-template-hash": f"{number:010}", "j10ce.io/qos-profile": "ls"}
    env = [{"name": f"VARIABLE_{n}", "value": "some/value"} for n in range(20)]
    mains = [{"name": name, "image": "none", "resources": asked, "env": env} for name in ("main", "proxy")]
    meta = {"name": f"app-{number:03}", "labels": labels, "annotations": noise}
    return {"metadata": meta, "spec": {"nodeName": NODE, "containers": mains}}


def identity(number: int, name: str) -> str:
    return f"{number:04}{len(name):02}".ljust(64, "a")


def running(number: int) -> dict[str, Any]:
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    fields = {"ready": True, "restartCount": 0, "image": "none", "imageID": "", "state": state}
    statuses = [
        {"name": name, "containerID": f"containerd://{identity(number, name)}", **fields} for name in ("main", "proxy")
    ]
    return {"phase": "Running", "containerStatuses": statuses}


def place(path: str, number: int) -> None:
    for mount in Hierarchies.discover().in_use().values():
        for name in ("main", "proxy"):
            os.makedirs(f"{mount.path}/{path}/{identity(number, name)}", exist_ok=True)


def test_with_110_pods_it_fits_its_budget(crds: Cluster, full_node: str, tmp_path: Path, clone: Path) -> None:
    agent = AgentProcess(tmp_path, f"j10cetest-{os.getpid()}", clone)
    # Development tools install rich, and structlog imports it wherever it is; an agent's own environment has none.
    (tmp_path / "without").mkdir()
    (tmp_path / "without/rich.py").write_text("raise ImportError\n")
    agent.environ["PYTHONPATH"] += f":{tmp_path / 'without'}"
    try:
        agent.start("--server", f"kube://{crds.kubeconfig('admin')}", "--node-name", NODE)
        assert eventually(lambda: len(agent.client.get("/v1/workloads")["items"]) == PODS, 60)
        path = f"/apis/j10ce.io/v1alpha1/nodeqoses/{NODE}"
        crds.wait("a report of all pods", lambda: crds.call("GET", path)["status"]["node"]["workloads"] == PODS)
        assert agent.process is not None
        match = re.search(r"^Rss:\s+(\d+)", Path(MAPS.format(agent.process.pid)).read_text(), re.MULTILINE)
        assert match is not None
        mib = int(match[1]) / 1024
        print(f"{mib:.1f} MiB with {PODS} pods")
        assert mib <= BUDGET_MIB
    finally:
        agent.clean()
