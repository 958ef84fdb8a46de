"""A real Kubernetes control plane on loopback: etcd, kube-apiserver, and, where asked for, the rest of it.

with running(folder, scheduler=True, controllers=True, nodes=20) as cluster:
    cluster.call("GET", "/api/v1/nodes")
    cluster.restart("kube-apiserver")

Users are static tokens: `cluster.kubeconfig("admin")` is of group system:masters.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from tests.etcd.cluster import free_ports
from tests.lab.debian import program
from tests.lab.kernel import cache_dir, locked
from tests.lab.kube import kwok
from tests.lab.kube.kubernetes import Version, binary
from tests.lab.kube.pki import CLIENT, Authority

PATIENCE_S = 120.0  # a wait that ends by an event, never by this
FOR_PODS = "10.96.0.1"  # the address of the API server for pods
NAMES = ("127.0.0.1", FOR_PODS, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
REAL_NODE = "127.0.0.1"  # named by an address, the kubelet reports it as its own: logs and exec stay on loopback
QPS = 5000
USERS: dict[str, tuple[str, str]] = {  # kubeconfig: user, group
    "admin": ("lab-admin", "system:masters"),
    "scheduler": ("system:kube-scheduler", ""),
    "controller-manager": ("system:kube-controller-manager", ""),
    "kubelet": (f"system:node:{REAL_NODE}", "system:nodes"),
}


class Answer(Exception):
    """What the API server said that was no success."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(f"HTTP {status}: {text}")


class Cluster:
    def __init__(
        self, folder: Path, version: Version = "current", *, controllers: bool = False, for_pods: bool = False
    ) -> None:
        self.folder, self.version, self.controllers = folder, version, controllers
        self._etcd, self._peer, free = free_ports(3)
        self.host, self.port = (FOR_PODS, 443) if for_pods else ("127.0.0.1", free)
        self._serving = dict(zip(("kube-scheduler", "kube-controller-manager"), free_ports(2), strict=True))
        self.tokens = {name: secrets.token_hex(24) for name in USERS}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, Sequence[str | Path]] = {}
        self.pki = Authority(folder / "pki")
        self._certify()
        self._trust = ssl.create_default_context(cafile=str(self.pki.file))

    # ------------------------------------------------------------------ its processes

    def start(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        self._commands[name] = command
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def kill(self, name: str) -> None:
        """As a power cut would: no goodbye."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def pause(self, name: str) -> None:
        """It answers nothing from the moment that this returns."""
        self._processes[name].send_signal(signal.SIGSTOP)
        # Until one of its threads takes the signal, others go on.
        os.waitid(os.P_PID, self._processes[name].pid, os.WSTOPPED)

    def resume(self, name: str) -> None:
        self._processes[name].send_signal(signal.SIGCONT)

    def restart(self, name: str) -> None:
        if name in self._processes:
            self.kill(name)
        self.start(name, self._commands[name])
        self.wait("the API server", self.ready)

    def stop(self) -> None:
        for process in reversed(self._processes.values()):
            process.kill()
            process.wait()
        self._processes.clear()

    def start_control_plane(self) -> None:
        url, peer = f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{self._peer}"
        places = ("--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", peer)
        quick = ("--unsafe-no-fsync", "--logger=zap", "--log-level=warn")
        self.start("etcd", [program("etcd"), "--data-dir", self.folder / "etcd", *places, *quick])
        self.start("kube-apiserver", [binary("kube-apiserver", self.version), *self._api_flags(url)])
        self.wait("the API server", self.ready)

    def start_controllers(self) -> None:
        pki, name = self.pki.folder, "kube-controller-manager"
        flags = {
            "leader-elect": "false",
            "kubeconfig": self.kubeconfig("controller-manager"),
            "use-service-account-credentials": "true",
            "root-ca-file": self.pki.file,
            "service-account-private-key-file": pki / "sa.key",
            "flex-volume-plugin-dir": self.folder / "flex",
            "kube-api-qps": QPS,
            "kube-api-burst": QPS,
        }
        self.start(name, [binary(name, self.version), *_flags(flags | self._serving_flags(name, "controller-manager"))])
        self.wait_for_account("default")

    def wait_for_account(self, namespace: str) -> None:
        """Pods are refused until the default service account of their namespace is there, in v1.20 with a token."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        column = "secrets" if self.version == "old" else "metadata"
        self.wait(f"the service account of {namespace}", lambda: column in self.call("GET", path))

    def start_scheduler(self, config: Mapping[str, Any] | None = None) -> None:
        """`config`: profiles and extenders, on top of how to reach the API server."""
        name, file = "kube-scheduler", self.folder / "scheduler.json"
        version = "v1" if self.version == "current" else "v1beta1"
        connection = {"kubeconfig": str(self.kubeconfig("scheduler")), "qps": QPS, "burst": QPS}
        base = {
            "apiVersion": f"kubescheduler.config.k8s.io/{version}",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": connection,
        }
        if self.version == "old":
            place = f"127.0.0.1:{free_ports(1)[0]}"  # else it takes the same port for every cluster
            base |= {"healthzBindAddress": place, "metricsBindAddress": place}
        file.write_text(json.dumps(base | dict(config or {})))
        flags = {"config": file} | self._serving_flags(name, "scheduler")
        self.start(name, [binary(name, self.version), *_flags(flags)])

    def start_kwok(
        self, nodes: int, capacity: Mapping[str, str] | None = None, start_ms: kwok.Delay = kwok.AT_ONCE
    ) -> None:
        """Nodes without a machine that stay Ready, and pods on them that run, so long after they were bound."""
        stages = self.folder / "stages.yaml"
        stages.write_text("\n---\n".join(map(json.dumps, kwok.stages(start_ms))))
        flags = {
            "kubeconfig": self.kubeconfig("admin"),
            "config": stages,
            "cidr": "10.128.0.0/10",
            "manage-nodes-with-label-selector": "type=kwok",
            "node-lease-duration-seconds": 40,
        }
        self.start("kwok", [binary("kwok"), *_flags(flags)])
        with closing(self._connect()) as connection:
            for number in range(nodes):
                self._exchange(connection, "POST", "/api/v1/nodes", kwok.node(number, capacity))
        self.wait("usable nodes", lambda: self.usable_nodes() >= nodes)

    # ------------------------------------------------------------------ its API

    def call(
        self, method: str, path: str, body: object = None, *, content: str = "application/json", token: str = ""
    ) -> Any:
        """As admin unless a token is given; raises Answer for what is no success."""
        with closing(self._connect()) as connection:  # one each: a server that starts drops those it has
            return self._exchange(connection, method, path, body, content, token)

    def _exchange(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        path: str,
        body: object,
        content: str = "application/json",
        token: str = "",
    ) -> Any:
        headers = {"Authorization": f"Bearer {token or self.tokens['admin']}", "Content-Type": content}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
        if response.status >= 300:
            raise Answer(response.status, text[:500].decode(errors="replace"))
        return json.loads(text) if text.startswith(b"{") else text.decode()

    def ready(self) -> bool:
        return bool(self.call("GET", "/readyz"))

    def usable_nodes(self) -> int:
        """Nodes that are Ready and have lost the taint they are born with."""
        listed = self.call("GET", "/api/v1/nodes?resourceVersion=0")["items"]
        return sum(map(_usable, listed))

    def kubeconfig(self, user: str) -> Path:
        return self.folder / f"{user}.kubeconfig"

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    def write_kubeconfig(self, name: str, token: str) -> Path:
        cluster = {"server": self.url, "certificate-authority": str(self.pki.file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": "lab", "user": {"token": token}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
        }
        file = self.kubeconfig(name)
        file.touch(0o600)
        file.write_text(json.dumps(config, indent=1))
        return file

    def wait(self, what: str, probe: Callable[[], object]) -> None:
        """Until `probe` holds; a process that ends meanwhile ends the wait, with the end of its log."""
        deadline, last = time.monotonic() + PATIENCE_S, "the condition does not hold"
        while time.monotonic() < deadline:
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended: {self.log(name)[-3000:]}")
            try:
                if probe():
                    return
            except (OSError, http.client.HTTPException, Answer) as e:
                last = str(e)
            time.sleep(0.05)
        raise TimeoutError(f"{what} did not come within {PATIENCE_S:g} s: {last}")

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    # ------------------------------------------------------------------ its flags

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.host, self.port, context=self._trust, timeout=100)

    def _certify(self) -> None:
        self.pki.sign("server", "lab", hosts=NAMES)
        self.pki.sign("client", "apiserver", groups=("system:masters",), usage=CLIENT)
        self.pki.sign("sa", "service-accounts")
        rows = (f'{self.tokens[name]},{user},{name},"{group}"\n' for name, (user, group) in USERS.items())
        (self.pki.folder / "tokens.csv").touch(0o600)
        (self.pki.folder / "tokens.csv").write_text("".join(rows))
        for name, token in self.tokens.items():
            self.write_kubeconfig(name, token)

    def _api_flags(self, etcd: str) -> list[str]:
        pki = self.pki.folder
        flags: dict[str, object] = {
            "bind-address": self.host,
            "advertise-address": "127.0.0.1",
            "secure-port": self.port,
            "etcd-servers": etcd,
            "allow-privileged": "true",
            "endpoint-reconciler-type": "none",
            "service-cluster-ip-range": "10.96.0.0/16",
            "client-ca-file": self.pki.file,
            "tls-cert-file": pki / "server.crt",
            "tls-private-key-file": pki / "server.key",
            "token-auth-file": pki / "tokens.csv",
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": pki / "sa.crt",
            "service-account-signing-key-file": pki / "sa.key",
            "kubelet-preferred-address-types": "InternalIP",
            "kubelet-certificate-authority": self.pki.file,
            "kubelet-client-certificate": pki / "client.crt",
            "kubelet-client-key": pki / "client.key",
        }
        if self.version == "current":
            # Debian 12's etcd cannot serve streamed lists; clients would retry them, ever slower, and not fall back.
            flags["feature-gates"] = "WatchList=false"
        if self.host == FOR_PODS:
            flags["enable-aggregator-routing"] = "true"  # webhooks are called at the addresses of their pods
        if not self.controllers:
            # These wait for work that only the controller manager does: without it no pod is admitted or placed.
            flags["disable-admission-plugins"] = "ServiceAccount,TaintNodesByCondition"
        return _flags(flags)

    def _serving_flags(self, name: str, user: str) -> dict[str, object]:
        pki = self.pki.folder
        insecure = {"port": 0} if self.version == "old" else {}  # again the same one for every cluster
        return insecure | {
            "authentication-kubeconfig": self.kubeconfig(user),
            "authorization-kubeconfig": self.kubeconfig(user),
            "bind-address": "127.0.0.1",
            "secure-port": self._serving[name],
            "tls-cert-file": pki / "server.crt",
            "tls-private-key-file": pki / "server.key",
        }


@contextmanager
def running(
    folder: Path,
    version: Version = "current",
    *,
    scheduler: bool = False,
    controllers: bool = False,
    nodes: int = 0,
    for_pods: bool = False,
) -> Iterator[Cluster]:
    """`for_pods`: the API server is where pods look for it, without a proxy of services. Root only, one at a time."""
    cluster = Cluster(folder, version, controllers=controllers, for_pods=for_pods)
    with _address_for_pods() if for_pods else nullcontext():
        try:
            cluster.start_control_plane()
            if controllers:
                cluster.start_controllers()
            if scheduler:
                cluster.start_scheduler()
            if nodes:
                cluster.start_kwok(nodes)
            yield cluster
        finally:
            cluster.stop()


@contextmanager
def _address_for_pods() -> Iterator[None]:
    with locked(cache_dir() / "service-address"):
        _ip("replace")
        try:
            yield
        finally:
            _ip("delete")


def _ip(verb: str) -> None:
    subprocess.run(["ip", "address", verb, f"{FOR_PODS}/32", "dev", "lo"], check=True, capture_output=True)


def _flags(flags: Mapping[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in flags.items()]


def _usable(node: Mapping[str, Any]) -> bool:
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ()))
    return ready and not any(t["key"] == "node.kubernetes.io/not-ready" for t in node["spec"].get("taints", ()))
