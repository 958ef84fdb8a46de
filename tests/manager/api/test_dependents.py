"""What becomes of the objects that a deleted one owned, by the word of whoever deletes it."""

from __future__ import annotations

from typing import Any

import httpx2 as httpx
import pytest

from j10ce.manager.keepers import orphans
from j10ce.model.stored import key_of
from tests.manager.assembled import POLICIES, Manager, policy


async def owning(api: httpx.AsyncClient) -> None:
    """`db`, and `web`, which it owns."""
    owner: dict[str, Any] = (await api.post(POLICIES, json=policy("db"))).json()
    names = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": "db", "uid": owner["metadata"]["uid"]}
    made = await api.post(POLICIES, json=policy("web", metadata={"ownerReferences": [names]}))
    assert made.status_code == 201, made.text


async def collected(manager: Manager) -> None:
    """As the leader does it, with a view that has heard of everything."""
    doubted: set[str] = set()
    for _ in range(2):
        there = {key_of(obj): obj for obj in (await manager.store.list("MinimalReservationPolicy")).items}
        manager.view.mirrors["MinimalReservationPolicy"].held = there
        doubted = await orphans.look(manager.store, manager.view, doubted)


@pytest.mark.parametrize(
    ("body", "query"),
    [
        pytest.param({"propagationPolicy": "Orphan"}, {}, id="as kubectl --cascade=orphan"),
        pytest.param({"orphanDependents": True}, {}, id="as it was said before"),
        pytest.param(None, {"propagationPolicy": "Orphan"}, id="in the query"),
        pytest.param(None, {"orphanDependents": "true"}, id="in the query, as it was said before"),
    ],
)
async def test_what_is_orphaned_stays(
    manager: Manager, api: httpx.AsyncClient, body: dict[str, Any] | None, query: dict[str, str]
) -> None:
    await owning(api)
    gone = await api.request("DELETE", f"{POLICIES}/db", json=body, params=query)
    assert gone.status_code == 200, gone.text
    await collected(manager)
    left = await api.get(f"{POLICIES}/web")
    assert (left.status_code, left.json()["metadata"].get("ownerReferences")) == (200, None)


@pytest.mark.parametrize("how", ["Background", "Foreground", None])
async def test_what_is_not_orphaned_goes_with_its_owner(
    manager: Manager, api: httpx.AsyncClient, how: str | None
) -> None:
    await owning(api)
    gone = await api.request("DELETE", f"{POLICIES}/db", json={"propagationPolicy": how})
    assert gone.status_code == 200
    await collected(manager)
    assert (await api.get(f"{POLICIES}/web")).status_code == 404


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param({"propagationPolicy": "Foo"}, 422, id="unknown"),
        pytest.param({"propagationPolicy": "Orphan", "orphanDependents": True}, 422, id="said twice"),
        pytest.param({"propagationPolicy": "Orphan", "preconditions": {"resourceVersion": "1"}}, 409, id="moved on"),
        pytest.param({"propagationPolicy": "Orphan", "dryRun": ["All"]}, 200, id="a dry run"),
    ],
)
async def test_a_delete_that_is_not_done_leaves_owner_and_owned(
    api: httpx.AsyncClient, body: dict[str, Any], code: int
) -> None:
    await owning(api)
    answer = await api.request("DELETE", f"{POLICIES}/db", json=body)
    assert answer.status_code == code, answer.text
    assert (await api.request("DELETE", f"{POLICIES}/db", json={}, params={"propagationPolicy": ""})).status_code == 422
    assert (await api.get(f"{POLICIES}/db")).status_code == 200
    assert len((await api.get(f"{POLICIES}/web")).json()["metadata"]["ownerReferences"]) == 1
