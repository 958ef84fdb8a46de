"""Leaders that die, and a control plane that goes away in the middle of work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.manager.managing import Work, managed, managing
from tests.lab.kube.cluster import Cluster
from tests.lab.kube.kubernetes import Version

pytestmark = [pytest.mark.one_version, pytest.mark.kube]
BINDING = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/j10ce-controller-manager"


@pytest.fixture
def own(version: Version, tmp_path: Path) -> Iterator[Cluster]:
    """One that may be broken."""
    with managed(tmp_path, version, nodes=2) as started:
        yield started


@pytest.fixture
def shop(own: Cluster) -> Work:
    own.call("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    return Work(own, "shop")


def test_another_manager_goes_on_where_a_killed_leader_stood(own: Cluster, shop: Work, tmp_path: Path) -> None:
    with managing(own, tmp_path, "one") as one, managing(own, tmp_path, "two") as two:
        own.wait("a leader", lambda: one.leads or two.leads)
        leader, heir = (one, two) if one.leads else (two, one)
        shop.policy("db", minimum={"cpu": "2"}, units=3)
        before = shop.wait("db", lambda s: s.get("units", {}).get("placed") == 3)["witness"]
        leader.kill()
        own.wait("another leader", lambda: heir.leads)
        shop.policy("late", minimum={"cpu": "2"}, units=1)
        shop.wait("late", lambda s: s.get("units", {}).get("placed") == 1)
        assert shop.status("db")["witness"] == before


def test_a_manager_that_is_stopped_hands_over_at_once(own: Cluster, shop: Work, tmp_path: Path) -> None:
    with managing(own, tmp_path, "one") as one, managing(own, tmp_path, "two") as two:
        own.wait("a leader", lambda: one.leads or two.leads)
        leader, heir = (one, two) if one.leads else (two, one)
        leader.process.terminate()
        assert leader.process.wait(30) == 0
        own.wait("another leader", lambda: heir.leads)


def test_work_goes_on_after_the_api_server_was_restarted(own: Cluster, shop: Work, tmp_path: Path) -> None:
    with managing(own, tmp_path) as manager:
        shop.policy("before", minimum={"cpu": "2"}, units=1)
        own.restart("kube-apiserver")
        shop.policy("after", minimum={"cpu": "2"}, units=1)
        for name in ("before", "after"):
            shop.wait(name, lambda s: s.get("units", {}).get("placed") == 1)
        own.wait("readiness", lambda: manager.get("/readyz").status_code == 200)


def test_an_etcd_that_hangs_makes_it_unready_and_costs_nothing_else(own: Cluster, shop: Work, tmp_path: Path) -> None:
    with managing(own, tmp_path) as manager:
        shop.policy("db", minimum={"cpu": "2"}, units=1)
        held = shop.wait("db", lambda s: s.get("units", {}).get("placed") == 1)["witness"]
        own.pause("etcd")
        own.wait("trouble", lambda: manager.get("/readyz").status_code == 503)
        assert manager.get("/healthz").status_code == 200
        own.resume("etcd")
        own.wait("readiness", lambda: manager.get("/readyz").status_code == 200)
        shop.policy("after", minimum={"cpu": "2"}, units=1)
        shop.wait("after", lambda s: s.get("units", {}).get("placed") == 1)
        assert shop.status("db")["witness"] == held


def test_rights_that_are_lost_are_reported_and_work_goes_on_when_they_are_back(
    own: Cluster, shop: Work, tmp_path: Path
) -> None:
    with managing(own, tmp_path) as manager:
        own.wait("leadership", lambda: manager.leads)
        binding = own.call("GET", BINDING)
        own.call("DELETE", BINDING)
        own.wait("trouble", lambda: manager.get("/readyz").status_code == 503)
        own.wait("what is refused", lambda: "the store refuses us a right" in manager.get("/readyz").text)
        assert "right.lose" in manager.log.read_text()
        assert manager.get("/healthz").status_code == 200
        kept = {key: binding[key] for key in ("apiVersion", "kind", "roleRef", "subjects")}
        own.call("POST", BINDING.rpartition("/")[0], kept | {"metadata": {"name": binding["metadata"]["name"]}})
        own.wait("readiness", lambda: manager.get("/readyz").status_code == 200)
        assert "right.regain" in manager.log.read_text()
        shop.policy("after", minimum={"cpu": "2"}, units=1)
        shop.wait("after", lambda s: s.get("units", {}).get("placed") == 1)
