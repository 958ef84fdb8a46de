"""The controller-manager as a process of its own, on the objects of a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx

from tests.etcd.cluster import free_ports
from tests.lab.kube.cluster import Cluster

SOURCES = Path(__file__).resolve().parents[2] / "src"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "j10ce-system"}}


class Plane:
    """Reached on loopback. With `host` 0.0.0.0 it makes certificates of its own."""

    def __init__(
        self, cluster: Cluster, folder: Path, host: str, name: str, level: str, more: Sequence[str] = ()
    ) -> None:
        self._cluster, self._name, self._host, self._level, self._more = cluster, name, host, level, more
        self.log = folder / f"{name}.log"
        (self.port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns at once."""
        argv = [sys.executable, "-m", "j10ce.manager.main", "--store", f"kube://{self._cluster.kubeconfig('admin')}"]
        argv += ["--listen", f"{self._host}:{self.port}", "--namespace-limit", "100", "--identity", self._name]
        argv += ["--log-level", self._level, "--advertise", f"10.9.8.7:{self.port}", *self._more]
        with self.log.open("ab") as log:
            env = {**os.environ, "PYTHONPATH": str(SOURCES)}
            self._process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        """As a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def said(self, text: str) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()[-3000:]
        return text in self.log.read_text()

    @property
    def leads(self) -> bool:
        """And answers schedulers."""
        try:
            return "role: leader" in self.get("/readyz?verbose")
        except httpx.TransportError:
            return False  # it starts

    def get(self, path: str) -> str:
        """Whether the certificate is to be trusted is what other tests look at."""
        scheme = "https" if self._host == "0.0.0.0" else "http"
        with httpx.Client(verify=False, timeout=100) as client:
            text: str = client.get(f"{scheme}://127.0.0.1:{self.port}{path}").text
        return text

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)


@contextmanager
def managing(
    cluster: Cluster,
    folder: Path,
    *,
    host: str = "127.0.0.1",
    name: str = "manager",
    level: str = "debug",
    more: Sequence[str] = (),
) -> Iterator[Plane]:
    """Returns once it leads and has read everything. `more`: arguments."""
    plane = Plane(cluster, folder, host, name, level, more)
    try:
        plane.start()
        cluster.wait("the manager", lambda: plane.said("manager.start"))
        yield plane
    finally:
        plane.close()
