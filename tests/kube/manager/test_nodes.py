"""What the leader writes about nodes and for people: events, owners, extended resources."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kube.manager.managing import GROUP, Work, agent, plain_node
from tests.kubectl.kubectl import Kubectl
from tests.lab.kube.cluster import Cluster

pytestmark = [pytest.mark.kube, pytest.mark.usefixtures("manager")]
MEASURED = {
    "usage": {"cpu": {"p95": "4"}},
    "demand": {"cpu": {"system": "1", "usage": "2", "request": "3", "larger": "3"}},
}


def events(cluster: Cluster, namespace: str, reason: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = cluster.call("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    return [e for e in listed if e["reason"] == reason]


def test_describe_shows_a_refusal_and_that_it_ended(cluster: Cluster, work: Work, kubectl: Kubectl) -> None:
    work.policy("db", minimum={"cpu": "33"}, units=1)
    cluster.wait("an event", lambda: events(cluster, work.namespace, "Refused"))
    output = kubectl("describe", "minimalreservationpolicy", "db", "-n", work.namespace)
    assert "Refused" in output
    assert "cpu 33 wanted, 32 free of 32" in output
    assert "j10ce-controller-manager" in output


def test_a_refusal_that_stays_is_reported_once_for_each_generation(cluster: Cluster, work: Work) -> None:
    work.policy("db", minimum={"cpu": "33"}, units=1)
    cluster.wait("an event", lambda: events(cluster, work.namespace, "Refused"))
    work.edit("db", units=2)
    cluster.wait("another", lambda: len(events(cluster, work.namespace, "Refused")) == 2)
    assert {e.get("count", 1) for e in events(cluster, work.namespace, "Refused")} == {1}


def test_a_node_that_is_lost_is_an_event_of_the_policy_that_had_units_there(cluster: Cluster, work: Work) -> None:
    with plain_node(cluster, "weak", pool="weak") as ready:
        work.policy("db", minimum={"cpu": "2"}, units=1, nodeSelector={"matchLabels": {"pool": "weak"}})
        work.wait("db", lambda s: s.get("units", {}).get("placed") == 1)
        ready(False)
        cluster.wait("an event", lambda: events(cluster, work.namespace, "NodeLost"))
        (lost,) = events(cluster, work.namespace, "NodeLost")
    assert lost["type"] == "Warning"
    assert lost["involvedObject"]["name"] == "db"
    assert "weak" in lost["message"]


def test_a_nodeqos_has_the_labels_of_its_node_and_ends_with_it(cluster: Cluster) -> None:
    path = f"{GROUP}/nodeqoses/zoned"
    with plain_node(cluster, "zoned", zone="a"), agent(cluster, "zoned"):
        cluster.wait("labels", lambda: cluster.call("GET", path)["metadata"].get("labels", {}).get("zone") == "a")
        (owner,) = cluster.call("GET", path)["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("Node", "zoned")
        by_hand = {"metadata": {"labels": {"zone": "b", "pool": "batch"}}, "spec": {"labels": {"pool": "batch"}}}
        cluster.call("PATCH", path, by_hand, content="application/merge-patch+json")
        cluster.wait("labels again", lambda: cluster.call("GET", path)["metadata"]["labels"] == {"zone": "a"})
        assert cluster.call("GET", path)["spec"]["labels"] == {"pool": "batch"}, "this is where labels of its own go"


def test_what_may_be_lent_is_advertised_as_extended_resources(cluster: Cluster) -> None:
    path = "/api/v1/nodes/fake-0003"

    def lent() -> dict[str, str]:
        status = cluster.call("GET", path)["status"]
        assert {k: v for k, v in status["capacity"].items() if k.startswith("j10ce.io/")} == {
            k: v for k, v in status["allocatable"].items() if k.startswith("j10ce.io/")
        }
        return {k: v for k, v in status["allocatable"].items() if k.startswith("j10ce.io/")}

    with agent(cluster, "fake-0003", **MEASURED):
        cluster.wait("batch-cpu", lambda: "j10ce.io/batch-cpu" in lent())
        obj = cluster.call("GET", f"{GROUP}/nodeqoses/fake-0003")["status"]["overcommit"]["batch-cpu"]
        cpus = float(obj.removesuffix("m")) / 1000 if obj.endswith("m") else float(obj)
        assert _whole(lent()["j10ce.io/batch-cpu"]) == round(cpus * 1000)
    cluster.wait("its end", lambda: not lent())


def _whole(spelled: str) -> int:
    """An API server may shorten it: 16k."""
    return int(spelled.removesuffix("k")) * 1000 if spelled.endswith("k") else int(spelled)
