"""Replaced, an agent leaves its settings; removed for good, it gives everything back, whatever goes first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agent.process import eventually
from tests.kube.agent.installed import DAEMONSET, SYSTEM, Installed, PodAgent
from tests.kube.agent.test_pods import read, settings
from tests.kube.manifests import DEFINITIONS, definitions

RIGHTS = ("ClusterRoleBinding", "ClusterRole", "RoleBinding", "Role")
ORDERS = {
    "the DaemonSet first": ("DaemonSet", *RIGHTS, "ServiceAccount", "CRDs"),
    "rights first": (*RIGHTS, "DaemonSet", "ServiceAccount", "CRDs"),
    "the account first": ("ServiceAccount", "DaemonSet", *RIGHTS, "CRDs"),
    "kinds first": ("CRDs", *RIGHTS, "ServiceAccount", "DaemonSet"),
}


@pytest.fixture(autouse=True)
def whole_again(lab: Installed) -> Iterator[None]:
    yield
    lab.install()


def protected(lab: Installed, agent: PodAgent) -> tuple[Path, dict[str, str]]:
    """The cgroup of a pod with a floor, and all that it had before."""
    group = lab.node.cgroup(lab.reserved())
    before = settings(group)
    agent.begin()
    assert eventually(lambda: read(group) > 102)
    return group, before


def remove(lab: Installed, what: str) -> None:
    if what != "CRDs":
        return lab.remove(what)
    for definition in definitions():
        lab.cluster.call("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")
    lab.cluster.wait("our kinds to be gone", lambda: not lab.cluster.call("GET", DEFINITIONS)["items"])
    return None


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
def test_uninstalled_in_any_order_everything_is_as_it_was(
    lab: Installed, agent: PodAgent, order: tuple[str, ...]
) -> None:
    group, before = protected(lab, agent)
    for what in order:
        remove(lab, what)
    assert agent.stop() == 0
    assert settings(group) == before


@pytest.mark.one_version
def test_values_go_back_as_soon_as_the_daemonset_goes(lab: Installed, agent: PodAgent) -> None:
    group, before = protected(lab, agent)
    lab.remove("DaemonSet")
    assert eventually(lambda: settings(group) == before)
    assert agent.client.get("/v1/status")["armed"] is False
    lab.install()
    assert eventually(lambda: read(group) > 102)


@pytest.mark.one_version
def test_what_was_missed_is_asked_for_at_the_end(lab: Installed, agent: PodAgent) -> None:
    group, before = protected(lab, agent)
    for what in RIGHTS:
        lab.remove(what)
    lab.cluster.restart("kube-apiserver")  # no watch that was begun with rights goes on
    lab.remove("DaemonSet")
    assert agent.stop() == 0
    assert settings(group) == before


@pytest.mark.one_version
def test_settings_stay_when_nobody_can_say_why_it_ends(lab: Installed, agent: PodAgent) -> None:
    group, _ = protected(lab, agent)
    lab.cluster.kill("kube-apiserver")
    try:
        assert agent.stop() == 0
        assert read(group) > 102
    finally:
        lab.cluster.restart("kube-apiserver")


@pytest.mark.one_version
def test_a_node_that_the_daemonset_excludes_is_given_back(lab: Installed, agent: PodAgent) -> None:
    group, before = protected(lab, agent)
    selector = [{"op": "replace", "path": "/spec/template/spec/nodeSelector", "value": {"pool": "other"}}]
    lab.cluster.call("PATCH", f"{DAEMONSET}/j10ce-qos-agent", selector, content="application/json-patch+json")
    assert agent.stop() == 0
    assert settings(group) == before
    lab.remove("DaemonSet")  # an apply would keep what a patch added


@pytest.mark.one_version
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_replaced_agent_drops_no_floor_for_a_moment(lab: Installed, agent: PodAgent, how: signal.Signals) -> None:
    group, _ = protected(lab, agent)
    with lowest(group) as seen:
        agent.stop(how)
        agent.begin()
        assert agent.knows("db")
        lab.policy("other", selector={"matchLabels": {"no": "body"}}, minimum={"cpu": "1m"})  # obeyed by the new one
        assert eventually(lambda: len(agent.client.get("/v1/status")["document"]) > 0)
    assert min(seen) > 102


@contextmanager
def lowest(group: Path) -> Iterator[list[int]]:
    seen, end = [read(group)], threading.Event()

    def look() -> None:
        while not end.is_set():
            seen.append(read(group))
            end.wait(0.002)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        end.set()
        watcher.join()


def test_a_kind_that_is_not_served_changes_nothing(lab: Installed, agent: PodAgent) -> None:
    group, _ = protected(lab, agent)
    agent.stop()
    remove(lab, "CRDs")
    agent.begin()
    assert agent.knows("db")
    assert eventually(lambda: "not served" in agent.client.get("/v1/status")["server"])
    assert read(group) > 102
    assert agent.workloads()["db"]["status"]["floor"]["cpu"] == "500m"


def test_the_account_can_do_what_it_needs_and_no_more(lab: Installed) -> None:
    account = f"system:serviceaccount:{SYSTEM}:j10ce-agent"
    refused = [
        ("delete", "", "pods"), ("create", "", "pods"), ("get", "", "secrets"), ("patch", "", "nodes"),
        ("update", "j10ce.io", "qosprofiles"), ("update", "j10ce.io", "minimalreservationpolicies"),
        ("delete", "apps", "daemonsets"),
    ]  # fmt: skip
    for verb, group, resource in refused:
        asked = {"verb": verb, "group": group, "resource": resource}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": account, "resourceAttributes": asked},
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        assert lab.cluster.call("POST", path, review)["status"]["allowed"] is False, asked
