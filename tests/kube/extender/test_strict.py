"""The option strict, over HTTPS with certificates that the manager made: no manager, no placement."""

from __future__ import annotations

import socket
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kube.extender.test_scheduling import CAPACITY, Shop
from tests.kube.manifests import CLONE, built, install_crds, second_scheduler
from tests.kube.plane import NAMESPACE, managing
from tests.lab.kube.cluster import Cluster, running
from tests.lab.kube.kubernetes import Version

SECRET = "/api/v1/namespaces/j10ce-system/secrets"
SCHEDULER = "j10ce-scheduler"
OVERLAYS = {"current": "strict", "old": "kubernetes-1.20-strict"}


@pytest.fixture(scope="module")
def shop(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One node, and the scheduler of the overlay."""
    folder = tmp_path_factory.mktemp("strict")
    with running(folder, version) as cluster:
        install_crds(cluster)
        cluster.call("POST", "/api/v1/namespaces", NAMESPACE)
        cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
        cluster.call("POST", SECRET, {"metadata": {"name": "j10ce-certificates"}})
        cluster.start_kwok(1, CAPACITY)
        with managing(cluster, folder, host="0.0.0.0") as plane:
            made = Shop(cluster, plane, scheduler=SCHEDULER)
            cluster.start_scheduler(strict(made, folder))
            yield made


def strict(shop: Shop, folder: Path) -> dict[str, Any]:
    """What the overlay of this version gives its scheduler to read; addresses of this machine, and certificates where
    it has them. The manager is asked over an address that is not loopback: what is shown counts."""
    data = _certificates(shop.cluster)
    files = {"caFile": "bundle.crt", "certFile": "client.crt", "keyFile": "client.key"}
    _, config = second_scheduler(built(CLONE / "deploy/overlays" / OVERLAYS[shop.cluster.version]))
    (extender,) = config["extenders"]
    assert not extender.get("ignorable")
    extender["urlPrefix"] = f"https://{own_address()}:{shop.plane.port}/extender"
    for key, name in files.items():
        file = folder / name
        file.write_bytes(b64decode(data[name]))
        extender["tlsConfig"][key] = str(file)
    return config


def _certificates(cluster: Cluster) -> dict[str, str]:
    path, message = f"{SECRET}/j10ce-certificates", dict[str, str]()
    cluster.wait("certificates", lambda: message.update(cluster.call("GET", path).get("data") or {}) or message)
    return message


@pytest.mark.timeout(600)
def test_pods_wait_while_no_manager_answers_and_are_bound_when_it_is_back(shop: Shop) -> None:
    shop.reserve("web", "6", 1)
    shop.pod("before", "500m")
    shop.placed("before")
    shop.plane.kill()
    shop.pod("waits", "500m")
    assert "extender" in shop.refused("waits") or "connection refused" in shop.refused("waits")
    shop.plane.start()
    shop.placed("waits")
    shop.pod("greedy", "5")
    assert "reserved by MinimalReservationPolicy/shop/web" in shop.refused("greedy")


def own_address() -> str:
    """An address of this machine that is not loopback; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect(("192.0.2.1", 9))
        address: str = asked.getsockname()[0]
        return address
