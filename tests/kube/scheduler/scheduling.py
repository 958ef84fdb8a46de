"""The scheduler as a process of its own, with the rights that deploy/ gives it and no others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import yaml

from tests.etcd.cluster import free_ports
from tests.kube.manifests import CLONE
from tests.lab.kube.cluster import Answer, Cluster

SOURCES = CLONE / "src"
SYSTEM = "/api/v1/namespaces/j10ce-system"
NAME = "j10ce-qos-scheduler"
PODS = "/api/v1/namespaces/default/pods"
RBAC = {
    "ServiceAccount": SYSTEM + "/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/j10ce-system/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/j10ce-system/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}


def permit(cluster: Cluster) -> Path:
    """A kubeconfig with the rights of deploy/components/qos-scheduler."""
    create(cluster, "/api/v1/namespaces", {"metadata": {"name": "j10ce-system"}})
    for made in yaml.safe_load_all((CLONE / "deploy/components/qos-scheduler/rbac.yaml").read_text()):
        create(cluster, RBAC[made["kind"]], made)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    token = cluster.call("POST", f"{SYSTEM}/serviceaccounts/{NAME}/token", request)["status"]["token"]
    return cluster.write_kubeconfig("qos-scheduler", token)


def create(cluster: Cluster, path: str, body: object) -> None:
    """Unless it is there."""
    try:
        cluster.call("POST", path, body)
    except Answer as e:
        if e.status != 409:
            raise


class Replica:
    def __init__(self, cluster: Cluster, folder: Path, name: str, more: Sequence[str] = ()) -> None:
        self._cluster, self._name, self._more = cluster, name, more
        self.log = folder / f"{name}.log"
        (self.port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns at once."""
        store = f"kube://{self._cluster.kubeconfig('qos-scheduler')}?namespace=j10ce-system"
        argv = [sys.executable, "-m", "j10ce.scheduler.process.main", "--store", store, "--identity", self._name]
        argv += ["--listen", f"127.0.0.1:{self.port}", "--v=5", *self._more]
        with self.log.open("ab") as log:
            env = {**os.environ, "PYTHONPATH": str(SOURCES)}
            self._process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def get(self, path: str) -> httpx.Response:
        with httpx.Client(timeout=100) as client:
            return client.get(f"http://127.0.0.1:{self.port}{path}")

    def ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()[-3000:]
        try:
            return self.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False  # it starts

    @property
    def leads(self) -> bool:
        return self.ready() and "role: leader" in self.get("/readyz?verbose").text

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """As a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def close(self) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        status, self._process = self._process.wait(60), None
        return status


@contextmanager
def replica(cluster: Cluster, folder: Path, name: str = "s-1", more: Sequence[str] = ()) -> Iterator[Replica]:
    made = Replica(cluster, folder, name, more)
    made.start()
    try:
        cluster.wait(f"{name} to be ready", made.ready)
        yield made
    finally:
        made.close()


def node(name: str, cpu: str = "4", **labels: str) -> dict[str, Any]:
    has = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    conditions = [{"type": "Ready", "status": "True", "reason": "Lab"}]
    status = {"allocatable": has, "capacity": has, "conditions": conditions}
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}, "status": status}


def pod(name: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    wanted = {"containers": [container], "schedulerName": NAME, "terminationGracePeriodSeconds": 0, **spec}
    return {"metadata": {"name": name}, "spec": wanted}


def node_of(cluster: Cluster, name: str, pods: str = PODS) -> str:
    bound: str = cluster.call("GET", f"{pods}/{name}")["spec"].get("nodeName", "")
    return bound
