"""A cluster with one node and all of deploy/ on it, seen by its administrator."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kube.manager.test_cli import Cli
from tests.kube.manifests import CLONE, deploy_for
from tests.kubectl.kubectl import Kubectl
from tests.lab.debian import program
from tests.lab.kube.cluster import Cluster
from tests.lab.kube.node import LabNode

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
        if not self.installed:
            self.kubectl("apply", "-k", str(self.deploy))
            self.kubectl("-n", SYSTEM, "rollout", "status", "deployment/j10ce-qos-controller-manager")
            self.use()

    def use(self) -> None:
        """What is installed, with the examples."""
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
        items: list[dict[str, Any]] = self.kubectl.read("-n", namespace, "pods", "-l", selector)["items"]
        return items

    def agent(self) -> dict[str, Any]:
        (one,) = self.pods(SYSTEM, "app.kubernetes.io/component=agent")
        return one

    def has_agent(self, other_than: str = "") -> bool:
        """By its startup probe: a kubelet of v1.20 says with its next look, up to a minute later, that it is ready."""
        (one, *more) = self.pods(SYSTEM, "app.kubernetes.io/component=agent") or [{}]
        started = [status.get("started") for status in one.get("status", {}).get("containerStatuses", ())]
        return started == [True] and not more and one["metadata"]["uid"] != other_than

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


def protected(site: Site) -> bool:
    """Also when everyone is busy, the databases and the web servers get their floors, and the job gives way."""
    floors = {group: floor for who, floor in ((DATABASES, 500), (WEB, WEB_FLOOR)) for group in site.groups(*who)}
    (hog,) = site.groups(*HOG)
    kept = [share(group) >= floor for group, floor in floors.items()]
    raised = [read(group) > site.original(group) for group in site.groups(*WEB)]
    return len(kept) == 4 and all(kept) and all(raised) and read(hog, "cpu.idle") == 1


def share(group: Path) -> float:
    """Millicores, by its weight among its siblings."""
    siblings = sum(map(read, group.parent.glob("pod*")))
    return read(group) / siblings * len(os.sched_getaffinity(0)) * 1000


def ours(site: Site) -> list[Path]:
    """Files of the examples' pods that have another value than the kubelet's while an agent protects them."""
    (hog,) = site.groups(*HOG)
    return [*(group / "cpu.shares" for group in site.groups(*WEB)), hog / "cpu.idle"]


@contextmanager
def lowest(files: Sequence[Path]) -> Iterator[dict[Path, int]]:
    """Of each file, sampled all the time."""
    seen = {file: int(file.read_text()) for file in files}
    end = threading.Event()

    def look() -> None:
        while not end.wait(0.002):
            seen.update({file: min(value, int(file.read_text())) for file, value in seen.items()})

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        end.set()
        watcher.join()
