"""Whatever happens to schedulers and to the API server, no pod is bound twice and none is lost."""

from __future__ import annotations

import base64
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.scheduler.scheduling import PODS, Replica, node, node_of, permit, pod, replica
from tests.lab.kube.cluster import Cluster, running
from tests.lab.kube.kubernetes import Version

pytestmark = pytest.mark.kube
MANY = 60


@pytest.fixture
def cluster(version: Version, tmp_path: Path) -> Iterator[Cluster]:
    """One of its own: it is broken."""
    with running(tmp_path / "kubernetes", version) as started:
        permit(started)
        for name in ("a", "b", "c"):
            started.call("POST", "/api/v1/nodes", node(name, "8"))
        yield started


@pytest.fixture
def pair(cluster: Cluster, tmp_path: Path) -> Iterator[tuple[Replica, Replica]]:
    """One that leads, and one that follows."""
    with replica(cluster, tmp_path, "s-1") as first:
        cluster.wait("the first to lead", lambda: first.leads)
        with replica(cluster, tmp_path, "s-2") as second:
            yield first, second


def create(cluster: Cluster, *names: str) -> None:
    for name in names:
        cluster.call("POST", PODS, pod(name))


def bound(cluster: Cluster, names: list[str]) -> bool:
    items = cluster.call("GET", PODS)["items"]
    return {p["metadata"]["name"] for p in items if p["spec"].get("nodeName")} >= set(names)


def bindings(*replicas: Replica) -> list[str]:
    """Pods that were bound, by what schedulers have logged."""
    lines = [line for r in replicas for line in r.log.read_text().splitlines() if "event=bind.done" in line]
    return [word.removeprefix("pod=") for line in lines for word in line.split() if word.startswith("pod=")]


def test_a_leader_that_is_killed_amid_bindings_is_replaced_and_no_pod_is_lost(
    cluster: Cluster, pair: tuple[Replica, Replica]
) -> None:
    first, second = pair
    names = [f"web-{n}" for n in range(MANY)]
    create(cluster, *names[: MANY // 2])
    cluster.wait("the first binding", lambda: bindings(first))
    first.kill()
    create(cluster, *names[MANY // 2 :])
    cluster.wait("all pods to be bound", lambda: bound(cluster, names))
    assert second.leads
    twice = bindings(first, second)
    assert len(twice) == len(set(twice))


def test_a_leader_that_stood_still_binds_nothing_more(cluster: Cluster, pair: tuple[Replica, Replica]) -> None:
    first, second = pair
    create(cluster, "before")
    cluster.wait("a binding", lambda: node_of(cluster, "before"))
    first.signal(signal.SIGSTOP)
    names = [f"web-{n}" for n in range(MANY)]
    create(cluster, *names)
    cluster.wait("the second to lead and to bind", lambda: bound(cluster, names))
    first.signal(signal.SIGCONT)
    cluster.wait("the first to see that it follows", lambda: "role: follower" in first.get("/readyz?verbose").text)
    create(cluster, "after")
    cluster.wait("a binding", lambda: node_of(cluster, "after"))
    assert set(bindings(first)) == {"default/before"}
    assert second.leads


def test_both_replicas_show_the_same_rows(cluster: Cluster, pair: tuple[Replica, Replica]) -> None:
    create(cluster, "web-0", "web-1")
    cluster.wait("bindings", lambda: bound(cluster, ["web-0", "web-1"]))

    def rows(of: Replica) -> set[str]:
        return {line.split()[0] for line in of.get("/").text.splitlines()[1:]}

    first, second = pair
    cluster.wait("the same rows", lambda: rows(first) == rows(second) != set())


def test_an_api_server_that_restarts_costs_no_pod_its_node(cluster: Cluster, tmp_path: Path) -> None:
    with replica(cluster, tmp_path) as scheduler:
        cluster.wait("it to lead", lambda: scheduler.leads)
        create(cluster, "before")
        cluster.wait("a binding", lambda: node_of(cluster, "before"))
        cluster.kill("kube-apiserver")
        cluster.restart("kube-apiserver")
        cluster.wait("the API server", cluster.ready)
        names = [f"web-{n}" for n in range(10)]
        create(cluster, *names)
        cluster.wait("bindings", lambda: bound(cluster, names))


def test_a_node_that_goes_and_a_pod_that_is_deleted_amid_decisions_leave_no_trace(
    cluster: Cluster, tmp_path: Path
) -> None:
    with replica(cluster, tmp_path) as scheduler:
        cluster.wait("it to lead", lambda: scheduler.leads)
        names = [f"web-{n}" for n in range(20)]
        create(cluster, *names)
        cluster.call("DELETE", f"{PODS}/web-7")
        cluster.call("DELETE", "/api/v1/nodes/c")
        rest = [name for name in names if name != "web-7"]
        cluster.wait("bindings", lambda: bound(cluster, rest))
        create(cluster, "after")
        cluster.wait("a binding", lambda: node_of(cluster, "after"))
        assert node_of(cluster, "after") in ("a", "b")


def written(cluster: Cluster) -> bytes:
    """What a leader has written down of accounts."""
    held = cluster.call("GET", "/api/v1/namespaces/j10ce-system/configmaps/j10ce-qos-scheduler-history")["binaryData"]
    return b"".join(zlib.decompress(base64.b64decode(packed)) for packed in held.values())


def test_sums_of_clocks_outlive_a_restart_of_all_replicas(cluster: Cluster, tmp_path: Path) -> None:
    with replica(cluster, tmp_path, "s-1") as first:
        create(cluster, "kept")
        cluster.wait("its account to be written down", lambda: b"kept" in written(cluster))
        first.kill()
    cluster.call("DELETE", f"{PODS}/kept?gracePeriodSeconds=0")
    with replica(cluster, tmp_path, "s-2") as second:
        cluster.wait("its owner's account", lambda: "kept" in second.get("/?format=json").text)
