"""What a user does: install, apply the examples, look, update, remove. Every process of ours is a pod."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.agent.process import eventually
from tests.etcd.cluster import free_ports
from tests.kube.deploy.leftovers import left_over
from tests.kube.e2e.site import DATABASES, SYSTEM, WEB_FLOOR, Site, lowest, ours, protected, read
from tests.kube.manifests import CLONE
from tests.lab.kube.node import SYS_RESOURCE

pytestmark = pytest.mark.timeout(900)  # the first test waits for images, which may have to be made
DAC_OVERRIDE = 1


# ------------------------------------------------------------------ install and look


def test_processes_have_what_deploy_gives_them_and_no_more(site: Site) -> None:
    agent, manager = process(site, "agent"), process(site, "controller-manager")
    assert (agent["Uid"], manager["Uid"]) == ("0", "65532")
    assert int(agent["CapEff"], 16) in (1 << DAC_OVERRIDE, 1 << DAC_OVERRIDE | 1 << SYS_RESOURCE)
    assert int(agent["CapBnd"], 16) == int(agent["CapEff"], 16)
    assert int(manager["CapBnd"], 16) == 0
    assert {(one["NoNewPrivs"], one["Seccomp"]) for one in (agent, manager)} == {("1", "2")}


def process(site: Site, component: str) -> dict[str, str]:
    """What the kernel says of a process of ours, as it runs in its pod."""
    metadata = site.pods(SYSTEM, f"app.kubernetes.io/component={component}")[0]["metadata"]
    (group,) = site.node.containers(metadata["uid"], metadata["name"], SYSTEM).values()
    pid = (group / "cgroup.procs").read_text().split()[0]
    status = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {words[0].rstrip(":"): words[1] for words in status if len(words) > 1}


def test_pods_of_the_examples_are_protected(site: Site) -> None:
    assert eventually(lambda: protected(site))


def test_listings_tell_the_story(site: Site) -> None:
    def shown(kind: str, name: str, *columns: str) -> list[str]:
        """By its titles: a cell may be empty, so words are found where their column begins."""
        head, *rows = site.kubectl("get", kind, "-A", "-o", "wide").splitlines()
        (row,) = (row for row in rows if name in row.split())
        starts = {title[0]: title.start() for title in re.finditer(r"\S+", head)}
        return [row[starts[column] :].split()[0] for column in columns]

    policy = ("minimalreservationpolicies", "db", "UNITS", "PLACED", "USED")
    assert eventually(lambda: shown(*policy) == ["2", "2", "2"]), shown(*policy)
    floors = f"{2 * 500 + 2 * WEB_FLOOR}m"
    node = ("nodeqoses", site.node.name, "RESERVED-CPU")
    assert eventually(lambda: shown(*node) == [floors]), shown(*node)
    assert shown("qosprofiles", "database", "TIER") == ["sensitive"]


def test_a_pod_is_explained_from_anywhere(site: Site) -> None:
    (name, _) = (pod["metadata"]["name"] for pod in site.pods(*DATABASES))

    def shown() -> str:
        return site.cli("explain", f"pod/{name}", "-n", "payments")

    assert eventually(lambda: "profile database" in shown() and "no agent reports" not in shown())
    assert "cpu 500m" in shown()


def test_the_command_line_in_the_agents_pod_sees_its_node(site: Site) -> None:
    output = site.kubectl("-n", SYSTEM, "exec", site.agent()["metadata"]["name"], "--", "j10ce-qos", "status")
    assert "armed" in output


def test_a_manager_in_a_pod_leads_and_judges(site: Site) -> None:
    lease = site.kubectl.read("-n", SYSTEM, "lease", "j10ce-controller-manager")
    managers = {pod["metadata"]["name"] for pod in site.pods(SYSTEM, "app.kubernetes.io/component=controller-manager")}
    assert lease["spec"]["holderIdentity"].rpartition("_")[0] in managers
    wrong = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "wrong", "labels": {"j10ce.io/qos-profile": "nowhere"}},
        "spec": {"containers": [{"name": "c", "image": "none"}]},
    }
    output = site.kubectl("-n", "shop", "create", "--dry-run=server", "-f", "-", given=wrong, code=1)
    assert "no QoSProfile has this name" in output


# ------------------------------------------------------------------ update


def test_settings_of_all_agents_are_in_a_config_map(site: Site) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    site.kubectl("-n", SYSTEM, "create", "configmap", "j10ce-agent", f"--from-literal=agent.yaml=metrics: {address}")
    roll(site)
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=100) as answer:
        assert b"j10ce_" in answer.read()


def roll(site: Site) -> None:
    before = site.agent()["metadata"]["uid"]
    site.kubectl("-n", SYSTEM, "rollout", "restart", "daemonset/j10ce-qos-agent")
    site.cluster.wait("the next agent", lambda: site.has_agent(other_than=before))


def test_a_rolling_update_drops_no_floor_for_a_moment(site: Site) -> None:
    """Weights may be divided anew, since others come and go on this machine; none goes back to the kubelet's."""
    assert eventually(lambda: protected(site))
    with lowest(ours(site)) as seen:
        roll(site)
        site.kubectl("-n", "shop", "create", "-f", "-", given=pod("late", **{"j10ce.io/qos-profile": "be"}))
        assert eventually(lambda: [read(group, "cpu.idle") for group in site.groups("shop", "name=late")] == [1])
    site.kubectl("-n", "shop", "delete", "pod", "late", "--grace-period=0", "--force")
    assert [file for file, value in seen.items() if value <= int(site.originals[file])] == []


def pod(name: str, **labels: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "busybox:1.37", "command": ["sleep", "2147483647"]}]}
    metadata = {"name": name, "labels": {"name": name, **labels}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


# ------------------------------------------------------------------ remove


ORDERS = {
    "as the command has it": (),
    "rights and kinds first": (
        ("clusterrolebinding,clusterrole", "-l", "app.kubernetes.io/name=j10ce-qos"),
        ("-n", SYSTEM, "rolebinding,role,serviceaccount", "-l", "app.kubernetes.io/name=j10ce-qos"),
        ("-f", str(CLONE / "config/crd/bases")),
    ),
}


@pytest.mark.parametrize("order", ORDERS)
def test_removed_everything_is_as_it_was(site: Site, order: str) -> None:
    assert eventually(lambda: protected(site))
    assert site.values() != site.originals
    for words in ORDERS[order]:
        site.remove(*words)
    site.remove("-k", str(site.deploy), *(["--ignore-not-found"] if ORDERS[order] else []))
    site.cluster.wait("everything to be gone", lambda: not left_over(site.cluster))
    assert site.values() == site.originals
