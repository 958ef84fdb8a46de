"""deploy/ is consistent in itself, with the images, the command lines and the page that explains it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from j10ce.agent import main as agent_main
from j10ce.manager import config
from j10ce.manager.kube.webhook import PREFIX
from j10ce.manager.kube_plane import SERVICE
from tests.deploy.dockerfiles import CLONE, FILES, program
from tests.deploy.rights import PAGE, columns_of, table
from tests.kube.manifests import built
from tools import generate_manifests

pytestmark = pytest.mark.lab

DEPLOY = CLONE / "deploy"
VERSION = tomllib.loads((CLONE / "pyproject.toml").read_text())["project"]["version"]
OLD = "overlays/kubernetes-1.20"
OPTIONAL = ("j10ce-qos-scheduler",)  # of options, with tests of their own
OURS = {f"j10ce-qos-{file.stem}": program(file) for file in FILES}


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


@pytest.fixture(scope="module")
def objects() -> list[Any]:
    return built(DEPLOY)


def one(objects: list[Any], kind: str, name: str) -> Any:
    (match,) = (o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name)
    return match


# ------------------------------------------------------------------ files


DERIVED = generate_manifests.derived()


@pytest.mark.parametrize("name", DERIVED)
def test_derived_files_are_fresh(name: str) -> None:
    assert (DEPLOY / name).read_text() == DERIVED[name], "make generate"


def test_an_old_and_a_current_kustomize_build_the_same() -> None:
    old, new = (sorted(map(spelled, built(DEPLOY / OLD, name))) for name in ("kubectl-old", "kubectl"))
    assert old == new


def test_old_servers_get_the_same_without_what_they_do_not_know(objects: list[Any]) -> None:
    old = {(o["kind"], o["metadata"]["name"]) for o in built(DEPLOY / OLD)}
    more = {(o["kind"], o["metadata"]["name"]) for o in objects} - old
    assert {kind for kind, _ in more} == {
        "PodDisruptionBudget",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
    text = yaml.safe_dump_all(built(DEPLOY / OLD))
    assert not [word for word in ("x-kubernetes-validations", "matchConditions", "appArmorProfile: {") if word in text]
    assert "container.apparmor.security.beta.kubernetes.io/agent: unconfined" in text
    agent = one(objects, "DaemonSet", "j10ce-qos-agent")["spec"]["template"]
    assert agent["spec"]["containers"][0]["securityContext"]["appArmorProfile"] == {"type": "Unconfined"}
    assert "annotations" not in agent["metadata"]


def test_old_versions_learn_what_to_type_before_anything_else() -> None:
    readme = (CLONE / "README.md").read_text()
    assert 0 < readme.index(f"kubectl apply -k deploy/{OLD}/") < readme.index("kubectl apply -k deploy/ ")
    assert 0 < PAGE.index(f"kubectl apply -k deploy/{OLD}/") < PAGE.index("$ kubectl apply -k deploy/\n")


@pytest.mark.parametrize(
    "file",
    ["docs/kubernetes.md", f"deploy/{OLD}/kustomization.yaml", "deploy/components/fail-closed/kustomization.yaml"],
)
def test_a_version_that_does_not_name_its_namespaces_hears_how_to(objects: list[Any], file: str) -> None:
    """Else the webhooks would look at kube-system there."""
    for kind in ("Validating", "Mutating"):
        hooks = one(objects, f"{kind}WebhookConfiguration", "j10ce-qos")["webhooks"]
        (selector,) = (hook["namespaceSelector"] for hook in hooks if hook["name"] == "pods.j10ce.io")
        (name,) = (e for e in selector["matchExpressions"] if "kube-system" in e["values"])
        assert name["operator"] == "NotIn"
        assert f"kubectl label namespace kube-system {name['key']}=kube-system" in (CLONE / file).read_text()


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
    commands = {c["image"]: c["command"] for c in containers(objects)}
    assert commands == {f"{image}:{VERSION}": [name] for image, name in OURS.items() if name not in OPTIONAL}


def test_every_argument_is_one_that_the_process_knows(objects: list[Any]) -> None:
    for container in containers(objects):
        arguments = "\n".join(container["args"])
        for entry in container["env"]:
            arguments = arguments.replace(f"$({entry['name']})", "10.0.0.1")
        words = arguments.split("\n")
        assert "$(" not in arguments, "only variables that are set are filled in"
        if container["command"] == ["j10ce-qos-agent"]:
            assert agent_main.arguments().parse_args(words).server == "kube:"
        else:
            assert config.read(words).kubernetes


def test_the_manager_serves_ipv6_and_ipv4(objects: list[Any]) -> None:
    (container,) = one(objects, "Deployment", "j10ce-qos-controller-manager")["spec"]["template"]["spec"]["containers"]
    (port,) = container["ports"]
    assert config.read(container["args"]).listen == f"[::]:{port['containerPort']}"


def test_the_manager_is_an_ordinary_pod(objects: list[Any]) -> None:
    spec = one(objects, "Deployment", "j10ce-qos-controller-manager")["spec"]["template"]["spec"]
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
    spec = one(objects, "DaemonSet", "j10ce-qos-agent")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    security = container["securityContext"]
    assert not security.get("privileged")
    assert (security["allowPrivilegeEscalation"], security["readOnlyRootFilesystem"]) == (False, True)
    has = {volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
    has |= set(security["capabilities"]["add"]) | {name for name in spec if name.startswith("host")}
    table = PAGE.partition("### The agent on its host")[2].partition("\n\n##")[0]
    assert set(re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)) == has


def test_the_agent_runs_on_every_node_and_is_evicted_last(objects: list[Any]) -> None:
    spec = one(objects, "DaemonSet", "j10ce-qos-agent")["spec"]["template"]["spec"]
    assert (spec["tolerations"], spec["priorityClassName"]) == ([{"operator": "Exists"}], "system-node-critical")
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    but = {(e["key"], e["operator"], *e["values"]) for e in term["matchExpressions"]}
    assert but == {
        ("type", "NotIn", "virtual-kubelet"),
        ("eks.amazonaws.com/compute-type", "NotIn", "fargate"),
    }, "where there is no kernel for it"
    assert spec["terminationGracePeriodSeconds"] >= 60, "giving every setting back takes its time"


def test_a_drain_leaves_a_manager(objects: list[Any]) -> None:
    manager = one(objects, "Deployment", "j10ce-qos-controller-manager")["spec"]
    budget = one(objects, "PodDisruptionBudget", "j10ce-controller-manager")["spec"]
    assert budget["maxUnavailable"] < manager["replicas"]
    assert budget["selector"] == manager["selector"]


def test_pods_of_critical_priorities_are_admitted_where_a_quota_has_to_say_so(objects: list[Any]) -> None:
    (scope,) = one(objects, "ResourceQuota", "j10ce-critical-pods")["spec"]["scopeSelector"]["matchExpressions"]
    pods = [o["spec"]["template"]["spec"] for o in objects if o["kind"] in ("Deployment", "DaemonSet")]
    assert {pod["priorityClassName"] for pod in pods} <= set(scope["values"])


# ------------------------------------------------------------------ webhooks and scheduler


def test_webhooks_fail_open_and_lead_to_the_manager(objects: list[Any]) -> None:
    service = one(objects, "Service", SERVICE)["metadata"]
    for kind, verb in (("Validating", "validate"), ("Mutating", "mutate")):
        for hook in one(objects, f"{kind}WebhookConfiguration", "j10ce-qos")["webhooks"]:
            assert (hook["failurePolicy"], hook["timeoutSeconds"]) == ("Ignore", 3)
            where = {"name": service["name"], "namespace": service["namespace"], "path": f"{PREFIX}{verb}"}
            assert hook["clientConfig"] == {"service": where}


def test_scheduler_configurations_differ_in_what_they_are_for() -> None:
    (new,), (old,) = documents("scheduler/v1.yaml"), documents("scheduler/v1beta1.yaml")
    assert old.pop("apiVersion").endswith("/v1beta1")
    assert new.pop("apiVersion").endswith("/v1")
    assert old["extenders"][0].pop("filterVerb") == "filter-v1beta1"
    assert old == {**new, "extenders": [{k: v for k, v in new["extenders"][0].items() if k != "filterVerb"}]}


# ------------------------------------------------------------------ rights


def test_the_page_tells_every_right(objects: list[Any]) -> None:
    written = {
        row
        for o in objects
        if o["kind"] in ("ClusterRole", "Role")
        for rule in o["rules"]
        for row in [(o["metadata"]["name"], o["metadata"].get("namespace", "cluster"), *columns_of(rule))]
    }
    assert {row for row in table() if row[0] not in OPTIONAL} == written


def test_nobody_but_the_manager_may_move_pods(objects: list[Any]) -> None:
    """The leader evicts within budgets, and schedulers bind."""
    roles = [o for o in objects if o["kind"] in ("ClusterRole", "Role")]
    moving = {"pods/eviction", "pods/binding", "bindings", "*"}
    may = {(o["metadata"]["name"], r) for o in roles for rule in o["rules"] for r in rule["resources"] if r in moving}
    assert may == {("j10ce-controller-manager", "pods/eviction")}


def test_the_two_files_and_the_two_kinds_before_them_are_all_of_deploy(objects: list[Any]) -> None:
    before = [f"config/crd/bases/j10ce.io_{name.partition('.')[0]}.yaml" for name in generate_manifests.APPLIED_BEFORE]
    files = (*before, "deploy/controller-manager.yaml", "deploy/agent-daemonset.yaml")
    read = [made for file in files for made in yaml.safe_load_all((CLONE / file).read_text())]
    by_name = {(made["kind"], made["metadata"]["name"]): made for made in read}
    whole = {(made["kind"], made["metadata"]["name"]): made for made in objects}
    assert by_name.keys() == whole.keys()
    without_rules = {("CustomResourceDefinition", name) for name in generate_manifests.APPLIED_BEFORE}
    assert [key for key in whole.keys() - without_rules if by_name[key] != whole[key]] == []
