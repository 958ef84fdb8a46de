"""Objects end with their owners: who may not delete one gives it none, either."""

from __future__ import annotations

from typing import Any

import httpx2 as httpx
import pytest

from j10ce.manager.keepers import orphans
from tests.manager.assembled import BASE, Manager
from tests.manager.conftest import api as api
from tests.manager.conftest import manager as manager
from tests.security.plane import hold
from tests.security.shares.test_shares import enrolled

MERGE = {"content-type": "application/merge-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}
JSON = {"content-type": "application/json-patch+json"}
GONE = [{"apiVersion": "j10ce.io/v1alpha1", "kind": "QoSProfile", "name": "nope", "uid": "nope"}]
N1: dict[str, Any] = {"apiVersion": "j10ce.io/v1alpha1", "kind": "NodeQoS", "metadata": {"name": "n1"}}
OWNED = {**N1, "metadata": {"name": "n1", "ownerReferences": GONE}}
WAYS: list[tuple[str, str, Any, dict[str, str]]] = [
    ("PATCH", "", OWNED, MERGE),
    ("PATCH", "", [{"op": "add", "path": "/metadata/ownerReferences", "value": GONE}], JSON),
    ("PATCH", "?fieldManager=eve&force=true", OWNED, APPLY),
    ("PUT", "", OWNED, {}),
]


@pytest.mark.parametrize(("method", "query", "body", "headers"), WAYS)
async def test_an_editor_cannot_have_a_node_deleted_by_naming_an_owner_that_is_gone(
    manager: Manager, api: httpx.AsyncClient, method: str, query: str, body: Any, headers: dict[str, str]
) -> None:
    assert (await api.post(f"{BASE}/nodeqoses", json=N1)).status_code == 201
    async with await enrolled(manager, "eve", "editor") as eve:
        answer = await eve.request(method, f"{BASE}/nodeqoses/n1{query}", json=body, headers=headers)
        assert answer.status_code == 403, answer.text
        assert "may not change metadata.ownerReferences of NodeQoS n1" in answer.json()["message"]
        assert "admin may delete it" in answer.json()["message"]
        cordoned = await eve.patch(f"{BASE}/nodeqoses/n1", json={"spec": {"unschedulable": True}}, headers=MERGE)
        assert cordoned.status_code == 200
    doubted = await orphans.look(manager.store, manager.view, set())
    await orphans.look(manager.store, manager.view, doubted)
    assert (await api.get(f"{BASE}/nodeqoses/n1")).status_code == 200


async def test_an_owner_is_not_taken_away_by_who_may_not_delete(manager: Manager, api: httpx.AsyncClient) -> None:
    assert (await api.post(f"{BASE}/nodeqoses", json=OWNED)).status_code == 201
    async with await enrolled(manager, "eve", "editor") as eve:
        answer = await eve.patch(f"{BASE}/nodeqoses/n1", json={"metadata": {"ownerReferences": None}}, headers=MERGE)
        assert answer.status_code == 403
        kept = await eve.patch(f"{BASE}/nodeqoses/n1", json={"spec": {"unschedulable": True}}, headers=MERGE)
        assert kept.status_code == 200


async def test_who_may_delete_may_name_owners(manager: Manager, api: httpx.AsyncClient) -> None:
    owned = hold("h1")
    owned["metadata"]["ownerReferences"] = GONE  # type: ignore[index]
    async with await enrolled(manager, "eve", "editor") as eve:
        made = await eve.post(f"{BASE}/namespaces/default/holds", json=owned)
        assert made.status_code == 201, made.text
