"""A manager with nothing but its account does all of its work on what deploy/ has installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.etcd.cluster import free_ports
from tests.kube.deploy.leftovers import SYSTEM
from tests.kube.manager.managing import managing
from tests.lab.kube.cluster import Cluster

OURS = "/apis/j10ce.io/v1alpha1"
HOOKS = "/apis/admissionregistration.k8s.io/v1"


def test_its_account_is_enough(installed: Cluster, tmp_path: Path) -> None:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": None}}
    account = f"{SYSTEM}/serviceaccounts/j10ce-controller-manager/token"
    installed.write_kubeconfig("manager", installed.call("POST", account, request)["status"]["token"])
    (port,) = free_ports(1)
    listening = ("--listen", f"0.0.0.0:{port}", "--advertise", f"10.0.0.1:{port}")
    with managing(installed, tmp_path, "one", *listening) as manager:
        installed.call("POST", f"{OURS}/namespaces/default/minimalreservationpolicies", policy())
        done = f"{OURS}/namespaces/default/minimalreservationpolicies/promise"
        installed.wait("a verdict", lambda: installed.call("GET", done)["status"].get("conditions"))
        installed.wait("trust in its certificates", lambda: all(trusted(installed)))
        served = {"current": "v1", "old": "v1beta1"}[installed.version]
        where = SYSTEM.replace("/api/v1", f"/apis/discovery.k8s.io/{served}")
        installed.wait("its address", lambda: installed.call("GET", f"{where}/endpointslices/j10ce-extender"))
        output = manager.log.read_text()
    assert "bundle.crt" in installed.call("GET", f"{SYSTEM}/secrets/j10ce-certificates")["data"]
    assert len(installed.call("GET", f"{OURS}/qosprofiles")["items"]) >= 9
    assert installed.call("GET", f"{OURS}/policyrevisions")["items"]
    assert "forbidden" not in output.lower()


def policy() -> dict[str, Any]:
    kind = {"apiVersion": "j10ce.io/v1alpha1", "kind": "MinimalReservationPolicy", "metadata": {"name": "promise"}}
    return kind | {"spec": {"minimum": {"cpu": "1"}, "units": 1}}


def trusted(cluster: Cluster) -> list[bool]:
    """Of every webhook, whether the API server knows whom to trust."""
    kinds = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
    hooks = [hook for kind in kinds for hook in cluster.call("GET", f"{HOOKS}/{kind}/j10ce-qos")["webhooks"]]
    return [bool(hook["clientConfig"].get("caBundle")) for hook in hooks]
