"""A thousand nodes and a flood of pods: stock kube-scheduler, our extender and the manager, all as processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.kube.extender.test_scheduling import CAPACITY, PODS, Shop, scheduler_config
from tests.kube.manifests import install_crds
from tests.kube.plane import NAMESPACE, managing
from tests.lab.kube.cluster import running
from tests.lab.kube.kubernetes import Version

pytestmark = pytest.mark.one_version

NODES, UNITS = 1_000, 900  # one unit each: a second one does not fit
HOLDERS, STRANGERS = 60, 130  # of the latter, one fits on each node that holds nothing
UNIT_CPUS, STRANGER_CPUS = 6, 5  # of eight
AT_A_TIME = 8


@pytest.fixture(scope="module")
def shop(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("thousand")
    with running(folder, version) as cluster:
        install_crds(cluster)
        for name in (NAMESPACE, {"metadata": {"name": "shop"}}):
            cluster.call("POST", "/api/v1/namespaces", name)
        cluster.start_kwok(NODES, CAPACITY)
        with managing(cluster, folder, level="info") as plane:
            cluster.start_scheduler(scheduler_config(version, plane.url))
            yield Shop(cluster, plane)


@pytest.mark.timeout(600)
def test_many_units_hold_node_exactly_while_pods_flood_in(shop: Shop) -> None:
    shop.reserve("web", str(UNIT_CPUS), UNITS)
    held = shop.witness("web")
    assert set(held.values()) == {1}

    flood(shop)
    shop.cluster.wait("every pod to be placed or refused", lambda: settled(shop, held))

    where = bound(shop)
    assert sum(name.startswith("web-") for name in where) == HOLDERS
    obj = shop.cluster.call("GET", "/api/v1/namespaces/shop/events?limit=2000&fieldSelector=reason=FailedScheduling")
    words = [event.get("message") or event.get("note") for event in obj["items"]]
    assert any("reserved by MinimalReservationPolicy/shop/web" in said for said in words), words[:3]
    shop.cluster.wait("units in use", lambda: _units(shop) == {"wanted": UNITS, "placed": UNITS, "used": HOLDERS})


def flood(shop: Shop) -> None:
    """Holders and strangers in turn, several at once."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for n in range(STRANGERS):
            pool.submit(shop.pod, f"batch-{n}", str(STRANGER_CPUS))
            if n < HOLDERS:
                pool.submit(shop.pod, f"web-{n}", str(UNIT_CPUS), app="web")


def settled(shop: Shop, held: dict[str, int]) -> bool:
    """Whether all is done. At every look, nothing is where it must not be, and no unit has moved."""
    where, pods = bound(shop), shop.cluster.call("GET", PODS)["items"]
    assert {node for name, node in where.items() if name.startswith("batch-")}.isdisjoint(held)
    assert {node for name, node in where.items() if name.startswith("web-")} <= held.keys()
    assert max(Counter(where.values()).values(), default=0) <= 1, "a node has two pods that do not fit together"
    assert shop.witness("web") == held
    return len(pods) == HOLDERS + STRANGERS and all(map(_decided, pods))


def bound(shop: Shop) -> dict[str, str]:
    pods = shop.cluster.call("GET", PODS)["items"]
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}


def _decided(pod: dict[str, Any]) -> bool:
    """Strangers may be refused; holders have a place each."""
    refused = any(c["type"] == "PodScheduled" and c["status"] == "False" for c in pod["status"].get("conditions", ()))
    return bool(pod["spec"].get("nodeName")) or (refused and pod["metadata"]["name"].startswith("batch-"))


def _units(shop: Shop) -> dict[str, int]:
    path = "/apis/j10ce.io/v1alpha1/namespaces/shop/minimalreservationpolicies/web"
    obj: dict[str, int] = shop.cluster.call("GET", path)["status"]["units"]
    return {name: n for name, n in obj.items() if n}
