"""Pods that choose the scheduler get nodes from it, and hear why not where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.scheduler.scheduling import PODS, Replica, node, node_of, permit, pod, replica
from tests.lab.kube.cluster import Cluster, running
from tests.lab.kube.kubernetes import Version

pytestmark = pytest.mark.kube


@pytest.fixture(scope="module")
def cluster(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("kubernetes"), version) as started:
        permit(started)
        for name in ("a", "b"):
            started.call("POST", "/api/v1/nodes", node(name))
        yield started


@pytest.fixture(scope="module")
def scheduler(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    with replica(cluster, tmp_path_factory.mktemp("scheduler")) as started:
        yield started


def test_pods_are_spread_over_nodes_that_have_room(cluster: Cluster, scheduler: Replica) -> None:
    names = [f"web-{n}" for n in range(8)]
    for name in names:
        cluster.call("POST", PODS, pod(name, "500m"))
    cluster.wait("pods to be bound", lambda: all(node_of(cluster, name) for name in names))
    assert sorted(node_of(cluster, name) for name in names) == ["a"] * 4 + ["b"] * 4


def test_a_pod_that_fits_nowhere_hears_it_in_numbers(cluster: Cluster, scheduler: Replica) -> None:
    cluster.call("POST", PODS, pod("large", "64"))

    def said() -> str:
        conditions = cluster.call("GET", f"{PODS}/large")["status"].get("conditions", ())
        return next((c["message"] for c in conditions if c["type"] == "PodScheduled"), "")

    cluster.wait("a condition", said)
    assert said().startswith("0/2 nodes are available: 2 Insufficient cpu.")
    query = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=large,reason=FailedScheduling"
    cluster.wait("an event", lambda: cluster.call("GET", query)["items"])


def test_a_pod_of_another_scheduler_is_left_alone_and_counted(cluster: Cluster, scheduler: Replica) -> None:
    cluster.call("POST", PODS, pod("other", "100m", schedulerName="somebody"))
    cluster.call("POST", PODS, pod("behind"))
    cluster.wait("the one behind it", lambda: node_of(cluster, "behind"))
    assert not node_of(cluster, "other")


def test_the_page_lists_owners_of_pods(cluster: Cluster, scheduler: Replica) -> None:
    cluster.call("POST", PODS, pod("listed"))
    cluster.wait("a row", lambda: "listed" in scheduler.get("/").text)
    assert scheduler.get("/").text.splitlines()[0].split() == [
        "CONTROLLER",
        "QOS/SLO",
        "TTV",
        "RUNNING",
        "WAITING",
        "BINDING",
    ]
    assert scheduler.get("/?format=json").json()


def test_a_scheduler_that_is_asked_to_stop_gives_its_lease_back(
    cluster: Cluster, scheduler: Replica, tmp_path: Path
) -> None:
    with replica(cluster, tmp_path, "s-2") as second:
        cluster.wait("one to lead", lambda: scheduler.leads)
        assert not second.leads
        assert scheduler.close() == 0
        cluster.wait("the other one", lambda: second.leads)
        cluster.call("POST", PODS, pod("after"))
        cluster.wait("a binding by the second", lambda: node_of(cluster, "after"))
    scheduler.start()
    cluster.wait("the first again", lambda: scheduler.leads)
