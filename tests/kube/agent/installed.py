"""What deploy/ makes for agents on a cluster with one real node, and an agent that runs there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from j10ce.model.kinds import API_VERSION
from tests.agent.process import AgentProcess, eventually
from tests.kube.manifests import built, deploy_for, install_crds
from tests.lab.kube.cluster import Answer, Cluster
from tests.lab.kube.node import LabNode

BASE = f"/apis/{API_VERSION}"
SYSTEM = "j10ce-system"
DAEMONSET = f"/apis/apps/v1/namespaces/{SYSTEM}/daemonsets"
APPLY = "application/apply-patch+yaml"
PLURALS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"/api/v1/namespaces/{SYSTEM}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SYSTEM}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SYSTEM}/rolebindings",
    "DaemonSet": DAEMONSET,
}


class Installed:
    """What `kubectl apply -k deploy/` makes for agents, on one cluster with one real node."""

    def __init__(self, cluster: Cluster, node: LabNode) -> None:
        self.cluster, self.node = cluster, node
        # Without controllers no pod comes of the DaemonSet: the test runs its agent itself.
        self._manifests = [made for made in built(deploy_for(cluster.version)) if made["kind"] in PLURALS]

    def install(self) -> None:
        install_crds(self.cluster)
        for made in self._manifests:
            self.apply(made)
        account = f"{PLURALS['ServiceAccount']}/j10ce-agent/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        self.cluster.write_kubeconfig("agent", self.cluster.call("POST", account, request)["status"]["token"])

    def apply(self, made: Mapping[str, Any]) -> None:
        path = f"{PLURALS[made['kind']]}/{made['metadata']['name']}?fieldManager=tests&force=true"
        self.cluster.call("PATCH", path, made, content=APPLY)

    def remove(self, kind: str) -> None:
        for made in self._manifests:
            if made["kind"] == kind:
                self.cluster.call("DELETE", f"{PLURALS[kind]}/{made['metadata']['name']}")

    def profile(self, name: str, **spec: Any) -> None:
        body = {"apiVersion": API_VERSION, "kind": "QoSProfile", "metadata": {"name": name}, "spec": spec}
        self.cluster.call("PATCH", f"{BASE}/qosprofiles/{name}?fieldManager=tests", body, content=APPLY)

    def policy(self, name: str, namespace: str = "default", **spec: Any) -> None:
        kind = "MinimalReservationPolicy"
        body = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        path = f"{BASE}/namespaces/{namespace}/minimalreservationpolicies/{name}?fieldManager=tests"
        self.cluster.call("PATCH", path, body, content=APPLY)

    def reserved(self) -> str:
        """A pod `db` with a floor of 500m that asks for 100m; its uid. A heavy neighbour makes it need more weight."""
        self.policy("db", selector={"matchLabels": {"app": "db"}}, minimum={"cpu": "500m"})
        self.node.run("heavy", requests={"cpu": "1"})
        return self.node.run("db", labels={"app": "db"}, requests={"cpu": "100m"})

    def tidy(self) -> None:
        """As after `install`."""
        for path in (f"{BASE}/qosprofiles", f"{BASE}/namespaces/default/minimalreservationpolicies"):
            for listed in self.cluster.call("GET", path)["items"]:
                self.cluster.call("DELETE", f"{path}/{listed['metadata']['name']}")
        for listed in self.cluster.call("GET", "/api/v1/namespaces/default/pods")["items"]:
            self.node.delete(listed["metadata"]["name"])
        pods = "/api/v1/namespaces/default/pods"
        self.cluster.wait("pods to be gone", lambda: not self.cluster.call("GET", pods)["items"])


class PodAgent(AgentProcess):
    """An agent beside the node's kubelet."""

    def __init__(self, folder: Path, clone: Path, lab: Installed) -> None:
        super().__init__(folder, f"j10cetest-{os.getpid()}", clone)
        self.lab = lab

    def configure(self, **settings: Any) -> None:
        self.config_dir.mkdir(parents=True, exist_ok=True)
        (self.config_dir / "agent.yaml").write_text(yaml.safe_dump(settings))

    def begin(self) -> PodAgent:
        cluster = self.lab.cluster
        self.start("--server", f"kube://{cluster.kubeconfig('agent')}", "--node-name", self.lab.node.name)
        return self

    def workloads(self) -> dict[str, dict[str, Any]]:
        return {w["metadata"]["name"]: w for w in self.client.get("/v1/workloads")["items"]}

    def knows(self, *names: str) -> bool:
        return eventually(lambda: set(names) <= self.workloads().keys())

    def status(self) -> dict[str, Any]:
        """As the API server has it."""
        try:
            obj: dict[str, Any] = self.lab.cluster.call("GET", f"{BASE}/nodeqoses/{self.lab.node.name}")
        except Answer:
            return {}
        node: dict[str, Any] = obj.get("status", {}).get("node", {})
        return node
