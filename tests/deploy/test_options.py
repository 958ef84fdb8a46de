"""Every option of deploy/ does what the page says of it, on the versions that it says."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from j10ce.manager import config as settings
from j10ce.scheduler.config.settings import configured
from j10ce.scheduler.process import options
from j10ce.scheduler.process.compose import DEFAULT
from tests.deploy.dockerfiles import CLONE
from tests.deploy.rights import columns_of, table
from tests.kube.manifests import built, second_scheduler

pytestmark = pytest.mark.lab

DEPLOY = CLONE / "deploy"
PAGE = (CLONE / "docs/kubernetes.md").read_text()
OLD = "kubernetes-1.20"
OPTIONS = (
    "small",
    "fail-closed",
    "scheduler",
    "strict",
    "network-policy",
    "koordinator",
    "qos-scheduler",
    "network",
    "realtime",
)
BEFORE = {"strict": ["scheduler"]}  # components that one comes after
READ_BY = {"v1beta1": range(19, 23), "v1beta3": range(23, 29), "v1": range(25, 99)}  # minor versions of kube-scheduler
EITHER = pytest.mark.parametrize("prefix", ["", f"{OLD}-"], ids=["current", "old"])


def overlay(name: str) -> list[Any]:
    return built(DEPLOY / "overlays" / name)


def manager(objects: list[Any]) -> Any:
    (deployment,) = (o for o in objects if o["kind"] == "Deployment" and "manager" in o["metadata"]["name"])
    return deployment["spec"]


def arguments(objects: list[Any]) -> list[str]:
    (container,) = manager(objects)["template"]["spec"]["containers"]
    words: list[str] = container["args"]
    return words


def test_every_option_is_a_component_with_ready_overlays() -> None:
    components = {folder.name for folder in (DEPLOY / "components").iterdir()}
    assert components == {*OPTIONS, "scheduler-1.20", "scheduler-1.23"}
    overlays = {folder.name for folder in (DEPLOY / "overlays").iterdir()}
    assert overlays == {OLD, *OPTIONS, *(f"{OLD}-{name}" for name in OPTIONS)}
    assert [name for name in OPTIONS if f"| `{name}` |" not in PAGE] == []


@pytest.mark.parametrize("name", OPTIONS)
def test_a_ready_overlay_is_an_installation_with_its_option(name: str) -> None:
    for folder, base in ((name, "../../default"), (f"{OLD}-{name}", f"../{OLD}")):
        made = yaml.safe_load((DEPLOY / "overlays" / folder / "kustomization.yaml").read_text())
        assert made["resources"] == [base]
        for component in (*BEFORE.get(name, ()), name):
            assert f"../../components/{component}" in made["components"]


# ------------------------------------------------------------------ scheduler and strict


def fitting(objects: list[Any]) -> dict[str, Any]:
    """The extender of a scheduler that can read what it is given."""
    image, config = second_scheduler(objects)
    version, minor = config["apiVersion"].rpartition("/")[2], int(image.rpartition(":v1.")[2].split(".")[0])
    assert minor in READ_BY[version], f"{image} reads no {version}"
    assert [profile["schedulerName"] for profile in config["profiles"]] == ["j10ce-scheduler"]
    (extender,) = config["extenders"]
    assert extender["filterVerb"] == ("filter-v1beta1" if version == "v1beta1" else "filter")
    fitted: dict[str, Any] = extender
    return fitted


@EITHER
def test_a_second_scheduler_reads_the_configuration_that_it_is_given(prefix: str) -> None:
    extender = fitting(overlay(f"{prefix}scheduler"))
    assert extender.pop("ignorable") is True
    assert extender == fitting(overlay(f"{prefix}strict")), "the same, and not ignorable"


def test_a_second_scheduler_has_no_key_of_an_authority() -> None:
    (pod,) = (
        o["spec"]["template"]["spec"]
        for o in overlay("scheduler")
        if (o["kind"], o["metadata"]["name"]) == ("Deployment", "j10ce-scheduler")
    )
    (secret,) = (volume["secret"] for volume in pod["volumes"] if "secret" in volume)
    assert {item["key"] for item in secret["items"]} == {"bundle.crt", "client.crt", "client.key"}


def test_the_kustomization_of_the_page_is_built_as_it_stands(tmp_path: Path) -> None:
    (block,) = (text for text in PAGE.split("```\n") if text.startswith("resources:"))
    (tmp_path / "kustomization.yaml").write_text(block)
    (tmp_path / "j10ce-qos").symlink_to(CLONE)
    made = built(tmp_path)
    assert not fitting(made).get("ignorable")
    assert second_scheduler(made)[0].endswith(f":{yaml.safe_load(block)['images'][0]['newTag']}")
    assert manager(made)["replicas"] == 1, "small"


# ------------------------------------------------------------------ the others


@EITHER
def test_agents_that_divide_links_have_two_capabilities_more_and_nothing_else(prefix: str) -> None:
    def agent(objects: list[Any]) -> Any:
        (spec,) = (o["spec"]["template"]["spec"] for o in objects if o["kind"] == "DaemonSet")
        return spec

    plain, divides = agent(overlay(OLD) if prefix else built(DEPLOY / "default")), agent(overlay(f"{prefix}network"))
    assert plain["hostNetwork"] is divides["hostNetwork"] is True
    more = divides["containers"][0]["securityContext"]["capabilities"]["add"]
    assert more == [*plain["containers"][0]["securityContext"]["capabilities"]["add"], "NET_ADMIN", "SYS_ADMIN"]


@EITHER
def test_the_qos_driven_scheduler_reads_the_configuration_that_it_is_given(prefix: str) -> None:
    named = {(o["kind"], o["metadata"]["name"]): o for o in overlay(f"{prefix}qos-scheduler")}
    spec = named["Deployment", "j10ce-qos-scheduler"]["spec"]
    assert spec["replicas"] == 2
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    chosen = options.read(container["args"])
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
    assert chosen.config is not None
    held = named["ConfigMap", mounts[str(chosen.config.parent)]["configMap"]["name"]]["data"]
    assert yaml.safe_load(held[chosen.config.name]) == DEFAULT, "as without a file"
    (made,) = configured(yaml.safe_load(held[chosen.config.name])).profiles
    assert made.name == "j10ce-qos-scheduler"
    assert chosen.listen == options.DEBUG_LISTEN, "the debug page is for the pod alone"


@EITHER
def test_the_qos_driven_scheduler_has_the_rights_of_the_page_and_no_others(prefix: str) -> None:
    roles = [
        o
        for o in overlay(f"{prefix}qos-scheduler")
        if o["kind"] in ("ClusterRole", "Role") and o["metadata"]["name"] == "j10ce-qos-scheduler"
    ]
    written = {
        (o["metadata"]["name"], o["metadata"].get("namespace", "cluster"), *columns_of(rule))
        for o in roles
        for rule in o["rules"]
    }
    assert written == {row for row in table() if row[0] == "j10ce-qos-scheduler"}


@EITHER
def test_fail_closed_means_every_webhook_and_the_managers_behind_them(prefix: str) -> None:
    made = overlay(f"{prefix}fail-closed")
    hooks = [hook for o in made if o["kind"].endswith("WebhookConfiguration") for hook in o["webhooks"]]
    assert {hook["failurePolicy"] for hook in hooks} == {"Fail"}
    assert [hook["clientConfig"]["service"]["path"] for hook in hooks], "nothing else is lost in the patch"
    assert settings.read(arguments(made)).fail_closed


@EITHER
def test_koordinator_is_spoken_by_managers_and_agents_and_managers_alone_read_what_it_writes(prefix: str) -> None:
    made = overlay(f"{prefix}koordinator")
    assert settings.read(arguments(made)).dialects == ("koordinator",)
    (agent,) = (o["spec"]["template"]["spec"]["containers"][0] for o in made if o["kind"] == "DaemonSet")
    assert "--dialect=koordinator" in agent["args"]
    (binding,) = (o for o in made if (o["kind"], o["metadata"]["name"]) == ("ClusterRoleBinding", "j10ce-koordinator"))
    assert [s["name"] for s in binding["subjects"]] == ["j10ce-controller-manager"]
    reads = {r for o in made if o["kind"] == "ClusterRole" and "agent" in o["metadata"]["name"] for r in resources(o)}
    assert not reads & {"configmaps", "priorityclasses", "clustercolocationprofiles"}


@EITHER
def test_real_time_takes_the_hosts_processes_and_two_rights(prefix: str) -> None:
    (pod,) = (o["spec"]["template"]["spec"] for o in overlay(f"{prefix}realtime") if o["kind"] == "DaemonSet")
    assert pod["hostPID"] is True
    assert {"SYS_NICE", "IPC_LOCK"} <= {*pod["containers"][0]["securityContext"]["capabilities"]["add"]}


@EITHER
def test_koordinators_webhooks_see_its_configmap_and_pods_that_change_their_class(prefix: str) -> None:
    made = overlay(f"{prefix}koordinator")
    hooks = {
        hook["name"]: hook
        for o in made
        if o["kind"] == "ValidatingWebhookConfiguration" and o["metadata"]["name"] == "j10ce-qos"
        for hook in o["webhooks"]
    }
    assert {"objects.j10ce.io", "pods.j10ce.io", "configmaps.j10ce.io", "classes.j10ce.io"} == hooks.keys()
    assert [r["resources"] for r in hooks["configmaps.j10ce.io"]["rules"]] == [["configmaps"]]
    (mutating,) = (o for o in made if o["kind"] == "MutatingWebhookConfiguration")
    policies = {hook["name"]: hook.get("reinvocationPolicy") for hook in mutating["webhooks"]}
    assert policies == {"holds.j10ce.io": None, "pods.j10ce.io": "Never"}


def resources(role: Any) -> set[str]:
    return {name for rule in role["rules"] for name in rule.get("resources", ())}


@EITHER
def test_on_a_small_cluster_a_namespace_may_reserve_all_of_it(prefix: str) -> None:
    made = overlay(f"{prefix}small")
    assert manager(made)["replicas"] == 1
    assert settings.read(arguments(made)).namespace_limit == 100


@pytest.mark.parametrize(
    ("address", "may"),
    [("192.0.2.7", True), ("2001:db8::7", True), ("10.244.3.7", False), ("fd00:10:244:3::7", False)],
)
def test_nodes_reach_the_managers_and_pods_do_not(address: str, may: bool) -> None:
    (policy,) = (o["spec"] for o in overlay("network-policy") if o["kind"] == "NetworkPolicy")
    (rule,) = policy["ingress"]
    blocks = [peer["ipBlock"] for peer in rule["from"] if "ipBlock" in peer]
    assert any(within(address, block["cidr"]) and not within(address, *block["except"]) for block in blocks) is may


def within(address: str, *networks: str) -> bool:
    return any(ip_address(address) in ip_network(network) for network in networks)
