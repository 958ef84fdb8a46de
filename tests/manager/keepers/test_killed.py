"""A real manager that is killed: what was admitted is there afterwards, and what was deleted has left nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2 as httpx

from tests.fleet.managers import BASE, eventually, policies, reservation
from tests.manager.process import end, start

PATCH = {"content-type": "application/merge-patch+json"}
EDITS = 12  # more than the history keeps
DB = f"{policies()}/db"


def report(api: httpx.Client, heartbeat: int, cpu: str = "4211m") -> None:
    """By a clock that stands in the year 2000, second by second."""
    node = {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS", "metadata": {"name": "n0"}}
    status = {
        "heartbeat": f"2000-01-01T00:00:{heartbeat:02}Z",
        "armed": True,
        "capacity": {"cpu": cpu, "memory": "17Gi"},
        "document": api.get(f"{BASE}/nodedocuments/n0").json()["hash"],
    }
    api.post(f"{BASE}/nodeqoses", json=node)
    api.put(f"{BASE}/nodeqoses/n0/status", json={**node, "status": {"node": status}}).raise_for_status()


def admitted(api: httpx.Client, generation: int) -> bool:
    status = api.get(DB).json().get("status", {})
    said = [c for c in status.get("conditions", ()) if c["type"] == "Admitted"]
    return bool(said) and said[0]["observedGeneration"] == generation


def revisions(api: httpx.Client) -> list[Any]:
    items: list[Any] = api.get(f"{BASE}/policyrevisions").json()["items"]
    return [r for r in items if r["metadata"]["name"].startswith("db-")]


def test_what_was_admitted_survives_refused_edits_and_a_kill_and_a_deletion_leaves_nothing(tmp_path: Path) -> None:
    manager = start(tmp_path)
    try:
        with manager.client() as api:
            report(api, 1)
            api.post(policies(), json=reservation("db", cpu="1", units=1)).raise_for_status()
            assert eventually(lambda: admitted(api, 1))
            for n in range(EDITS):
                api.patch(DB, json={"spec": {"units": 100 + n}}, headers=PATCH).raise_for_status()
                assert eventually(lambda n=n: admitted(api, n + 2))  # type: ignore[misc]
            before = api.get(DB).json()["status"]
            assert (before["admittedGeneration"], before["witness"]) == (1, [{"node": "n0", "units": 1}])
        end(manager.process)
        manager = start(tmp_path)
        with manager.client() as api:
            report(api, 2)
            api.post(policies(), json=reservation("late", cpu="4", units=1)).raise_for_status()
            assert eventually(lambda: api.get(f"{policies()}/late").json().get("status", {}).get("conditions"))
            after = api.get(DB).json()["status"]
            assert (after["admittedGeneration"], after["witness"]) == (1, before["witness"])
            document = api.get(f"{BASE}/nodedocuments/n0").json()
            assert [p["metadata"]["generation"] for p in document["policies"] if p["metadata"]["name"] == "db"] == [1]
            assert revisions(api)
            api.delete(DB).raise_for_status()
        end(manager.process)
        manager = start(tmp_path)
        with manager.client() as api:
            assert eventually(lambda: not revisions(api))
    finally:
        end(manager.process)
