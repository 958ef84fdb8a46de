"""deploy/ is consistent in itself, with the images, the command lines and the page that explains it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from j10ce.agent import main as agent_main
from j10ce.manager import settings
from j10ce.manager.kube_compose import SERVICE
from j10ce.manager.webhook import PREFIX
from tests.deploy.dockerfiles import CLONE, FILES, program
from tests.kube.conftest import built
from tools import generate_manifests

DEPLOY = CLONE / "deploy"
PAGE = (CLONE / "docs/kubernetes.md").read_text()
VERSION = tomllib.loads((CLONE / "pyproject.toml").read_text())["project"]["version"]
EVERYWHERE = ("small", "webhooks-fail-closed", "scheduler", "strict")  # overlays that kubectl 1.20 can build
OURS = {f"j10ce-qos-{file.stem}": program(file) for file in FILES}


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


@pytest.fixture(scope="module")
def objects() -> list[Any]:
    return built(DEPLOY)


def one(objects: list[Any], kind: str, name: str) -> Any:
    (found,) = (o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name)
    return found


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("name", generate_manifests.BUNDLES)
def test_bundles_are_fresh(name: str) -> None:
    made = generate_manifests.HEAD + generate_manifests.bundle(generate_manifests.BUNDLES[name])
    assert (DEPLOY / name).read_text() == made, "make generate"


def test_the_whole_and_the_base_of_overlays_list_the_same_files() -> None:
    (whole,), (base,) = documents("kustomization.yaml"), documents("base/kustomization.yaml")
    assert whole == {"resources": [f"base/{name}" for name in base["resources"]]}


@pytest.mark.parametrize("overlay", ["", *(f"overlays/{name}" for name in EVERYWHERE)])
def test_an_old_and_a_current_kustomize_build_the_same(overlay: str) -> None:
    old, new = (sorted(map(spelled, built(DEPLOY / overlay, name))) for name in ("kubectl-old", "kubectl"))
    assert old == new


def spelled(obj: Any) -> str:
    """Without what a generator puts behind a name, and without empty metadata."""
    obj["metadata"] = {key: value for key, value in obj["metadata"].items() if value}
    return re.sub(r"j10ce-scheduler-[a-z0-9]{10}\b", "j10ce-scheduler", yaml.safe_dump(obj))


# ------------------------------------------------------------------ processes


def containers(objects: list[Any]) -> Iterator[Any]:
    for obj in objects:
        if obj["kind"] in ("Deployment", "DaemonSet"):
            yield from obj["spec"]["template"]["spec"]["containers"]


def test_every_container_runs_what_its_image_holds(objects: list[Any]) -> None:
    found = {c["image"]: c["command"] for c in containers(objects)}
    assert found == {f"{image}:{VERSION}": [name] for image, name in OURS.items()}


def test_every_argument_is_one_that_the_process_knows(objects: list[Any]) -> None:
    for container in containers(objects):
        told = "\n".join(container["args"])
        for entry in container["env"]:
            told = told.replace(f"$({entry['name']})", "10.0.0.1")
        words = told.split("\n")
        assert "$(" not in told, "only variables that are set are filled in"
        if container["command"] == ["j10ce-qos-agent"]:
            assert agent_main.arguments().parse_args(words).server == "kube:"
        else:
            assert settings.read(words).kubernetes


def test_the_manager_is_an_ordinary_pod(objects: list[Any]) -> None:
    spec = one(objects, "Deployment", "j10ce-controller-manager")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not [volume for volume in spec["volumes"] if "hostPath" in volume]
    assert not spec.keys() & {"hostPID", "hostNetwork", "hostIPC"}
    assert {"livenessProbe", "readinessProbe", "resources"} <= container.keys()


def test_the_page_names_all_that_the_agent_has_of_its_host(objects: list[Any]) -> None:
    spec = one(objects, "DaemonSet", "j10ce-agent")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    security = container["securityContext"]
    assert not security.get("privileged")
    assert (security["allowPrivilegeEscalation"], security["readOnlyRootFilesystem"]) == (False, True)
    has = {volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
    has |= set(security["capabilities"]["add"]) | {name for name in spec if name.startswith("host")}
    table = PAGE.partition("### The agent on its host")[2].partition("\n\n##")[0]
    assert set(re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)) == has


def test_the_agent_runs_on_every_node_and_is_evicted_last(objects: list[Any]) -> None:
    spec = one(objects, "DaemonSet", "j10ce-agent")["spec"]["template"]["spec"]
    assert (spec["tolerations"], spec["priorityClassName"]) == ([{"operator": "Exists"}], "system-node-critical")
    assert spec["terminationGracePeriodSeconds"] >= 60, "giving every setting back takes its time"


# ------------------------------------------------------------------ webhooks and scheduler


def test_webhooks_fail_open_and_lead_to_the_manager(objects: list[Any]) -> None:
    service = one(objects, "Service", SERVICE)["metadata"]
    for kind, verb in (("Validating", "validate"), ("Mutating", "mutate")):
        for hook in one(objects, f"{kind}WebhookConfiguration", "j10ce-qos")["webhooks"]:
            assert (hook["failurePolicy"], hook["timeoutSeconds"]) == ("Ignore", 5)
            where = {"name": service["name"], "namespace": service["namespace"], "path": f"{PREFIX}{verb}"}
            assert hook["clientConfig"] == {"service": where}


def test_fail_closed_means_every_webhook() -> None:
    made = built(DEPLOY / "overlays/webhooks-fail-closed")
    hooks = [hook for o in made if o["kind"].endswith("WebhookConfiguration") for hook in o["webhooks"]]
    assert {hook["failurePolicy"] for hook in hooks} == {"Fail"}
    assert [hook["clientConfig"]["service"]["path"] for hook in hooks], "nothing else is lost in the patch"


def test_scheduler_configurations_differ_in_what_they_are_for() -> None:
    (new,), (old,) = documents("scheduler/v1.yaml"), documents("scheduler/v1beta1.yaml")
    (second,), (strict,) = documents("overlays/scheduler/config.yaml"), documents("overlays/strict/config.yaml")
    assert old.pop("apiVersion").endswith("/v1beta1")
    assert new.pop("apiVersion") == second.pop("apiVersion") == strict.pop("apiVersion")
    assert old["extenders"][0].pop("filterVerb") == "filter-v1beta1"
    assert old == {**new, "extenders": [{k: v for k, v in new["extenders"][0].items() if k != "filterVerb"}]}
    assert {key: value for key, value in second.items() if key not in ("profiles", "leaderElection")} == new
    (extender,) = second["extenders"]
    assert extender.pop("ignorable") is True
    assert second == strict


# ------------------------------------------------------------------ rights


def test_the_page_tells_every_right(objects: list[Any]) -> None:
    written = {
        row
        for o in objects
        if o["kind"] in ("ClusterRole", "Role")
        for rule in o["rules"]
        for row in [(o["metadata"]["name"], o["metadata"].get("namespace", "cluster"), *told(rule))]
    }
    assert set(table()) == written


def told(rule: dict[str, list[str]]) -> tuple[str, ...]:
    group = ", ".join(rule["apiGroups"]) or "core"
    return group, *(", ".join(rule.get(key, ())) or "–" for key in ("resources", "resourceNames", "verbs"))


def table() -> Iterator[tuple[str, ...]]:
    for line in PAGE.splitlines():
        if line.startswith("| `j10ce-"):
            *cells, why = (cell.strip().replace("`", "") for cell in line.strip("|").split("|"))
            assert why, line
            yield tuple(cells)
