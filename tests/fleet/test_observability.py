"""What a manager tells about itself and the fleet: metrics, readiness, logs; and what it does while etcd is away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import structlog

from j10ce.errors import Conflict, Denied, NotFound, StoreError, Unavailable
from j10ce.manager.documents import fleet_metrics
from j10ce.manager.telemetry.health import Health
from j10ce.manager.telemetry.metrics import Metrics
from j10ce.manager.telemetry.observed_store import ObservedStore
from j10ce.manager.telemetry.trace import Silent
from j10ce.model.kinds import Meta, NodeQoS, NodeQoSStatus, Object
from j10ce.model.quantity import Quantity
from j10ce.store.elector import Alone
from j10ce.store.memory import MemoryStore
from j10ce.store.store import ABSENT
from j10ce.testing import build
from tests.etcd.cluster import Cluster, running
from tests.fleet.failover import TOKEN, Control
from tests.fleet.managers import BASE, eventually, policies, reservation
from tests.manager.process import end, start


class Broken(MemoryStore):
    """Answers until a test forbids it."""

    failure: StoreError | Denied | None = None

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        if self.failure:
            raise self.failure
        return await super().get(kind, namespace, name)


def metrics(text: str) -> dict[str, float]:
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


async def test_the_store_is_in_trouble_from_a_failed_read_to_one_that_is_answered() -> None:
    store = Broken(lambda: build.WALL)
    seen = ObservedStore(store, registry := Metrics(), Silent())
    store.failure = Unavailable("no quorum")
    with pytest.raises(Unavailable):
        await seen.get("Hold", "a", "b")
    assert seen.trouble == "no quorum"
    store.failure = None
    with pytest.raises(NotFound):
        await seen.get("Hold", "a", "b")
    assert seen.trouble == ""
    counted = metrics(bytes(registry.render().body).decode())
    assert counted['j10ce_manager_store_errors_total{error="Unavailable",operation="get"}'] == 1
    assert counted['j10ce_manager_store_seconds_count{operation="get"}'] == 2


async def test_a_right_that_is_lost_is_reported_until_it_is_back() -> None:
    store = Broken(lambda: build.WALL)
    seen = ObservedStore(store, registry := Metrics(), Silent())
    health = Health(seen, Alone("one"), lambda: True, registry, lambda: {"watch Pod": "not yours"})
    store.failure = Denied("the API server refuses manager: get")
    for _ in range(2):
        with structlog.testing.capture_logs() as logged, pytest.raises(Denied):
            await seen.get("QoSProfile", "", "system")
    assert logged == []  # reported once
    assert seen.trouble == ""  # it answers
    for word in ("get QoSProfile: the API server refuses manager", "watch Pod: not yours"):
        assert word in health.problem
        assert f"refused: {word}" in health.verbose()
    line = 'j10ce_manager_store_refused{kind="QoSProfile",operation="get"}'
    assert metrics(bytes(registry.render().body).decode())[line] == 1
    store.failure = None
    with structlog.testing.capture_logs() as logged, pytest.raises(NotFound):
        await seen.get("QoSProfile", "", "system")
    assert [entry["event"] for entry in logged] == ["right.regain"]
    assert "QoSProfile" not in health.problem
    assert metrics(bytes(registry.render().body).decode())[line] == 0


async def test_an_answer_that_says_no_is_no_failure_of_the_store() -> None:
    seen = ObservedStore(MemoryStore(lambda: build.WALL), registry := Metrics(), Silent())
    policy = build.reservation("a", cpu="1")
    await seen.put(policy, expect=ABSENT)
    with pytest.raises(Conflict):
        await seen.put(policy, expect=ABSENT)
    assert not any("store_errors_total{" in name for name in metrics(bytes(registry.render().body).decode()))


def test_lendable_amounts_add_up_over_nodes() -> None:
    nodes = [
        NodeQoS(metadata=Meta(name=f"n{n}"), status=NodeQoSStatus(overcommit={"batchCpu": Quantity.parse(cpu)}))
        for n, cpu in enumerate(("1500m", "2"))
    ]
    assert fleet_metrics.lendable(nodes) == {"batchCpu": 3.5}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, str]]:
    """(metrics, readiness, log) of one manager that was asked for a few things."""
    folder = tmp_path_factory.mktemp("manager")
    manager = start(folder, "--log-format", "json", "--identity", "cp-7")
    try:
        with manager.client() as api:
            api.post(policies(), json=reservation("db", cpu="1", units=2))
            api.post(f"{BASE}/nodeqoses", json={"kind": "NodeQoS", "metadata": {"name": "n1"}})
            assert eventually(lambda: '{state="wanted"} 2.0' in api.get("/metrics").text)
            counted, ready = api.get("/metrics").text, api.get("/readyz?verbose").text
        manager.process.terminate()
        _, log = manager.process.communicate(timeout=30)
        yield counted, ready, log
    finally:
        end(manager.process)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("j10ce_manager_leader", 1),
        ("j10ce_manager_store_up", 1),
        ("j10ce_manager_watchers", 0),
        ("j10ce_manager_audit_lost", 0),
        ("j10ce_manager_rate_limited_total", 0),
        ('j10ce_policies{phase="Active"}', 0),
        ('j10ce_reservation_units{state="wanted"}', 2),
        ('j10ce_reservation_units{state="lent"}', 0),
        ("j10ce_rollouts_stopped", 0),
        ('j10ce_nodes{state="ready"}', 0),
        ('j10ce_nodes{state="silent"}', 1),
    ],
)
def test_the_fleet_is_reported_in_numbers(shown: tuple[str, str, str], name: str, value: float) -> None:
    assert metrics(shown[0])[name] == value


def test_readiness_tells_the_role_and_the_store(shown: tuple[str, str, str]) -> None:
    assert shown[1] == "ok\nrole: leader\nobjects: read\nstore: answers\n"


def test_logs_are_one_json_object_per_line(shown: tuple[str, str, str]) -> None:
    lines: list[dict[str, Any]] = [json.loads(line) for line in shown[2].splitlines()]
    (started,) = (line for line in lines if line["event"] == "manager.start")
    assert started["identity"] == "cp-7"
    assert all({"timestamp", "level"} <= line.keys() for line in lines)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[tuple[Control, Cluster]]:
    """Managers on one etcd member, so that it can be away."""
    with running(tmp_path / "etcd", 1) as etcd:
        control = Control(tmp_path, etcd, writers=0)
        try:
            control.managers.members[0].launch()
            control.managers.members[0].wait()
            yield control, etcd
        finally:
            control.managers.stop()


def test_without_the_store_it_says_when_to_come_back_and_serves_what_it_knows(alone: tuple[Control, Cluster]) -> None:
    (manager, *_), etcd = alone[0].managers.members, alone[1]
    headers = {"authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=manager.url, headers=headers, timeout=30) as api:
        assert api.get(f"{BASE}/nodedocuments/n1").json()["profiles"]
        etcd.pause(0)
        try:
            refused = api.get(f"{BASE}/qosprofiles/ls")
            assert (refused.status_code, refused.json()["reason"]) == (503, "ServiceUnavailable")
            assert int(refused.headers["retry-after"]) > 0
            assert eventually(lambda: api.get("/readyz").status_code == 503)
            assert api.get("/healthz").status_code == 200
            assert api.get(f"{BASE}/nodedocuments/n1").json()["profiles"]
            assert metrics(api.get("/metrics").text)["j10ce_manager_store_up"] == 0
        finally:
            etcd.resume(0)
        assert eventually(lambda: api.get("/readyz").status_code == 200)
        assert api.get(f"{BASE}/qosprofiles/ls").status_code == 200
