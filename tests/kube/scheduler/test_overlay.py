"""The option qos-scheduler as a user installs it: our image on a real node, and its page by `kubectl exec`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.kube.e2e.site import SYSTEM, TAG, Site
from tests.kube.manifests import CLONE
from tests.kube.scheduler.scheduling import NAME, node_of
from tests.kubectl.kubectl import Kubectl
from tests.lab.debian import program
from tests.lab.image import images
from tests.lab.kube.cluster import running
from tests.lab.kube.kubernetes import Version
from tests.lab.kube.node import FOREVER, IMAGE, joined

pytestmark = pytest.mark.kube
PODS = "/api/v1/namespaces/shop/pods"


@pytest.fixture(scope="module")
def site(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if os.geteuid():
        pytest.skip("Unsupported: a real node needs root")
    archive = images(tmp_path_factory.mktemp("images"), TAG)
    overlay = CLONE / f"deploy/overlays/{'' if version == 'current' else 'kubernetes-1.20-'}qos-scheduler"
    folder = tmp_path_factory.mktemp("kubernetes")
    with running(folder, version, scheduler=True, controllers=True, for_pods=True) as cluster, joined(cluster) as node:
        node.load(archive)
        made = Site(cluster, node, tmp_path_factory.mktemp("home"))
        # Options are kustomize components, which kubectl knows since 1.21.
        made.kubectl = Kubectl(program("kubectl"), cluster.kubeconfig("admin"), tmp_path_factory.mktemp("home"), "")
        made.kubectl("apply", "-k", str(overlay))
        made.kubectl("-n", SYSTEM, "rollout", "status", f"deployment/{NAME}")
        made.kubectl("create", "namespace", "shop")
        cluster.wait_for_account("shop")
        yield made


def run(site: Site, name: str, cpu: str, slo: str) -> None:
    resources = {"requests": {"cpu": cpu}}
    container = {"name": "c", "image": IMAGE, "imagePullPolicy": "Never", "command": FOREVER, "resources": resources}
    spec = {"containers": [container], "schedulerName": NAME, "terminationGracePeriodSeconds": 0}
    meta = {"name": name, "annotations": {"controller": name, "slo": slo}}
    site.cluster.call("POST", PODS, {"metadata": meta, "spec": spec})


def page(site: Site, query: str = "") -> str:
    """As the operator of old read it."""
    url = f"http://localhost:10000/{query}"
    return site.kubectl("-n", SYSTEM, "exec", f"deploy/{NAME}", "--", "curl", "-s", url)


def test_a_pod_gets_its_node_from_our_image_and_is_on_the_page(site: Site) -> None:
    run(site, "web", "50m", "0.9")
    site.cluster.wait("the pod to run", lambda: phase(site, "web") == "Running")
    assert node_of(site.cluster, "web", PODS)
    site.cluster.wait("its row", lambda: row(site, "web")[1:2] and row(site, "web")[1].endswith("/0.90"))
    heading, *_ = page(site).splitlines()
    assert heading.split() == ["CONTROLLER", "QOS/SLO", "TTV", "RUNNING", "WAITING", "BINDING"]
    assert page(site, "?v=2").splitlines()[0].split()[:3] == ["CONTROLLER", "QOS/SLO", "PREEMPTION"]


def test_running_counts_from_the_start_of_the_container(site: Site) -> None:
    run(site, "late", "50m", "0.5")
    site.cluster.wait("the pod to run", lambda: phase(site, "late") == "Running")
    site.cluster.wait("time of running", lambda: "0s" not in row(site, "late")[3:4] and row(site, "late"))


def test_a_pod_that_finds_no_node_is_explained(site: Site) -> None:
    run(site, "large", "64", "0.5")
    waits = "waits (j10ce-qos-scheduler): 0/1 nodes are available"
    site.cluster.wait("why", lambda: waits in site.cli("explain", "pod/large", "-n", "shop"))


def phase(site: Site, name: str) -> str:
    answer: str = site.cluster.call("GET", f"{PODS}/{name}")["status"].get("phase", "")
    return answer


def row(site: Site, name: str) -> list[str]:
    return next((line.split() for line in page(site).splitlines() if line.split()[:1] == [name]), [])
