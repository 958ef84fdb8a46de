"""All of deploy/ as pods: images of build/, a scheduler, controllers, and a real node that runs what they make.

The API server is where pods look for it (10.96.0.1:443) and calls webhooks at the addresses of their pods, so that no
proxy of services is needed; apart from that, this is a cluster like any other. Manifests are applied as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kube.conftest import CLONE, deploy_for
from tests.kube.manager.test_cli import Cli
from tests.kubectl.conftest import Kubectl
from tests.lab.cluster import Cluster, running
from tests.lab.debian import program
from tests.lab.image import images
from tests.lab.kubernetes import Version
from tests.lab.node import LabNode, joined

SYSTEM = "j10ce-system"
EXAMPLES = CLONE / "examples/kubernetes"
TAG = "0.1.0"
DATABASES = ("payments", "role=database")
HOG = ("shop", "job-name=crunch")
WEB = ("shop", "app=web")
WEB_FLOOR = 300  # millicores; they request 250, so what the kubelet gives them does not keep it
KNOBS = {
    "cpu": ("cpu.shares", "cpu.idle", "cpu.cfs_quota_us", "cpu.cfs_burst_us"),
    "memory": ("memory.limit_in_bytes", "memory.soft_limit_in_bytes"),
}


class Site:
    """A cluster with one node, seen by its administrator."""

    def __init__(self, cluster: Cluster, node: LabNode, home: Path) -> None:
        self.cluster, self.node = cluster, node
        self.deploy = deploy_for(cluster.version)
        executable = program("kubectl" if cluster.version == "current" else "kubectl-old")
        self.kubectl = Kubectl(executable, cluster.kubeconfig("admin"), home, "")
        self.originals: dict[Path, str] = {}
        self.installed = False
        self.cli = Cli(home, "--kubeconfig", str(cluster.kubeconfig("admin")))

    def begin(self) -> None:
        """Pods of the examples run before there is anything of ours: what they have is the kubelet's."""
        for file in ("0-namespaces.yaml", "3-pods.yaml"):
            self.kubectl("apply", "-f", str(EXAMPLES / file))
        self.kubectl("-n", "payments", "rollout", "status", "statefulset/db")
        self.kubectl("-n", "shop", "rollout", "status", "deployment/web")
        self.cluster.wait("the job", lambda: self.pods(*HOG)[0]["status"]["phase"] == "Running")
        self.originals = self.values()

    def install(self) -> None:
        """Returns once every process works; does nothing where they do."""
        if self.installed:
            return
        self.kubectl("apply", "-k", str(self.deploy))
        self.kubectl("-n", SYSTEM, "rollout", "status", "deployment/j10ce-controller-manager")
        self.cluster.wait("the agent", self.has_agent)
        self.kubectl("apply", "-f", str(EXAMPLES))
        more = f'{{"spec": {{"minimum": {{"cpu": "{WEB_FLOOR}m"}}}}}}'
        self.kubectl("-n", "shop", "patch", "minimalreservationpolicies", "web", "--type=merge", "-p", more)
        self.installed = True

    def remove(self, *words: str) -> None:
        """By the words of one `kubectl delete`. A kubelet of v1.20 may need a minute to let go of a pod."""
        self.installed = False
        self.kubectl("delete", *words, *(["--wait=false"] if self.cluster.version == "old" else []))

    def pods(self, namespace: str, selector: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.kubectl.read("-n", namespace, "pods", "-l", selector)["items"]
        return found

    def agent(self) -> dict[str, Any]:
        (one,) = self.pods(SYSTEM, "app.kubernetes.io/component=agent")
        return one

    def has_agent(self, other_than: str = "") -> bool:
        """By its startup probe: a kubelet of v1.20 says with its next look, up to a minute later, that it is ready."""
        (one, *more) = self.pods(SYSTEM, "app.kubernetes.io/component=agent") or [{}]
        found = [status.get("started") for status in one.get("status", {}).get("containerStatuses", ())]
        return found == [True] and not more and one["metadata"]["uid"] != other_than

    def groups(self, namespace: str, selector: str, controller: str = "cpu") -> list[Path]:
        return [self.node.cgroup(pod["metadata"]["uid"], controller) for pod in self.pods(namespace, selector)]

    def values(self) -> dict[Path, str]:
        """Everything that a kubelet or we could set, of all pods of the examples."""
        chosen = [(c, group) for c in KNOBS for who in (DATABASES, HOG, WEB) for group in self.groups(*who, c)]
        return {file: file.read_text() for c, group in chosen for name in KNOBS[c] for file in group.rglob(name)}

    def original(self, group: Path) -> int:
        return int(self.originals[group / "cpu.shares"])


def read(group: Path, knob: str = "cpu.shares") -> int:
    return int((group / knob).read_text())


@pytest.fixture(scope="package")
def ground(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """With images on its node, and nothing of ours installed."""
    if os.geteuid():
        pytest.skip("Unsupported: a real node needs root")
    folder = tmp_path_factory.mktemp("e2e")
    archive = images(tmp_path_factory.mktemp("images"), TAG)
    with running(folder, version, scheduler=True, controllers=True, for_pods=True) as cluster, joined(cluster) as node:
        node.load(archive)
        found = Site(cluster, node, tmp_path_factory.mktemp("home"))
        found.begin()
        yield found


@pytest.fixture
def site(ground: Site) -> Site:
    """With deploy/ and the examples, whatever the test before has left."""
    ground.install()
    return ground
