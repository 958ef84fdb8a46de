"""Large requests: what is on its way, and what is made of it, takes little memory however many come at once."""

from __future__ import annotations

import asyncio
import json
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from j10ce.errors import Invalid
from j10ce.manager.access.tokens import make
from j10ce.manager.fairness import large
from j10ce.manager.fairness.rate_limits import Limits
from j10ce.manager.identity import SYSTEM, Act, acting
from j10ce.model.bounds import too_many
from j10ce.model.catalogue import KINDS
from j10ce.model.kinds import Credential, CredentialSpec, Meta
from j10ce.store.memory import MemoryStore
from j10ce.testing.build import WALL
from tests.manager.assembled import BASE, TOKEN, Manager, assemble

MB = 1_000_000


class Sender:
    """A request that sends so many bytes in pieces, and stays open before the last one until it may end."""

    def __init__(self, token: str, size: int, *, claims: bool) -> None:
        self.size, self.read, self.may_end, self.answered = size, 0, asyncio.Event(), asyncio.Event()
        self.code, self._token, self._claims = 0, token, claims

    async def receive(self) -> Message:
        if self.read >= self.size // 2:
            await self.may_end.wait()
        piece = min(50_000, self.size - self.read)
        self.read += piece
        return {"type": "http.request", "body": b"x" * piece, "more_body": self.read < self.size}

    async def send(self, message: Message) -> None:
        self.code = message.get("status", self.code)
        self.answered.set()

    async def ask(self, manager: Manager) -> None:
        headers = [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer " + self._token.encode())]
        headers += [(b"content-type", b"application/json")]
        headers += [(b"content-length", b"%d" % self.size)] if self._claims else []
        scope = {"type": "http", "method": "POST", "path": f"{BASE}/qosprofiles", "query_string": b""}
        await manager.app({**scope, "headers": headers, "client": ("127.0.0.1", 1)}, self.receive, self.send)


def token_of(manager: Manager, name: str) -> str:
    token, hash_ = make(name)
    manager.keyring.take(Credential(metadata=Meta(name=name), spec=CredentialSpec(role="editor", hash=hash_)))
    return token


@pytest.fixture
def manager() -> Manager:
    return assemble(MemoryStore(lambda: WALL), clock=lambda: 0.0)


async def turns() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize("claims", [True, False])
async def test_of_eight_large_requests_of_one_caller_two_are_read_at_a_time(manager: Manager, claims: bool) -> None:
    eve = token_of(manager, "eve")
    eight = [Sender(eve, MB, claims=claims) for _ in range(8)]
    async with asyncio.TaskGroup() as group:
        for sender in eight:
            group.create_task(sender.ask(manager))
        await turns()
        assert sum(sender.read >= MB // 2 for sender in eight) == 2
        assert sum(sender.read for sender in eight) < 2 * MB
        for sender in eight:
            sender.may_end.set()
    assert {sender.code for sender in eight} == {400}, "each had its turn: no JSON"


async def test_a_callers_large_requests_keep_neither_its_small_ones_nor_others_waiting(manager: Manager) -> None:
    eve, bob = token_of(manager, "eve"), token_of(manager, "bob")
    stuck = [Sender(eve, MB, claims=True) for _ in range(4)]
    through = [Sender(eve, 60_000, claims=True), Sender(bob, MB, claims=True), Sender(TOKEN, MB, claims=True)]
    async with asyncio.TaskGroup() as group:
        for sender in (*stuck, *through):
            group.create_task(sender.ask(manager))
        await turns()
        for sender in through:
            sender.may_end.set()
        await turns()
        assert [sender.code for sender in through] == [400, 400, 400]
        assert [sender.code for sender in stuck] == [0] * 4
        for sender in stuck:
            sender.may_end.set()


async def test_large_requests_are_few_whoever_sends_them_and_the_owner_is_not_counted(manager: Manager) -> None:
    crowd = [Sender(token_of(manager, f"p{n}"), MB, claims=True) for n in range(20)]
    owner = Sender(TOKEN, MB, claims=True)
    async with asyncio.TaskGroup() as group:
        for sender in (*crowd, owner):
            group.create_task(sender.ask(manager))
        await turns()
        assert sum(sender.read > 0 for sender in crowd) == 8
        owner.may_end.set()
        await turns()
        assert owner.code == 400
        for sender in crowd:
            sender.may_end.set()
    assert {sender.code for sender in crowd} == {400}


async def test_whoever_waits_in_vain_is_asked_to_come_again(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "PATIENCE_S", 0.01)
    eve = token_of(manager, "eve")
    first, second, third = senders = [Sender(eve, MB, claims=True) for _ in range(3)]
    async with asyncio.TaskGroup() as group:
        for sender in senders:
            group.create_task(sender.ask(manager))
        await third.answered.wait()
        assert (third.code, third.read) == (429, 0)
        first.may_end.set()
        second.may_end.set()


async def test_a_refusal_that_waits_keeps_nothing_of_what_was_sent(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure keeps the frames that it went through, and they the body."""
    kept: list[object] = []

    async def hold_back(_: Limits) -> None:
        kept.append(sys.exc_info()[1])

    monkeypatch.setattr(Limits, "hold_back", hold_back)
    eve = token_of(manager, "eve")
    while not kept:
        sender = Sender(eve, MB, claims=True)
        sender.may_end.set()
        await sender.ask(manager)
    assert (sender.code, kept) == (429, [None])


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """More bytes than before, at any moment of it."""
    tracemalloc.start()
    try:
        yield
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < size


OWNED = b'{"kind":"QoSProfile","metadata":{"name":"p","managedFields":[{"fieldsV1":{%s}}]}}'


@pytest.mark.parametrize(
    ("text", "most"),
    [
        pytest.param(b'{"a":[' + b"{}," * 330_000 + b"0]}", 4 * MB, id="empty objects"),
        pytest.param(b'{"a":[' + b"[[]]," * 200_000 + b"0]}", 4 * MB, id="lists of a list"),
        pytest.param(b'{"a":["' + b'y","' * 200_000 + b'"]}', 4 * MB, id="short texts"),
        pytest.param(b"{%s}" % b",".join(b'"k%d":{}' % n for n in range(79_000)), 4 * MB, id="unknown fields"),
        pytest.param(OWNED % b",".join(b'"f:%d":{}' % n for n in range(79_000)), 4 * MB, id="fields that someone owns"),
    ],
)
async def test_what_a_megabyte_of_values_is_made_into_is_bounded(manager: Manager, text: bytes, most: int) -> None:
    with at_most(most), acting(Act(SYSTEM)), pytest.raises(Invalid):
        await manager.verbs.create(KINDS["QoSProfile"], "", text)


VALUES = st.recursive(
    st.sampled_from([1, None, "", ",", '","', '\\"', ",\\", "é,"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", ",", '"', "\\"]), inner),
)


@given(VALUES)
def test_values_are_counted_by_what_stands_between_them(value: Any) -> None:
    """A holder of one empty text passes for an empty one; nothing counts as more than it is."""
    text = json.dumps(value).encode()
    assert not too_many(text, counted(value, first=1))
    assert too_many(text, counted(value, first=0) - 1)


def counted(value: Any, first: int) -> int:
    """All values that something holds, the first of each as so many."""
    held = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return (len(held) - 1 + first if held else 0) + sum(counted(v, first) for v in held)


def test_many_strings_are_counted_in_steps() -> None:
    text = b'[",,",' * 40_000 + b"0"
    assert not too_many(text, 80_000)
    assert too_many(text, 79_999)
