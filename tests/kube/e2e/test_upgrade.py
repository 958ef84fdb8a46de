"""Installed by the names that the documents have, and from the names before, with pods that run all the while."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.agent.process import eventually
from tests.docs.pages import type_kubectl
from tests.kube.deploy.leftovers import left_over
from tests.kube.e2e.site import SYSTEM, Site, lowest, ours, protected
from tests.kube.manifests import built
from tests.lab.debian import program

pytestmark = pytest.mark.timeout(900)
BEFORE = {"Deployment": "j10ce-controller-manager", "DaemonSet": "j10ce-agent"}
ITS_CONFIG = "agent-before"


@pytest.fixture
def bare(ground: Site) -> Site:
    """With nothing of ours, whatever the test before has left."""
    ground.remove("--ignore-not-found", "-k", str(ground.deploy))
    ground.cluster.wait("everything to be gone", lambda: not left_over(ground.cluster))
    return ground


def kubectl_of(site: Site) -> Path:
    return program("kubectl" if site.cluster.version == "current" else "kubectl-old")


def agents_started(site: Site) -> int:
    pods = site.pods(SYSTEM, "app.kubernetes.io/component=agent")
    return sum(bool(status.get("started")) for pod in pods for status in pod["status"].get("containerStatuses", ()))


def test_file_by_file_everything_works(bare: Site, tmp_path: Path) -> None:
    if bare.cluster.version == "old":
        pytest.skip("Unsupported: the single files are for Kubernetes 1.30 and newer")
    assert type_kubectl("docs/kubernetes-kind.md", kubectl_of(bare), bare.cluster.kubeconfig("admin"), tmp_path) == 8
    bare.use()
    assert eventually(lambda: protected(bare))


def test_from_the_names_before_no_floor_drops_and_one_agent_runs(bare: Site, tmp_path: Path) -> None:
    bare.kubectl("apply", "-f", "-", given=listed(before(bare)))
    bare.kubectl("-n", SYSTEM, "rollout", "status", f"deployment/{BEFORE['Deployment']}")
    bare.use()
    assert eventually(lambda: protected(bare))
    files = ours(bare)
    old = {"-k deploy/": "-k deploy/overlays/kubernetes-1.20/"} if bare.cluster.version == "old" else {}
    with lowest(files) as seen:
        admin = bare.cluster.kubeconfig("admin")
        assert type_kubectl("docs/upgrading.md", kubectl_of(bare), admin, tmp_path, old) == 6
        bare.cluster.wait("one agent", bare.has_agent)
        assert eventually(lambda: protected(bare))
    assert [file for file, value in seen.items() if value <= int(bare.originals[file])] == []
    assert agents_started(bare) == 1
    owner = bare.agent()["metadata"]["ownerReferences"][0]["name"]
    assert owner == "j10ce-qos-agent"
    bare.remove("--ignore-not-found", "-k", str(bare.deploy))  # what is in the namespace may go with it first
    bare.cluster.wait("everything to be gone", lambda: not left_over(bare.cluster))
    assert bare.values() == bare.originals


def before(site: Site) -> list[dict[str, Any]]:
    """deploy/ as it was: other names, a right to look at the other name, and agents that do."""
    made = built(site.deploy)
    for one in made:
        match one["kind"]:
            case "Deployment" | "DaemonSet" as kind:
                one["metadata"]["name"] = BEFORE[kind]
                for volume in one["spec"]["template"]["spec"]["volumes"]:
                    if "configMap" in volume:
                        volume["configMap"]["name"] = ITS_CONFIG
            case "Role" if one["metadata"]["name"] == "j10ce-agent":
                one["rules"][0]["resourceNames"] = [BEFORE["DaemonSet"]]
    settings = yaml.safe_dump({"daemonset": f"{SYSTEM}/{BEFORE['DaemonSet']}"})
    metadata = {"name": ITS_CONFIG, "namespace": SYSTEM}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"agent.yaml": settings}}
    return [*made, config]


def listed(objects: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": objects}
