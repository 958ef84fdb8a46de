"""What somebody writes for nodes stays readable for them, and takes no more memory than its writer's share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx2 as httpx
import pytest
from msgspec.structs import replace

from j10ce.agent.ring.holds import HoldRequest, from_request
from j10ce.errors import Invalid
from j10ce.http import client
from j10ce.http.client import ClientConnection
from j10ce.manager.api.document_watch import Parts, document_lines, in_pieces
from j10ce.manager.asgi.requests import LARGE
from j10ce.manager.documents import documents
from j10ce.manager.documents import size as weights
from j10ce.manager.documents.documents import Documents
from j10ce.manager.documents.size import Weights, weight_of
from j10ce.manager.fairness import lines
from j10ce.manager.fairness.rate_limits import PEOPLE
from j10ce.manager.identity import Act, acting
from j10ce.model.stored import Event, key_of
from j10ce.policy.validation.validate import validate
from j10ce.testing.build import hold as made_hold
from j10ce.testing.build import reservation
from tests.manager.assembled import BASE, POLICIES, Manager, policy
from tests.manager.conftest import api as api
from tests.manager.conftest import manager as manager
from tests.security.plane import hold
from tests.security.shares.test_shares import EDITOR, enrolled

HOLDS = f"{BASE}/namespaces/default/holds"
KIB = 1024


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "MOST_SHARED", 20 * KIB)
    monkeypatch.setattr(weights, "MOST_OWN", 10 * KIB)


async def written(client: httpx.AsyncClient, path: str, made: dict[str, Any]) -> tuple[int, str]:
    answer = await client.post(path, json=made)
    await asyncio.sleep(0.005)  # the view hears of it
    return answer.status_code, answer.json().get("message", "")


def long_hold(name: str, **more: object) -> dict[str, Any]:
    made = hold(name, **more)
    made["spec"]["why"] = "x" * 1000  # type: ignore[index]
    return made


async def until_full(eve: httpx.AsyncClient, name: str, **more: object) -> tuple[int, str]:
    """(how many holds were taken, what was said then)"""
    for n in range(100):
        code, said = await written(eve, HOLDS, long_hold(f"{name}{n}", **more))
        if code != 201:
            assert code == 422
            return n, said
    raise AssertionError("all were taken")


@pytest.mark.usefixtures("small")
async def test_an_editor_cannot_make_documents_that_no_agent_reads(manager: Manager, api: httpx.AsyncClient) -> None:
    async with await enrolled(manager, "eve", "editor") as eve:
        taken, said = await until_full(eve, "all")
        assert 10 < taken < 20
        assert "with which all nodes would be sent 2" in said
        assert "at most 20480 can be: delete holds, profiles or policies" in said
        taken, said = await until_full(eve, "one", node="n1")
        assert 5 < taken < 10
        assert "with which n1 alone would be sent 1" in said
        assert (await written(eve, HOLDS, long_hold("another", node="n2")))[0] == 201
        large = policy("large", metadata={"labels": {f"l{n}": "x" * 60 for n in range(30)}})
        assert (await written(eve, POLICIES, large))[0] == 422
        assert (await written(api, HOLDS, long_hold("admins")))[0] == 201, "who puts things right"
        document = await api.get(f"{BASE}/nodedocuments/n1")
        assert len(document.content) < 33 * KIB
        for n in range(4):
            assert (await eve.delete(f"{HOLDS}/all{n}")).status_code == 200
        assert (await written(eve, HOLDS, long_hold("all0")))[0] == 201


@pytest.mark.usefixtures("small")
async def test_what_makes_an_object_smaller_is_always_taken(manager: Manager, api: httpx.AsyncClient) -> None:
    async with await enrolled(manager, "eve", "editor") as eve:
        for n in range(30):
            assert (await written(api, HOLDS, long_hold(f"h{n}")))[0] == 201
        merge = {"content-type": "application/merge-patch+json"}
        for why, code in (("y" * 1001, 422), ("y" * 999, 200)):
            answer = await eve.patch(f"{HOLDS}/h0", json={"spec": {"why": why}}, headers=merge)
            assert answer.status_code == code, answer.text


def test_an_agent_reads_all_that_editors_may_write() -> None:
    assert weights.MOST_SHARED + weights.MOST_OWN < client.MOST_BYTES * 3 // 4 + 1


def test_what_documents_weigh_follows_what_comes_and_goes() -> None:
    kept = Weights()
    frozen = made_hold("workload/default/a", "cpu.max")
    for obj in (frozen, reservation("b"), frozen):
        kept.put(key_of(obj), weight_of(obj))
    for obj in (frozen, reservation("b")):
        kept.put(key_of(obj), None)
    assert not kept._sums
    assert not kept._each


def test_the_reason_of_a_hold_is_no_novel() -> None:
    frozen = made_hold("workload/default/a", "cpu.max")
    findings = validate(replace(frozen, spec=replace(frozen.spec, why="x" * 1025)))
    assert [(f.path, f.problem) for f in findings] == [("spec.why", "1025 characters")]
    assert not validate(replace(frozen, spec=replace(frozen.spec, why="x" * 1024)))
    request = HoldRequest(target="node", knobs=("cpu.max",), for_seconds=60, why="x" * 1025)
    with pytest.raises(Invalid, match="1025 characters"):
        from_request(request, 0.0)


def laid(many: int, size: int) -> Documents:
    """Every node has as many bytes in common with the others, and one hold of its own."""
    made = Documents()
    labels = {f"l{n}": "x" * 60 for n in range(size // 64)}
    large = reservation("large")
    made.take(Event("ADDED", replace(large, metadata=replace(large.metadata, uid="u", labels=labels)), "1"))
    for n in range(many):
        own = made_hold("workload/default/a", "cpu.max", name=f"h{n}")
        made.take(Event("ADDED", replace(own, spec=replace(own.spec, node=f"n{n}")), "1"))
    return made


def test_documents_that_somebody_asks_for_are_not_all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_BYTES", 100 * KIB)
    kept = laid(40, 20 * KIB)
    for n in range(40):
        assert len(kept.of(f"n{n}").data) > 20 * KIB
    assert sum(content.made for content in kept._contents.values()) < 130 * KIB


async def test_watchers_of_a_document_share_its_bytes_and_wait_within_their_share(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of five that read nothing two are on their way; the others take nothing until those have read."""
    made = reservation("large")
    labels = {f"l{n}": "x" * 60 for n in range(1000)}
    await manager.store.put(replace(made, metadata=replace(made.metadata, labels=labels)))
    await asyncio.sleep(0.1)
    size = len(manager.view.documents.of("n1").data)
    assert size > LARGE
    monkeypatch.setattr(lines, "share_of", lambda *_, **__: PEOPLE._replace(answer_bytes=2 * size + 1000))
    watchers = [document_lines(manager.view, f"n{n}", "", manager.verbs.lines) for n in range(5)]
    collected: list[Parts] = []

    async def first(watcher: AsyncGenerator[Parts]) -> None:
        collected.append(await anext(watcher))

    with acting(Act(EDITOR)):
        async with asyncio.TaskGroup() as group:
            for watcher in watchers:
                group.create_task(first(watcher))
            await asyncio.sleep(0.1)
            assert len(collected) == 2
            assert collected[0][1] is collected[1][1]
            for watcher in watchers[:2]:
                await watcher.aclose()
            await asyncio.sleep(0.1)
            assert len(collected) == 4
            await watchers[2].aclose()
    for watcher in watchers:
        await watcher.aclose()


async def test_a_large_document_is_sent_slice_by_slice() -> None:
    async def given() -> AsyncGenerator[Parts]:
        yield b"a", b"x" * (3 * LARGE + 1), b"\n"
        yield b"b", b"\n"

    pieces = [piece async for piece in in_pieces(given())]
    assert b"".join(pieces) == b"a" + b"x" * (3 * LARGE + 1) + b"\nb\n"
    assert max(map(len, pieces)) == LARGE
    assert pieces[-1] == b"b\n"


class Piece(bytes):
    """Counts what is copied to put it behind something."""

    copied = 0

    def __radd__(self, before: bytes) -> bytes:
        Piece.copied += len(before)
        return bytes(before) + bytes(self)


class Fed:
    def __init__(self, text: bytes, size: int) -> None:
        self._text, self._size = text, size

    async def chunks(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self._text), self._size):
            yield Piece(self._text[at : at + self._size])


@pytest.mark.parametrize("size", [1, 3, 1000, 1 << 20])
async def test_a_long_line_is_not_copied_again_for_every_piece(size: int) -> None:
    Piece.copied = 0
    text = b"one\n\ntwo\n" + b"x" * 50_000 + b"\nthree"
    line: ClientConnection = Fed(text, size)  # type: ignore[assignment]
    assert [one async for one in client._lines(line, 60)] == [b"one", b"two", b"x" * 50_000]
    assert Piece.copied <= len(text)
