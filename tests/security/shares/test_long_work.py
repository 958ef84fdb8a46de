"""Long work of one caller is done in steps, between which everybody else has a turn."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections import deque
from typing import Any

import httpx2 as httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from j10ce.manager.asgi.requests import json, json_of
from j10ce.model.stored import Key
from j10ce.store.order import Order
from j10ce.testing.build import reservation
from tests.manager.assembled import BASE, POLICIES, Lines, Manager
from tests.manager.conftest import api as api
from tests.manager.conftest import manager as manager

MANY = 3000
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
LISTS = [
    ("", "*/*"),
    ("?resourceVersion=0", "*/*"),
    ("?fieldSelector=spec.units%3D7", "*/*"),
    ("?labelSelector=app%3Ddb", "*/*"),
    ("", TABLE),
    ("", TABLE.replace("Table", "PartialObjectMetadataList")),
]


@pytest.mark.parametrize(("query", "accept"), LISTS)
async def test_a_get_is_answered_while_a_long_list_is_made(
    manager: Manager, api: httpx.AsyncClient, query: str, accept: str
) -> None:
    for n in range(MANY):
        await manager.store.put(reservation(f"p{n}"))
    done: list[str] = []

    async def ask(name: str, path: str) -> None:
        answer = await api.get(path, headers={"accept": accept})
        assert answer.status_code == 200, answer.text
        done.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(ask("list", POLICIES + query))
        group.create_task(ask("get", f"{BASE}/qosprofiles?limit=1"))
    assert done == ["get", "list"]


async def test_long_lists_of_one_caller_are_made_one_after_the_other(
    manager: Manager, api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty that were made together were in memory before anybody knew how large they are."""
    for n in range(MANY):
        await manager.store.put(reservation(f"p{n}"))
    making = most = 0
    of = manager.verbs.slices.of

    async def counted(*given: Any) -> list[Any]:
        nonlocal making, most
        making += 1
        most = max(most, making)
        try:
            return await of(*given)
        finally:
            making -= 1

    monkeypatch.setattr(manager.verbs.slices, "of", counted)
    async with asyncio.TaskGroup() as group:
        answers = [group.create_task(api.get(POLICIES)) for _ in range(8)]
    assert {answer.result().status_code for answer in answers} == {200}
    assert most == 1


async def test_a_large_answer_leaves_between_others_turns() -> None:
    """Also to a reader that takes everything at once."""
    sent: list[dict[str, Any]] = []
    turns = 0

    async def send(message: Any) -> None:
        sent.append(message)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    parts = deque(bytes([65 + n % 26]) * n for n in range(0, 200_000, 7919))
    whole = b"".join(parts)
    for answer in (json(whole), json_of(parts)):
        sent.clear()
        turns = 0
        async with asyncio.TaskGroup() as group:
            other = group.create_task(others())
            await answer({}, None, send)  # type: ignore[arg-type]
            other.cancel()
        assert turns >= 10
        assert max(len(message.get("body", b"")) for message in sent) <= 1 << 16
        assert b"".join(message.get("body", b"") for message in sent) == whole


@pytest.mark.parametrize("accept", ["*/*", TABLE, TABLE.replace("Table", "PartialObjectMetadataList")])
async def test_lists_that_nobody_reads_keep_a_piece_of_each_and_not_the_whole(manager: Manager, accept: str) -> None:
    """Sixteen megabytes of them were sixteen megabytes of memory, and twice as much at the peak."""
    for n in range(1000):
        made = reservation(f"p{n}")
        noted = replace(made.metadata, annotations={"note": "x" * 1000})
        await manager.store.put(replace(made, metadata=noted))
    async with asyncio.TaskGroup() as group:
        first = Unread(manager, accept)
        held = [group.create_task(first.ask())]
        await first.begun.wait()
        tracemalloc.start()
        try:
            for unread in [Unread(manager, accept) for _ in range(10)]:
                held.append(group.create_task(unread.ask()))
                await unread.begun.wait()
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        for task in held:
            task.cancel()
    assert first.size > 1_000_000
    assert kept < 2 * first.size


class Unread(Lines):
    """A list of which the first piece is sent and never taken."""

    def __init__(self, manager: Manager, accept: str) -> None:
        super().__init__(manager, POLICIES)
        self.scope["headers"].append((b"accept", accept.encode()))  # type: ignore[attr-defined]
        self.begun, self.size = asyncio.Event(), 0

    async def ask(self) -> None:
        await self._app(self.scope, self._receive, self._send)

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.size = next(int(value) for name, value in message["headers"] if name == b"content-length")
            return
        self.begun.set()
        await asyncio.Event().wait()


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.sampled_from("xyz"))), st.integers(0, 5))
def test_keys_stay_in_order_whatever_comes_and_goes(changes: list[tuple[bool, str, str]], asked_at: int) -> None:
    held: dict[Key, int] = {}
    order = Order(held)
    for n, (comes, namespace, name) in enumerate(changes):
        key = Key("Hold", namespace, name)
        if comes:
            held[key] = n
        elif key in held:
            del held[key]
        order.moved(key)
        if n >= asked_at:
            assert order.within(None) == sorted(held)
            assert order.within("b") == sorted(key for key in held if key.namespace == "b")
