"""An API server that asks our webhooks, as deploy/ registers them, over certificates that we made."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from tests.kube.manifests import built, deploy_for, install_crds
from tests.kube.plane import NAMESPACE, Plane, managing
from tests.lab.kube.cluster import Answer, Cluster, running
from tests.lab.kube.kubernetes import Version

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
    collected = []
    for kind in ("validating", "mutating"):
        made = cluster.call("GET", f"{HOOKS}/{kind}webhookconfigurations/j10ce-qos")
        collected += [hook["clientConfig"].get("caBundle", "") for hook in made["webhooks"]]
    return set(collected)


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

    def reviewed(self) -> float:
        """How often the manager was asked about a pod that is there or to be."""
        text = self.plane.get("/metrics").splitlines()
        rows = (line for line in text if line.startswith("j10ce_manager_webhook_reviews_total{"))
        return sum(float(line.split()[-1]) for line in rows if 'kind="Pod"' in line and 'webhook="validate"' in line)

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
            made = [o for o in built(deploy_for(version)) if o["kind"].endswith("WebhookConfiguration")]
            register(cluster, plane.port, made, "Ignore")
            rig = Hooked(cluster, plane)
            cluster.wait("webhooks", rig.judged)
            yield rig


def test_all_findings_of_a_profile_come_in_one_answer(hooked: Hooked) -> None:
    valueless = {"matchExpressions": [{"key": "app", "operator": "In"}]}
    with pytest.raises(Answer, match=r"another spelling of guaranteed-pro.*spec\.selector.*spec\.namespaceSelector"):
        hooked.profile("guaranteedpro", {"tier": "standard", "selector": valueless, "namespaceSelector": valueless})
    hooked.profile("good", {"tier": "standard"})


def test_units_that_a_policy_cannot_have_are_refused_to_who_scales_it(hooked: Hooked) -> None:
    path = "/apis/j10ce.io/v1alpha1/namespaces/shop/minimalreservationpolicies"
    kind = {"apiVersion": "j10ce.io/v1alpha1", "kind": "MinimalReservationPolicy"}
    for name, cpu in (("share", "10%"), ("amount", "1")):
        hooked.cluster.call("POST", path, {**kind, "metadata": {"name": name}, "spec": {"minimum": {"cpu": cpu}}})
    body, content = {"spec": {"replicas": 2}}, "application/merge-patch+json"
    with pytest.raises(Answer, match=r"spec\.minimum\.cpu"):
        hooked.cluster.call("PATCH", f"{path}/share/scale", body, content=content)
    obj = hooked.cluster.call("PATCH", f"{path}/amount/scale", body, content=content)
    assert obj["spec"]["replicas"] == 2


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


@pytest.fixture
def running_pod(hooked: Hooked) -> Iterator[str]:
    """The path of one that names a profile, as controllers and kubelets see it."""
    meta = {"name": "there", "labels": {"app": "web", LABEL: "ls"}}
    hooked.cluster.call("POST", PODS, {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "none"}]}})
    yield f"{PODS}/there"
    hooked.cluster.call("DELETE", f"{PODS}/there?gracePeriodSeconds=0")


@pytest.mark.parametrize(
    ("labels", "asked"),
    [
        pytest.param({"app": "shop"}, 0, id="another's label"),
        pytest.param({"app": None}, 0, id="no label of ours"),
        pytest.param({LABEL: "be"}, 1, id="another profile"),
        pytest.param({LABEL: None}, 1, id="no profile"),
        pytest.param({"j10ce.io/ignore": "true"}, 1, id="one more of ours"),
        pytest.param({LABEL: None, "app": None}, 1, id="no label at all"),
    ],
)
def test_an_update_of_a_pod_comes_to_us_only_with_a_label_of_ours(
    hooked: Hooked, running_pod: str, version: Version, labels: dict[str, str | None], asked: int
) -> None:
    if version == "old":
        pytest.skip("Unsupported: match conditions need Kubernetes 1.30")
    before = hooked.reviewed()
    body = {"metadata": {"labels": labels, "annotations": {"touched": "true"}}}
    hooked.cluster.call("PATCH", running_pod, body, content="application/merge-patch+json")
    assert hooked.reviewed() - before == asked


def test_a_pod_cannot_be_labelled_with_a_profile_that_is_not_there(hooked: Hooked, running_pod: str) -> None:
    body = {"metadata": {"labels": {LABEL: "nowhere"}}}
    with pytest.raises(Answer, match="no QoSProfile has this name"):
        hooked.cluster.call("PATCH", running_pod, body, content="application/merge-patch+json")


@pytest.mark.one_version
def test_everything_is_admitted_while_the_manager_restarts(hooked: Hooked) -> None:
    with asking(hooked) as refusals:
        hooked.plane.kill()
        hooked.pod(**{LABEL: "nowhere"})
        hooked.plane.start()
        hooked.cluster.wait("webhooks", hooked.judged)
    assert not refusals


@pytest.mark.one_version
def test_certificates_change_without_a_refused_request(hooked: Hooked) -> None:
    """Made anew from nothing, which is the hardest change: nobody trusts what is served until it has the bundle."""
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
