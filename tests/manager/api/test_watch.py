"""Watches of objects and of node documents, as clients see them."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2 as httpx
import pytest

from j10ce.manager.api import watch
from j10ce.manager.documents import view
from j10ce.model.schema import convert, parse
from j10ce.policy.document.change import NodeChange, changed
from j10ce.policy.document.document import FORMAT, NodeDocument, digest
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL, profile, reservation
from tests.manager.assembled import BASE, POLICIES, Lines, Manager, assemble, policy

MERGE = {"content-type": "application/merge-patch+json"}


def summary(event: dict[str, Any]) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"]["name"]


async def revision(api: httpx.AsyncClient) -> str:
    return str((await api.get(POLICIES)).json()["metadata"]["resourceVersion"])


async def test_a_watch_from_a_revision_tells_what_came_after(manager: Manager, api: httpx.AsyncClient) -> None:
    await api.post(POLICIES, json=policy("before"))
    since = await revision(api)
    await api.post(POLICIES, json=policy("db"))
    await api.put(f"{POLICIES}/db", json=policy("db", spec={"units": 2}))
    async with Lines(manager, POLICIES, f"watch=1&resourceVersion={since}") as lines:
        assert [summary(await lines.next()) for _ in range(2)] == [("ADDED", "db"), ("MODIFIED", "db")]
        await api.delete(f"{POLICIES}/db")
        gone = await lines.next()
        assert summary(gone) == ("DELETED", "db")
        assert gone["object"]["spec"]["units"] == 2
    async with Lines(
        manager, POLICIES, f"watch=1&resourceVersion={gone['object']['metadata']['resourceVersion']}"
    ) as lines:
        await api.post(POLICIES, json=policy("after"))
        assert summary(await lines.next()) == ("ADDED", "after")


@pytest.mark.parametrize("start", ["", "&resourceVersion=0"])
async def test_a_watch_from_nowhere_begins_with_the_present(
    manager: Manager, api: httpx.AsyncClient, start: str
) -> None:
    await api.post(POLICIES, json=policy("there"))
    async with Lines(manager, POLICIES, f"watch=true{start}") as lines:
        assert summary(await lines.next()) == ("ADDED", "there")
        await api.post(POLICIES, json=policy("more"))
        assert summary(await lines.next()) == ("ADDED", "more")


async def test_a_watch_of_one_namespace_sees_no_other(manager: Manager, api: httpx.AsyncClient) -> None:
    async with Lines(manager, POLICIES, "watch=1") as lines:
        await api.post(f"{BASE}/namespaces/other/minimalreservationpolicies", json=policy("there"))
        await api.post(POLICIES, json=policy("here"))
        assert summary(await lines.next()) == ("ADDED", "here")


async def test_a_selector_lets_objects_come_into_view_and_leave_it(manager: Manager, api: httpx.AsyncClient) -> None:
    async def label(app: str) -> None:
        patch = f'{{"metadata": {{"labels": {{"app": "{app}"}}}}}}'
        assert (await api.patch(f"{POLICIES}/db", content=patch, headers=MERGE)).status_code == 200

    async with Lines(manager, POLICIES, "watch=1&labelSelector=app%3Dweb") as lines:
        await api.post(POLICIES, json=policy("db"))
        await label("web")
        await label("other")
        await label("elsewhere")
        await label("web")
        await api.delete(f"{POLICIES}/db")
        seen = [(await lines.next())["type"] for _ in range(4)]
    assert seen == ["ADDED", "DELETED", "ADDED", "DELETED"]


async def test_what_leaves_a_view_is_shown_as_it_was_in_it(manager: Manager, api: httpx.AsyncClient) -> None:
    await api.post(POLICIES, json=policy("db", metadata={"labels": {"app": "web"}}))
    since = await revision(api)
    changed = (await api.patch(f"{POLICIES}/db", json={"metadata": {"labels": {"app": "x"}}}, headers=MERGE)).json()
    async with Lines(manager, POLICIES, f"watch=1&labelSelector=app%3Dweb&resourceVersion={since}") as lines:
        gone = await lines.next()
    assert (gone["type"], gone["object"]["metadata"]["labels"]) == ("DELETED", {"app": "web"})
    assert gone["object"]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]


async def test_one_object_can_be_watched_by_its_own_path(manager: Manager, api: httpx.AsyncClient) -> None:
    for name in ("db", "other"):
        await api.post(POLICIES, json=policy(name))
    since = await revision(api)
    for name in ("other", "db"):
        await api.put(f"{POLICIES}/{name}", json=policy(name, spec={"units": 2}))
    async with Lines(manager, f"{POLICIES}/db", f"watch=1&resourceVersion={since}") as lines:
        assert summary(await lines.next()) == ("MODIFIED", "db")


async def test_a_compacted_revision_is_gone() -> None:
    manager = assemble(MemoryStore(lambda: WALL, kept=10))
    since = (await manager.store.list("MinimalReservationPolicy")).revision
    for n in range(40):
        await manager.store.put(reservation(f"p-{n}"))
    async with manager.client() as api:
        answer = await api.get(POLICIES, params={"watch": "1", "resourceVersion": since})
    assert (answer.status_code, answer.json()["reason"]) == (410, "Expired")


async def test_a_watch_that_falls_behind_ends_with_an_error() -> None:
    manager = assemble(MemoryStore(lambda: WALL, kept=10))
    await manager.store.put(reservation("first"))
    since = (await manager.store.list("MinimalReservationPolicy")).revision
    async with Lines(manager, POLICIES, f"watch=1&resourceVersion={since}") as lines:
        for n in range(40):
            await manager.store.put(reservation(f"p-{n}"))
        event = await lines.next()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert await lines.ended()


async def test_bookmarks_say_where_the_watch_stands(
    manager: Manager, api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "BOOKMARK_S", 0.01)
    since = await revision(api)
    async with Lines(manager, POLICIES, f"watch=1&allowWatchBookmarks=true&resourceVersion={since}") as lines:
        mark = await lines.next()
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["resourceVersion"] == since


async def test_a_watch_ends_when_the_server_stops(manager: Manager) -> None:
    async with Lines(manager, POLICIES, "watch=1") as lines:
        manager.stop.set()
        assert await lines.ended()


async def test_a_watch_ends_when_its_time_is_over(manager: Manager) -> None:
    async with Lines(manager, POLICIES, "watch=1&timeoutSeconds=1") as lines:
        assert await lines.ended()


# -- node documents


async def test_an_unknown_node_gets_what_every_node_gets(manager: Manager, api: httpx.AsyncClient) -> None:
    await manager.store.put(profile("mine"))
    await api.post(POLICIES, json=policy("db"))
    async with Lines(manager, f"{BASE}/nodedocuments/n1", "watch=1") as lines:
        await lines.next()
    document = (await api.get(f"{BASE}/nodedocuments/n1")).json()
    assert document["node"] == "n1"
    assert [p["metadata"]["name"] for p in document["profiles"]] == ["mine"]
    assert [p["metadata"]["name"] for p in document["policies"]] == ["db"]


async def test_a_document_is_sent_again_when_its_hash_moves(manager: Manager, api: httpx.AsyncClient) -> None:
    async with Lines(manager, f"{BASE}/nodedocuments/n1", "watch=1") as lines:
        first = await lines.next()
        await api.post(POLICIES, json=policy("db"))
        second = await lines.next()
    assert (first["type"], second["type"]) == ("ADDED", "MODIFIED")
    assert first["object"]["hash"] != second["object"]["hash"]
    assert [p["metadata"]["name"] for p in second["object"]["policies"]] == ["db"]


async def test_who_asks_for_changes_hears_what_changed(manager: Manager, api: httpx.AsyncClient) -> None:
    for name in ("a", "b"):
        await api.post(POLICIES, json=policy(name))
    async with Lines(manager, f"{BASE}/nodedocuments/n1", f"watch=1&changes=1&format={FORMAT}") as lines:
        known = convert((await lines.next())["object"], NodeDocument)
        while len(known.policies) < 2:
            known = changed(known, convert((await lines.next())["object"], NodeChange)) or known
        await api.delete(f"{POLICIES}/a")
        change = await lines.next()
    assert (change["type"], change["object"]["since"]) == ("CHANGED", known.hash)
    assert "policies" not in change["object"]
    now = parse((await api.get(f"{BASE}/nodedocuments/n1")).content, NodeDocument)
    assert changed(known, convert(change["object"], NodeChange)) == now != known


STRATEGY = {"metadata": {"name": "pool"}, "spec": {"suppress": {"mode": "quota"}}}


@pytest.mark.parametrize(
    ("asked", "format_"), [("", FORMAT - 1), (f"&format={FORMAT}", FORMAT), ("&format=99", FORMAT)]
)
async def test_a_watch_is_told_the_latest_format_that_it_reads(
    manager: Manager, api: httpx.AsyncClient, asked: str, format_: int
) -> None:
    assert (await api.post(f"{BASE}/nodestrategies", json=STRATEGY)).status_code == 201
    await manager.view.ready()
    async with Lines(manager, f"{BASE}/nodedocuments/n1", f"watch=1{asked}") as lines:
        await api.post(POLICIES, json=policy("db"))
        document = (await lines.next())["object"]
        while not document["policies"]:
            document = (await lines.next())["object"]
    assert document["format"] == format_
    assert [s["metadata"]["name"] for s in document.get("strategies", [])] == (["pool"] if format_ == FORMAT else [])
    assert digest(convert(document, NodeDocument)) == document["hash"]


async def test_a_format_that_nobody_speaks_any_more_is_refused(api: httpx.AsyncClient) -> None:
    answer = await api.get(f"{BASE}/nodedocuments/n1?format=1")
    assert (answer.status_code, answer.json()["details"]["causes"][0]["field"]) == (422, "format")


async def test_whether_changes_are_told_is_a_truth_value(api: httpx.AsyncClient) -> None:
    answer = await api.get(f"{BASE}/nodedocuments/n1?changes=perhaps")
    assert (answer.status_code, answer.json()["details"]["causes"][0]["field"]) == (422, "changes")


async def test_reports_do_not_wake_documents(
    manager: Manager, api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.post(f"{BASE}/nodeqoses", json={"metadata": {"name": "n2"}})
    async with Lines(manager, f"{BASE}/nodedocuments/n1", "watch=1") as lines:
        await lines.next()
        epoch, reports = manager.view.wishes.epoch, manager.view.objects.epoch
        fields = {"metadata": {"name": "n2"}, "status": {"node": {"workloads": 3}}}
        await api.put(f"{BASE}/nodeqoses/n2/status", json=fields)
        await asyncio.wait_for(manager.view.objects.moved(reports), 30)
        assert manager.view.wishes.epoch == epoch


async def test_a_known_hash_is_not_sent_again(
    manager: Manager, api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = (await api.get(f"{BASE}/nodedocuments/n1")).json()["hash"]
    monkeypatch.setattr(view, "BOOKMARK_S", 0.01)
    async with Lines(manager, f"{BASE}/nodedocuments/n1", f"watch=1&hash={known}&format={FORMAT}") as lines:
        assert await lines.next() == {"type": "BOOKMARK", "object": {"hash": known}}
