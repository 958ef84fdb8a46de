"""The control plane as the agent sees it: obeyed when it speaks, missed when silent, never believed when empty."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from j10ce.agent import http, sync
from j10ce.agent.client import Peer
from j10ce.agent.http import Request, Response
from j10ce.agent.sync import Sync
from j10ce.model import schema
from j10ce.model.kinds import Hold, NodeReport
from j10ce.policy.document import NodeDocument
from j10ce.policy.profiles import builtin
from j10ce.testing import build

GOOD = NodeDocument(node="n", profiles=builtin(), hash="good")


class Node:
    """What the agent would do, written down."""

    def __init__(self) -> None:
        self.obeyed: list[NodeDocument] = []
        self.holds: tuple[Hold, ...] = ()
        self.released: frozenset[str] = frozenset()
        self.moved = asyncio.Event()

    async def obey(self, document: NodeDocument) -> None:
        self.obeyed.append(document)
        self.moved.set()

    def node_report(self) -> NodeReport | None:
        return NodeReport(armed=True)

    def local_holds(self) -> tuple[tuple[Hold, ...], frozenset[str]]:
        return self.holds, self.released


class ControlPlane:
    """Answers what it is told to, and writes down what it is asked."""

    def __init__(self) -> None:
        self.watch: list[Any] = []
        self.asked: list[tuple[str, str, Any]] = []
        self.nodes: set[str] = set()
        self.heard = asyncio.Event()

    async def answer(self, request: Request) -> Response:
        body = msgspec.json.decode(request.body) if request.body else None
        self.asked.append((request.method, request.path, body))
        self.heard.set()
        if request.path.endswith("/nodedocuments/n"):
            return Response(200, b"".join(msgspec.json.encode(event) + b"\n" for event in self.watch))
        if request.path.endswith("/nodeqoses/n/status") and not self.nodes:
            return http.refuse(404, "NotFound", "no such node")
        if request.method == "POST" and request.path.endswith("/nodeqoses"):
            self.nodes.add(body["metadata"]["name"])
        return http.answer({})

    def count(self, method: str, end: str) -> int:
        return sum(m == method and path.endswith(end) for m, path, _ in self.asked)

    def reports(self) -> int:
        return sum(path.endswith("/nodeqoses/n/status") for _, path, _ in self.asked)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "FIRST_BACKOFF_S", 0.01)
    monkeypatch.setattr(sync, "SHORTEST_GAP_S", 0.01)
    monkeypatch.setattr(sync, "PUSH_S", 0.05)


@asynccontextmanager
async def talking(plane: ControlPlane, node: Node, path: Path) -> AsyncIterator[Sync]:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    one = Sync(Peer(f"unix:{path}"), "n", node)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(http.listen(sock, plane.answer)), group.create_task(one.run())]
        try:
            yield one
        finally:
            for task in tasks:
                task.cancel()
    sock.close()


async def until(claim: Callable[[], bool], plane: ControlPlane) -> None:
    async with asyncio.timeout(30):
        while not claim():
            plane.heard.clear()
            await plane.heard.wait()


def event(document: NodeDocument, kind: str = "ADDED") -> Any:
    return {"type": kind, "object": schema.plain(document)}


async def test_a_document_is_obeyed(tmp_path: Path) -> None:
    plane, node = ControlPlane(), Node()
    plane.watch = [event(GOOD)]
    async with talking(plane, node, tmp_path / "s"), asyncio.timeout(30):
        await node.moved.wait()
    assert node.obeyed[0] == GOOD


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param([event(NodeDocument(node="n"))], id="suddenly empty"),
        pytest.param([event(GOOD, "DELETED")], id="deleted"),
        pytest.param([{"type": "ADDED", "object": {"node": "n", "surprise": 1}}], id="of another shape"),
        pytest.param([event(NodeDocument(node="n", format=7, profiles=builtin()))], id="of a later format"),
        pytest.param(["text", 7, None], id="no event at all"),
    ],
)
async def test_what_cannot_be_meant_is_not_obeyed(tmp_path: Path, bad: list[Any]) -> None:
    plane, node = ControlPlane(), Node()
    plane.watch = [*bad, event(GOOD)]
    async with talking(plane, node, tmp_path / "s"), asyncio.timeout(30):
        await node.moved.wait()
    assert {d.hash for d in node.obeyed} == {"good"}


async def test_an_unknown_node_introduces_itself_and_reports_at_once(tmp_path: Path) -> None:
    plane, node = ControlPlane(), Node()
    async with talking(plane, node, tmp_path / "s"):
        await until(lambda: plane.reports() >= 2, plane)
    assert plane.nodes == {"n"}


async def test_a_hold_made_while_it_was_away_is_pushed_once_and_withdrawn_when_released(tmp_path: Path) -> None:
    plane, node = ControlPlane(), Node()
    hold = build.hold("workload/default/web", "cpu.max", name="hold-1")
    node.holds = (hold,)
    async with talking(plane, node, tmp_path / "s"):
        await until(lambda: plane.reports() >= 4, plane)
        assert plane.count("POST", "/namespaces/default/holds") == 1
        node.holds, node.released = (), frozenset({"hold-1"})
        await until(lambda: plane.count("DELETE", "/namespaces/default/holds/hold-1") == 1, plane)


async def test_it_keeps_trying_while_nobody_answers(tmp_path: Path) -> None:
    plane, node = ControlPlane(), Node()
    plane.watch = [event(GOOD)]
    one = Sync(Peer(f"unix:{tmp_path}/s"), "n", node)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(one.run())
        while "does not answer" not in one.error:  # noqa: ASYNC110 there is no event for a failure
            await asyncio.sleep(0)
        assert not one.connected
        task.cancel()
    async with talking(plane, node, tmp_path / "s"), asyncio.timeout(30):
        await node.moved.wait()
