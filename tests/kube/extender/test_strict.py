"""The overlay strict, over HTTPS with certificates that the manager made: no manager, no placement."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kube.conftest import CLONE, install_crds
from tests.kube.extender.test_scheduling import CAPACITY, Shop
from tests.kube.plane import NAMESPACE, managing
from tests.lab.cluster import Cluster, running
from tests.lab.kubernetes import Version

SECRET = "/api/v1/namespaces/j10ce-system/secrets"
SCHEDULER = "j10ce-scheduler"


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
            cluster.start_scheduler(strict(made, folder / "ca.crt"))
            yield made


def strict(shop: Shop, ca: Path, **more: str) -> dict[str, Any]:
    """The file of the overlay; addresses of this machine, and the CA where it has one."""
    ca.write_bytes(b64decode(_certificates(shop.cluster)["bundle.crt"]))
    config: dict[str, Any] = yaml.safe_load((CLONE / "deploy/overlays/strict/config.yaml").read_text())
    (extender,) = config["extenders"]
    assert not extender.get("ignorable")
    extender |= {"urlPrefix": f"https://127.0.0.1:{shop.plane.port}/extender", **more}
    extender["tlsConfig"]["caFile"] = str(ca)
    if shop.cluster.version == "old":  # as v1beta1.yaml has it
        extender["filterVerb"] = "filter-v1beta1"
    return {key: value for key, value in config.items() if key not in ("apiVersion", "kind")}


def _certificates(cluster: Cluster) -> dict[str, str]:
    path, found = f"{SECRET}/j10ce-certificates", dict[str, str]()
    cluster.wait("certificates", lambda: found.update(cluster.call("GET", path).get("data") or {}) or found)
    return found


@pytest.mark.timeout(240)
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


def test_bindings_may_go_through_the_extender(shop: Shop, tmp_path: Path) -> None:
    shop.cluster.kill("kube-scheduler")
    shop.cluster.start_scheduler(strict(shop, tmp_path / "ca.crt", bindVerb="bind"))
    shop.pod("bound", "500m")
    shop.placed("bound")
    counted = 'j10ce_manager_door_requests_total{code="200",door="extender",verb="bind"}'
    assert f"{counted} 1.0" in shop.plane.get("/metrics")
