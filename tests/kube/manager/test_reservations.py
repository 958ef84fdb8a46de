"""Policies on CRDs: what the fleet of Kubernetes nodes admits, refuses with numbers, and loses."""

from __future__ import annotations

import pytest

from tests.kube.manager.managing import Manager, Work, agent, plain_node
from tests.lab.kube.cluster import Cluster

pytestmark = [pytest.mark.one_version, pytest.mark.kube, pytest.mark.usefixtures("manager")]
DB = {"matchLabels": {"app": "db"}}


def on(node: str) -> dict[str, dict[str, str]]:
    return {"matchLabels": {"kubernetes.io/hostname": node}}


def test_units_are_held_on_nodes_and_the_policy_is_active_once_an_agent_obeys_it(cluster: Cluster, work: Work) -> None:
    work.policy("db", selector=DB, minimum={"cpu": "2", "memory": "4Gi"}, units=3)
    held = work.wait("db", lambda s: s.get("units", {}).get("placed") == 3)
    assert sum(w["units"] for w in held["witness"]) == 3
    assert held["observedGeneration"] == held["admittedGeneration"] == 1
    assert held["phase"] == "Pending", "no agent has said that it obeys"
    source = f"MinimalReservationPolicy/{work.namespace}/db"
    with agent(cluster, "fake-0000", reservations=[{"source": source, "generation": 1}]):
        work.wait("db", lambda s: s["phase"] == "Active")


def test_a_refusal_says_what_is_missing_where(work: Work) -> None:
    work.policy("huge", selector=DB, minimum={"cpu": "33"}, units=1)
    work.wait("huge", lambda s: s.get("conditions"))
    admitted = work.condition("huge", "Admitted")
    assert (admitted["status"], admitted["reason"]) == ("False", "NoRoom")
    assert "cpu 33 wanted, 32 free of 32" in admitted["message"]
    assert work.status("huge")["phase"] == "Pending"


def test_pods_that_nobody_reserved_for_take_room_and_are_named(work: Work) -> None:
    work.pod("hog", "fake-0001", cpu="30")
    work.policy("db", selector=DB, minimum={"cpu": "4"}, units=1, nodeSelector=on("fake-0001"))
    work.wait("db", lambda s: s.get("conditions"))
    condition_now = work.condition("db", "Admitted")["message"]
    assert "cpu 4 wanted, 2 free of 32" in condition_now
    assert f"workloads of {work.namespace} cpu 30" in condition_now
    work.end_pod("hog")
    work.wait("db", lambda s: s.get("units", {}).get("placed") == 1)


def test_a_matching_pod_uses_a_unit_and_leaves_it_behind(work: Work) -> None:
    work.policy("db", selector=DB, minimum={"cpu": "2"}, units=1, nodeSelector=on("fake-0002"))
    work.wait("db", lambda s: s.get("units", {}).get("placed") == 1)
    work.pod("db-0", "fake-0002", cpu="500m", app="db")
    work.wait("db", lambda s: s["units"].get("used") == 1)
    work.pod("other", "fake-0002", cpu="500m", app="web")
    work.end_pod("db-0")
    freed = work.wait("db", lambda s: not s["units"].get("used"))
    assert freed["units"]["placed"] == 1


def test_a_unit_goes_where_it_is_used_and_the_rest_of_it_stays_reserved(work: Work) -> None:
    """A pod that asks for less than its unit: nobody else is promised the difference."""
    work.policy("db", selector=DB, minimum={"cpu": "20"}, units=1, nodeSelector=on("fake-0003"))
    work.wait("db", lambda s: s.get("units", {}).get("placed") == 1)
    work.pod("db-0", "fake-0003", cpu="1", app="db")
    work.wait("db", lambda s: s["units"].get("used") == 1)
    work.policy("more", selector=DB, minimum={"cpu": "13"}, units=1, nodeSelector=on("fake-0003"))
    work.wait("more", lambda s: s.get("conditions"))
    assert "12 free of 32" in work.condition("more", "Admitted")["message"]


def test_units_of_a_lost_node_have_no_place_and_come_back_with_it(cluster: Cluster, work: Work) -> None:
    with plain_node(cluster, "lonely", pool="lonely") as ready:
        work.policy("db", minimum={"cpu": "2"}, units=2, nodeSelector={"matchLabels": {"pool": "lonely"}})
        work.wait("db", lambda s: s.get("units", {}).get("placed") == 2)
        ready(False)
        work.wait("db", lambda s: not s["units"].get("placed"))
        degraded = work.condition("db", "Degraded")
        assert (degraded["status"], degraded["reason"]) == ("True", "NodeLost")
        assert "lonely" in degraded["message"]
        ready(True)
        work.wait("db", lambda s: s["units"].get("placed") == 2)


def test_a_cordoned_node_takes_no_units(cluster: Cluster, work: Work) -> None:
    with plain_node(cluster, "shut", pool="shut"):
        patch = {"spec": {"unschedulable": True}}
        cluster.call("PATCH", "/api/v1/nodes/shut", patch, content="application/merge-patch+json")
        work.policy("db", minimum={"cpu": "2"}, units=1, nodeSelector={"matchLabels": {"pool": "shut"}})
        work.wait("db", lambda s: s.get("conditions"))
        assert "1 node matches, and takes no units" in work.condition("db", "Admitted")["message"]


def test_an_edit_that_does_not_fit_leaves_the_one_before_in_force(work: Work) -> None:
    work.policy("db", selector=DB, minimum={"cpu": "2"}, units=1)
    work.wait("db", lambda s: s.get("admittedGeneration") == 1)
    work.edit("db", units=1000)
    refused = work.wait("db", lambda s: s["observedGeneration"] == 2)
    assert refused["admittedGeneration"] == 1
    assert "generation 1 stays in force" in work.condition("db", "Admitted")["message"]


def test_history_is_kept_and_ends_with_its_policy(cluster: Cluster, work: Work) -> None:
    path = f"/apis/j10ce.io/v1alpha1/namespaces/{work.namespace}/policyrevisions"
    work.policy("db", minimum={"cpu": "1"})
    cluster.wait("a revision", lambda: cluster.call("GET", path)["items"])
    work.edit("db", minimum={"cpu": "2"})
    cluster.wait("two revisions", lambda: len(cluster.call("GET", path)["items"]) == 2)
    policies = path.replace("policyrevisions", "minimalreservationpolicies")
    cluster.call("DELETE", f"{policies}/db")
    cluster.wait("no revisions", lambda: not cluster.call("GET", path)["items"])


def test_built_in_profiles_are_there_and_labelled(cluster: Cluster) -> None:
    listed = cluster.call("GET", "/apis/j10ce.io/v1alpha1/qosprofiles?labelSelector=j10ce.io/built-in")["items"]
    assert {"system", "lse", "lsr", "ls", "be", "guaranteed-pro"} <= {p["metadata"]["name"] for p in listed}


def test_what_only_hosts_have_is_answered_with_where_to_go(manager: Manager) -> None:
    answer = manager.get("/apis/j10ce.io/v1alpha1/credentials")
    assert answer.status_code == 404
    assert "objects are kept by Kubernetes" in answer.json()["message"]
    assert manager.get("/healthz").text == "ok\n"
    assert "j10ce_policies" in manager.get("/metrics").text
