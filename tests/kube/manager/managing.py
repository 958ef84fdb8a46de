"""Managers as processes on a real API server, what users ask of them, and nodes that a test plays."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx

from tests.etcd.cluster import free_ports
from tests.kube.manifests import CLONE, install_crds
from tests.kubectl.kubectl import Kubectl
from tests.lab.debian import program
from tests.lab.kube.cluster import Cluster, running
from tests.lab.kube.kubernetes import Version

GROUP = "/apis/j10ce.io/v1alpha1"
MERGE = "application/merge-patch+json"
NODES = 4


class Manager:
    """A process that said that it is ready."""

    def __init__(self, process: subprocess.Popen[str], port: int, log: Path) -> None:
        self.process, self.log = process, log
        self.url = f"http://127.0.0.1:{port}"

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=100)

    @property
    def leads(self) -> bool:
        return "role: leader" in self.get("/readyz?verbose").text

    def kill(self) -> None:
        """As a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def managing(cluster: Cluster, folder: Path, name: str = "one", *more: str) -> Iterator[Manager]:
    (port,) = free_ports(1)
    log = folder / f"{name}.log"
    argv = [sys.executable, "-m", "j10ce.manager.main", "--store", f"kube://{cluster.kubeconfig('manager')}"]
    argv += ["--listen", f"127.0.0.1:{port}", "--identity", name, "--namespace-limit", "100", *more]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, log.open("ab") as output:
        notify.bind(str(folder / f"{name}.{secrets.token_hex(3)}"))
        notify.setblocking(False)
        env = {**os.environ, "PYTHONPATH": str(CLONE / "src"), "NOTIFY_SOCKET": notify.getsockname()}
        process = subprocess.Popen(argv, env=env, stdout=output, stderr=output, text=True)
        try:
            cluster.wait("a ready manager", lambda: _ready(notify, process, log))
            yield Manager(process, port, log)
        finally:
            process.kill()
            process.wait()


def _ready(notify: socket.socket, process: subprocess.Popen[str], log: Path) -> bool:
    assert process.poll() is None, f"the manager ended: {log.read_text()[-3000:]}"
    return notify.recv(100) == b"READY=1"  # BlockingIOError until it is ready


@contextmanager
def managed(folder: Path, version: Version, nodes: int = NODES) -> Iterator[Cluster]:
    """A cluster with our kinds and the manager's account."""
    with running(folder, version, controllers=True, nodes=nodes) as cluster:
        install_crds(cluster)
        cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": "j10ce-system"}})
        kubectl = Kubectl(program("kubectl"), cluster.kubeconfig("admin"), folder, "j10ce-system")
        kubectl("apply", "-f", str(CLONE / "deploy/base/controller-manager-rbac.yaml"))
        account = "/api/v1/namespaces/j10ce-system/serviceaccounts/j10ce-controller-manager/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": None}}
        cluster.write_kubeconfig("manager", cluster.call("POST", account, request)["status"]["token"])
        yield cluster


class Work:
    """What a user of one namespace does."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace

    def policy(self, name: str, **spec: Any) -> None:
        body = {"apiVersion": "j10ce.io/v1alpha1", "kind": "MinimalReservationPolicy"}
        self.cluster.call("POST", self._policies(), body | {"metadata": {"name": name}, "spec": spec})

    def edit(self, name: str, **spec: Any) -> None:
        self.cluster.call("PATCH", f"{self._policies()}/{name}", {"spec": spec}, content=MERGE)

    def status(self, name: str) -> dict[str, Any]:
        obj: dict[str, Any] = self.cluster.call("GET", f"{self._policies()}/{name}").get("status") or {}
        return obj

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        conditions = self.status(name).get("conditions", ())
        return next((c for c in conditions if c["type"] == kind), {})

    def wait(self, name: str, probe: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The status, once `probe` holds of it."""
        try:
            self.cluster.wait(name, lambda: probe(self.status(name)))
        except TimeoutError:
            raise AssertionError(f"{name}: {self.status(name)}") from None
        return self.status(name)

    def pod(self, name: str, node: str, cpu: str = "1", memory: str = "1Gi", **labels: str) -> None:
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
        body = {"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": node, "containers": [container]}}
        self.cluster.call("POST", f"/api/v1/namespaces/{self.namespace}/pods", body)

    def end_pod(self, name: str) -> None:
        self.cluster.call("DELETE", f"/api/v1/namespaces/{self.namespace}/pods/{name}?gracePeriodSeconds=0")

    def _policies(self) -> str:
        return f"{GROUP}/namespaces/{self.namespace}/minimalreservationpolicies"


def stamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@contextmanager
def agent(cluster: Cluster, node: str, **report: Any) -> Iterator[Callable[..., None]]:
    """The NodeQoS of a node, and how its agent would report: call it with what changes."""
    path, said = f"{GROUP}/nodeqoses/{node}", dict(report)
    body = {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS", "metadata": {"name": node}, "spec": {}}
    cluster.call("POST", f"{GROUP}/nodeqoses", body)

    def tell(**more: Any) -> None:
        said.update(more)
        now = stamp()
        fields = {"heartbeat": now, "armed": True, "capacity": {"cpu": "32", "memory": "256Gi"}, **said}
        cluster.call("PATCH", f"{path}/status", {"status": {"node": fields}}, content=MERGE)

    tell()
    try:
        yield tell
    finally:
        cluster.call("DELETE", path)


@contextmanager
def plain_node(cluster: Cluster, name: str, cpu: str = "8", **labels: str) -> Iterator[Callable[[bool], None]]:
    """A node that nobody keeps Ready but the test: call it with whether it is."""
    path, has = f"/api/v1/nodes/{name}", {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    cluster.call("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})

    def ready(well: bool) -> None:
        now = stamp()
        word = {"type": "Ready", "status": str(well), "reason": "Test", "lastHeartbeatTime": now}
        status = {"capacity": has, "allocatable": has, "conditions": [word | {"lastTransitionTime": now}]}
        cluster.call("PATCH", f"{path}/status", {"status": status}, content=MERGE)

    ready(True)
    try:
        yield ready
    finally:
        cluster.call("DELETE", path)
