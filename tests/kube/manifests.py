"""What config/crd and deploy/ hold, and how our kinds get onto a cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from tests.lab.debian import program
from tests.lab.kube.cluster import Cluster
from tests.lab.kube.kubernetes import Version

CLONE = Path(__file__).resolve().parents[2]
BASES = CLONE / "config/crd/bases"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definitions() -> list[Any]:
    return [yaml.safe_load(file.read_text()) for file in sorted(BASES.glob("*.yaml"))]


def install_crds(cluster: Cluster, made: Iterable[Any] = ()) -> None:
    """Those of config/crd/bases unless others are given. Returns once objects of every kind can be written."""
    for definition in made or definitions():
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        apply = f"{path}?fieldManager=tests&force=true"
        cluster.call("PATCH", apply, definition, content="application/apply-patch+yaml")
        cluster.wait(path, established(cluster, path))


def established(cluster: Cluster, path: str) -> Callable[[], bool]:
    def probe() -> bool:
        conditions = cluster.call("GET", path).get("status", {}).get("conditions") or ()
        assert not [c for c in conditions if c["type"] == "NonStructuralSchema" and c["status"] == "True"], conditions
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

    return probe


def deploy_for(version: Version) -> Path:
    """What docs/kubernetes.md says to apply there."""
    return CLONE / ("deploy" if version == "current" else "deploy/overlays/kubernetes-1.20")


def built(folder: Path, kubectl: str = "kubectl") -> list[Any]:
    """The objects of a kustomization."""
    done = subprocess.run([program(kubectl), "kustomize", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def second_scheduler(objects: list[Any]) -> tuple[str, dict[str, Any]]:
    """The image of the scheduler that an option adds, and the configuration that it reads."""
    named = {(o["kind"], o["metadata"]["name"]): o for o in objects}
    pod = named["Deployment", "j10ce-scheduler"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    folders = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    (volume,) = (volume for volume in pod["volumes"] if "configMap" in volume)
    (file,) = (word.partition("--config=")[2] for word in container["args"] if word.startswith("--config="))
    held = named["ConfigMap", volume["configMap"]["name"]]["data"]
    read = {f"{folders[volume['name']]}/{name}": text for name, text in held.items()}
    return container["image"], yaml.safe_load(read[file])
