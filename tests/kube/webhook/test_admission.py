"""An API server that asks our webhooks, as deploy/ registers them, over certificates that we made."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from tests.kube.conftest import CLONE, install_crds
from tests.kube.plane import NAMESPACE, Plane, managing
from tests.lab.cluster import Answer, Cluster, running
from tests.lab.kubernetes import Version

SECRET = "/api/v1/namespaces/j10ce-system/secrets"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
PROFILES = "/apis/j10ce.io/v1alpha1/qosprofiles"
PODS = "/api/v1/namespaces/shop/pods"
LABEL = "j10ce.io/qos-profile"
# A service by the name of our own that leads to this machine: names and certificates are checked as in a cluster.
SERVICE = {
    "metadata": {"name": "j10ce-controller-manager"},
    "spec": {"type": "ExternalName", "externalName": "localhost"},
}


def prepare(cluster: Cluster, certificates: Mapping[str, str] | None = None) -> None:
    """What deploy/ makes beside the manager and its webhooks, and a namespace that they look at."""
    install_crds(cluster)
    cluster.call("POST", "/api/v1/namespaces", NAMESPACE)
    cluster.call("POST", SECRET, {"metadata": {"name": "j10ce-certificates"}, "stringData": certificates})
    cluster.call("POST", "/api/v1/namespaces/j10ce-system/services", SERVICE)
    shop = {"name": "shop", "labels": {"kubernetes.io/metadata.name": "shop"}}
    cluster.call("POST", "/api/v1/namespaces", {"metadata": shop})
    cluster.wait_for_account("shop")


def register(cluster: Cluster, port: int, configurations: Iterable[Any], policy: str) -> None:
    """Webhooks as deploy/ has them, to the port of this manager."""
    for made in configurations:
        for hook in made["webhooks"]:
            assert hook["failurePolicy"] == policy
            hook["clientConfig"]["service"]["port"] = port
        cluster.call("POST", f"{HOOKS}/{made['kind'].lower()}s", made)


def bundles(cluster: Cluster) -> set[str]:
    found = []
    for kind in ("validating", "mutating"):
        made = cluster.call("GET", f"{HOOKS}/{kind}webhookconfigurations/j10ce-qos")
        found += [hook["clientConfig"].get("caBundle", "") for hook in made["webhooks"]]
    return set(found)


class Hooked:
    def __init__(self, cluster: Cluster, plane: Plane) -> None:
        self.cluster, self.plane = cluster, plane

    def profile(self, name: str, spec: dict[str, Any]) -> Any:
        made = {"apiVersion": "j10ce.io/v1alpha1", "kind": "QoSProfile", "metadata": {"name": name}, "spec": spec}
        return self.cluster.call("POST", f"{PROFILES}?dryRun=All", made)

    def pod(self, **labels: str) -> Any:
        spec = {"containers": [{"name": "c", "image": "none"}]}
        return self.cluster.call(
            "POST", f"{PODS}?dryRun=All", {"metadata": {"name": "p", "labels": labels}, "spec": spec}
        )

    def judged(self) -> bool:
        """Whether the webhooks are in force."""
        try:
            self.pod(**{LABEL: "nowhere"})
        except Answer as e:
            return "no QoSProfile has this name" in str(e)
        return False


@pytest.fixture(scope="module")
def hooked(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hooked]:
    folder = tmp_path_factory.mktemp("webhook")
    with running(folder, version, controllers=True) as cluster:
        prepare(cluster)
        with managing(cluster, folder, host="0.0.0.0") as plane:
            base = yaml.safe_load_all((CLONE / "deploy/base/webhooks.yaml").read_text())
            register(cluster, plane.port, base, "Ignore")
            made = Hooked(cluster, plane)
            cluster.wait("webhooks", made.judged)
            yield made


def test_all_findings_of_a_profile_come_in_one_answer(hooked: Hooked) -> None:
    valueless = {"matchExpressions": [{"key": "app", "operator": "In"}]}
    with pytest.raises(Answer, match=r"another spelling of guaranteed-pro.*spec\.selector.*spec\.namespaceSelector"):
        hooked.profile("guaranteedpro", {"tier": "standard", "selector": valueless, "namespaceSelector": valueless})
    hooked.profile("good", {"tier": "standard"})


def test_a_pod_may_choose_only_what_its_namespace_may(hooked: Hooked) -> None:
    with pytest.raises(Answer, match="namespace shop may not choose it"):
        hooked.pod(**{LABEL: "lse"})
    assert hooked.pod(**{LABEL: "be"})["metadata"]["labels"] == {LABEL: "be"}


def test_a_pod_gets_the_profile_of_its_namespace(hooked: Hooked) -> None:
    assert "labels" not in hooked.pod()["metadata"]
    content = "application/merge-patch+json"
    path = "/api/v1/namespaces/shop"
    hooked.cluster.call("PATCH", path, {"metadata": {"labels": {LABEL: "BestEffort"}}}, content=content)
    try:
        hooked.cluster.wait("the label", lambda: hooked.pod()["metadata"].get("labels") == {LABEL: "best-effort"})
    finally:
        hooked.cluster.call("PATCH", path, {"metadata": {"labels": {LABEL: None}}}, content=content)


def test_everything_is_admitted_while_the_manager_restarts(hooked: Hooked) -> None:
    with asking(hooked) as refusals:
        hooked.plane.kill()
        hooked.pod(**{LABEL: "nowhere"})
        hooked.plane.start()
        hooked.cluster.wait("webhooks", hooked.judged)
    assert not refusals


def test_certificates_change_without_a_refused_request(hooked: Hooked) -> None:
    """Made anew from nothing, which is the hardest change: nobody trusts what is served until it is told."""
    before = bundles(hooked.cluster)
    assert len(before) == 1
    assert "" not in before
    with asking(hooked) as refusals:
        path = f"{SECRET}/j10ce-certificates"
        hooked.cluster.call("PATCH", path, {"data": None}, content="application/merge-patch+json")
        hooked.cluster.wait("another authority", lambda: len(now := bundles(hooked.cluster)) == 1 and now != before)
        hooked.cluster.wait("webhooks", hooked.judged)
    assert not refusals


@contextmanager
def asking(hooked: Hooked) -> Iterator[list[str]]:
    """Good pods, one after the other, for as long as the block lasts; those that were refused."""
    refusals: list[str] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            try:
                hooked.pod(**{LABEL: "be"})
            except Answer as e:
                refusals.append(str(e))

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        yield refusals
    finally:
        over.set()
        asker.join()
