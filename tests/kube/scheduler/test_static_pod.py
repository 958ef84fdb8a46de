"""The scheduler as a static pod of a real kubelet, in place of the stock one, from our image and as deploy/ has it."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kube.e2e.site import TAG
from tests.kube.manifests import CLONE
from tests.kube.scheduler.scheduling import RBAC, SYSTEM, create
from tests.kubectl.kubectl import Kubectl
from tests.lab.debian import program
from tests.lab.image import images
from tests.lab.kube.cluster import Cluster, running
from tests.lab.kube.kubernetes import Version
from tests.lab.kube.node import FOREVER, IMAGE, LabNode, joined

pytestmark = pytest.mark.kube
STATIC = CLONE / "deploy/static-pods"
PODS = "/api/v1/namespaces/shop/pods"
EVENTS = "/api/v1/namespaces/shop/events"


class Master:
    """A node whose kubelet runs the scheduler of the cluster."""

    def __init__(self, cluster: Cluster, node: LabNode, kubectl: Kubectl) -> None:
        self.cluster, self.node, self.kubectl = cluster, node, kubectl

    @property
    def scheduler(self) -> str:
        return f"kube-scheduler-{self.node.name}"

    def page(self, query: str = "") -> str:
        """By the command that operators of old typed."""
        url = f"http://localhost:10000/{query}"
        return self.kubectl("--namespace=kube-system", "exec", self.scheduler, "--", "curl", "-s", url)

    def row(self, name: str) -> list[str]:
        return next((line.split() for line in self.page().splitlines() if line.split()[:1] == [name]), [])

    def run(self, name: str, cpu: str, slo: str) -> None:
        """It names no scheduler."""
        resources = {"requests": {"cpu": cpu}}
        container = {"name": "c", "image": IMAGE, "imagePullPolicy": "Never", "command": FOREVER}
        spec = {"containers": [container | {"resources": resources}], "terminationGracePeriodSeconds": 0}
        meta = {"name": name, "annotations": {"controller": name, "slo": slo}}
        self.cluster.call("POST", PODS, {"metadata": meta, "spec": spec})

    def runs(self, name: str) -> bool:
        return bool(self.cluster.call("GET", f"{PODS}/{name}")["status"].get("phase") == "Running")

    def events(self, name: str, reason: str) -> list[str]:
        every = self.cluster.call("GET", EVENTS)["items"]
        return [e["message"] for e in every if e["involvedObject"]["name"] == name and e["reason"] == reason]


@pytest.fixture(scope="module")
def master(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Master]:
    if os.geteuid():
        pytest.skip("Unsupported: a real node needs root")
    archive = images(tmp_path_factory.mktemp("images"), TAG)
    folder, home = tmp_path_factory.mktemp("kubernetes"), tmp_path_factory.mktemp("home")
    with running(folder, version, controllers=True) as cluster, joined(cluster) as node:
        node.load(archive)
        cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": "j10ce-system"}})
        for file in (CLONE / "deploy/components/qos-scheduler/rbac.yaml", STATIC / "rbac.yaml"):
            for made in yaml.safe_load_all(file.read_text()):
                create(cluster, RBAC[made["kind"]], made)
        cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
        cluster.wait_for_account("shop")
        manifest = node.home / "manifests/kube-scheduler.json"
        manifest.write_text(json.dumps(static_pod(cluster, home)))
        made = Master(cluster, node, Kubectl(program("kubectl"), cluster.kubeconfig("admin"), home, ""))
        try:
            cluster.wait("its Lease", lambda: cluster.call("GET", LEASE)["spec"].get("holderIdentity"))
            yield made
        finally:
            manifest.unlink()


LEASE = "/apis/coordination.k8s.io/v1/namespaces/j10ce-system/leases/j10ce-qos-scheduler"


def static_pod(cluster: Cluster, home: Path) -> Mapping[str, Any]:
    """As deploy/ has it; where a control plane has its files in /etc/kubernetes, they are in a folder of this test."""
    made: dict[str, Any] = yaml.safe_load((STATIC / "kube-scheduler.yaml").read_text())
    config = json.loads(cluster.kubeconfig("scheduler").read_text())
    (known,) = config["clusters"]
    authority = Path(known["cluster"].pop("certificate-authority")).read_bytes()
    known["cluster"]["certificate-authority-data"] = base64.b64encode(authority).decode()
    (home / "scheduler.conf").touch(0o600)
    (home / "scheduler.conf").write_text(json.dumps(config))
    (home / "scheduler-config.conf").write_text((STATIC / "scheduler-config.conf").read_text())
    for volume in made["spec"]["volumes"]:
        volume["hostPath"]["path"] = str(home / Path(volume["hostPath"]["path"]).name)
    return made


def test_pods_that_name_no_scheduler_run_and_are_on_the_page_of_the_static_pod(master: Master) -> None:
    master.run("web", "50m", "0.9")
    master.cluster.wait("the pod to run", lambda: master.runs("web"))
    master.cluster.wait("its row", lambda: master.row("web")[1:2] and master.row("web")[1].endswith("/0.90"))
    heading = master.page().splitlines()[0]
    assert heading.split() == ["CONTROLLER", "QOS/SLO", "TTV", "RUNNING", "WAITING", "BINDING"]


def test_its_user_may_do_what_it_does_and_nothing_is_refused(master: Master) -> None:
    master.run("seen", "50m", "0.9")
    master.cluster.wait("the pod to run", lambda: master.runs("seen"))
    master.cluster.wait("its history", lambda: history(master.cluster))
    logs = master.kubectl("--namespace=kube-system", "logs", master.scheduler)
    assert "forbidden" not in logs, logs[-3000:]


def history(cluster: Cluster) -> object:
    return cluster.call("GET", f"{SYSTEM}/configmaps/j10ce-qos-scheduler-history")["binaryData"]


def test_a_pod_that_can_wait_goes_for_one_that_cannot(master: Master) -> None:
    """Both do not fit: each asks for more than half of what the node has."""
    allocatable = master.cluster.call("GET", f"/api/v1/nodes/{master.node.name}")["status"]["allocatable"]["cpu"]
    cpu = f"{int(allocatable) * 600}m"
    master.run("patient", cpu, "0.1")
    master.cluster.wait("it to run", lambda: master.runs("patient"))
    master.cluster.wait("that to be known", lambda: master.row("patient")[3:4] not in ([], ["0s"]))
    master.run("urgent", cpu, "1.0")
    master.cluster.wait("the other one to run in its place", lambda: master.runs("urgent"))
    master.cluster.wait("why", lambda: master.events("patient", "Preempted"))
    (why,) = master.events("patient", "Preempted")
    assert "shop/urgent" in why
    assert "can wait" in why
