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
from msgspec.structs import replace

from j10ce.agent.sync import reporter, servers
from j10ce.agent.sync.sync import Sync
from j10ce.http import server
from j10ce.http.client import Peer
from j10ce.http.server import Request, Response
from j10ce.model import schema
from j10ce.model.bounds import MOST_VALUES
from j10ce.model.kinds import Condition, Hold, NodeReport
from j10ce.policy.document.change import NodeChange
from j10ce.policy.document.document import FORMAT, NodeDocument, digest, in_order
from j10ce.policy.profiles import builtin
from j10ce.testing import build

GOOD = NodeDocument(node="n", format=FORMAT, profiles=builtin(), hash="good")


class Node:
    """What the agent would do, written down."""

    def __init__(self) -> None:
        self.obeyed: list[NodeDocument] = []
        self.reports: list[NodeReport] = []
        self.holds: tuple[Hold, ...] = ()
        self.released: frozenset[str] = frozenset()
        self.moved = asyncio.Event()

    async def obey(self, document: NodeDocument) -> None:
        self.obeyed.append(document)
        self.moved.set()

    def node_report(self, conditions: tuple[Condition, ...]) -> NodeReport | None:
        return NodeReport(armed=True)

    def reported(self, report: NodeReport) -> None:
        self.reports.append(report)

    def local_holds(self) -> tuple[tuple[Hold, ...], frozenset[str]]:
        return self.holds, self.released


class ControlPlane:
    """Answers what a test wants, and writes down what it is asked."""

    def __init__(self) -> None:
        self.watch: list[Any] = []
        self.asked: list[tuple[str, str, Any]] = []
        self.nodes: set[str] = set()
        self.refuses: dict[str, int] = {}  # end of a path or name of a hold -> HTTP status
        self.queries: list[dict[str, str]] = []
        self.heard = asyncio.Event()

    async def answer(self, request: Request) -> Response:
        body = msgspec.json.decode(request.body) if request.body else None
        self.asked.append((request.method, request.path, body))
        self.heard.set()
        if code := self.refusal(request, body):
            return server.refuse(code, "the number is too high", "Refused")
        if request.path.endswith("/nodedocuments/n"):
            self.queries.append(dict(request.query))
            return Response(200, b"".join(msgspec.json.encode(event) + b"\n" for event in self.watch))
        if request.path.endswith("/nodeqoses/n/status") and not self.nodes:
            return server.refuse(404, "no such node")
        if request.method == "POST" and request.path.endswith("/nodeqoses"):
            self.nodes.add(body["metadata"]["name"])
        return server.answer({})

    def refusal(self, request: Request, body: Any) -> int:
        name = body.get("metadata", {}).get("name", "") if isinstance(body, dict) else ""
        return next((code for end, code in self.refuses.items() if request.path.endswith(end) or name == end), 0)

    def count(self, method: str, end: str) -> int:
        return sum(m == method and path.endswith(end) for m, path, _ in self.asked)

    def reports(self) -> int:
        return sum(path.endswith("/nodeqoses/n/status") for _, path, _ in self.asked)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "FIRST_BACKOFF_S", 0.01)
    monkeypatch.setattr(reporter, "SHORTEST_GAP_S", 0.01)
    monkeypatch.setattr(reporter, "PUSH_S", 0.05)


@asynccontextmanager
async def talking(plane: ControlPlane, node: Node, path: Path, servers: str = "") -> AsyncIterator[Sync]:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    one = Sync(Peer(servers or f"unix:{path}"), "n", node)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(server.listen(sock, plane.answer)), group.create_task(one.run())]
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


async def test_a_document_of_very_many_values_is_obeyed(tmp_path: Path) -> None:
    """What clients send is bounded, what the control plane says is not."""
    plane, node = ControlPlane(), Node()
    large = replace(GOOD, units={f"default/p{n}": 1 for n in range(MOST_VALUES + 1)})
    plane.watch = [event(large)]
    async with talking(plane, node, tmp_path / "s"), asyncio.timeout(30):
        await node.moved.wait()
    assert node.obeyed[0] == large


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param([event(NodeDocument(node="n", format=FORMAT))], id="suddenly empty"),
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
        (pushed,) = (body for _, path, body in plane.asked if path.endswith("/holds"))
        assert pushed["spec"]["node"] == "n"
        node.holds, node.released = (), frozenset({"hold-1"})
        await until(lambda: plane.count("DELETE", "/namespaces/default/holds/hold-1") == 1, plane)


@pytest.mark.parametrize("code", [400, 403, 413, 422, 500])
async def test_a_hold_that_is_refused_is_in_the_way_of_nothing_and_reported(tmp_path: Path, code: int) -> None:
    plane, node = ControlPlane(), Node()
    plane.refuses = {"hold-1": code}
    node.holds = tuple(build.hold("workload/default/web", "cpu.max", name=f"hold-{n}") for n in range(3))
    async with talking(plane, node, tmp_path / "s") as one:
        await until(lambda: plane.reports() >= 4, plane)
        (condition,) = one.conditions()
    posted = {body["metadata"]["name"] for _, path, body in plane.asked if path.endswith("/holds")}
    assert posted == {"hold-0", "hold-1", "hold-2"}
    assert "1 holds" in condition.message
    assert "hold-1" in condition.message
    assert "the number is too high" in condition.message


async def test_a_refused_hold_is_reported_again_once_the_control_plane_was_away(tmp_path: Path) -> None:
    plane, node = ControlPlane(), Node()
    plane.refuses, plane.watch = {"hold-1": 422}, [event(GOOD)]  # every watch ends, and is begun again
    node.holds = (build.hold("workload/default/web", "cpu.max", name="hold-1"),)
    async with talking(plane, node, tmp_path / "s") as one:
        await until(lambda: plane.count("POST", "/holds") == 1, plane)
        plane.refuses = {}
        await until(lambda: plane.count("POST", "/holds") == 2 and not one.conditions(), plane)


async def test_a_watch_resumes_from_the_document_in_force(tmp_path: Path) -> None:
    plane, node = ControlPlane(), Node()
    plane.watch = [event(GOOD)]
    async with talking(plane, node, tmp_path / "s"):
        await until(lambda: len(plane.queries) >= 2, plane)
    assert [query["hash"] for query in plane.queries[:2]] == ["", "good"]


async def test_changes_of_a_document_are_put_together(tmp_path: Path) -> None:
    plane, node = ControlPlane(), Node()
    first = hashed(replace(GOOD, policies=(build.reservation("a"), build.reservation("b"))))
    whole = hashed(replace(first, policies=(build.reservation("b", cpu="7"),), units={"x": 1}))
    plane.watch = [event(first), changing(first, whole)]
    async with talking(plane, node, tmp_path / "s"), asyncio.timeout(30):
        while len(node.obeyed) < 2:
            node.moved.clear()
            await node.moved.wait()
    assert plane.queries[0]["changes"] == "1"
    assert node.obeyed[1] == whole


@pytest.mark.parametrize("wrong", [{"since": "other"}, {"hash": "other"}, {"gone": ["QoSProfile/ls"]}])
async def test_after_a_change_that_does_not_fit_whole_documents_are_asked_for(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    plane, node = ControlPlane(), Node()
    first = hashed(replace(GOOD, policies=(build.reservation("a"), build.reservation("b"))))
    change = changing(first, hashed(replace(first, policies=(build.reservation("b", cpu="7"),))))
    plane.watch = [event(first), {**change, "object": {**change["object"], **wrong}}]
    async with talking(plane, node, tmp_path / "s"):
        await until(lambda: len(plane.queries) >= 2, plane)
    assert "changes" not in plane.queries[1]
    assert plane.queries[1]["hash"] == first.hash
    assert {document.hash for document in node.obeyed} == {first.hash}


def hashed(document: NodeDocument) -> NodeDocument:
    made = replace(document, profiles=in_order(document.profiles))
    return replace(made, hash=digest(made))


def changing(first: NodeDocument, then: NodeDocument) -> Any:
    """From policies a and b to another b alone."""
    step = NodeChange(
        node="n", hash=then.hash, since=first.hash, format=then.format, units=then.units,
        policies=then.policies, gone=("MinimalReservationPolicy/default/a",),
    )  # fmt: skip
    return {"type": "CHANGED", "object": schema.plain(step)}


async def test_a_lost_manager_is_left_for_another(tmp_path: Path) -> None:
    plane, node = ControlPlane(), Node()
    plane.watch = [event(GOOD)]
    nobody = ",".join(f"unix:{tmp_path}/nobody-{n}" for n in range(3))
    async with talking(plane, node, tmp_path / "s", f"{nobody},unix:{tmp_path}/s"):
        await until(lambda: plane.reports() >= 3 and bool(plane.queries), plane)  # the third follows an answer
        async with asyncio.timeout(30):
            await node.moved.wait()
    assert node.reports


async def test_it_keeps_trying_while_nobody_answers(tmp_path: Path) -> None:
    plane, node = ControlPlane(), Node()
    plane.watch = [event(GOOD)]
    one = Sync(Peer(f"unix:{tmp_path}/s"), "n", node)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(one.run())
        while "does not answer" not in one.error:  # noqa: ASYNC110 there is no event for a failure
            await asyncio.sleep(0)
        task.cancel()
    async with talking(plane, node, tmp_path / "s"), asyncio.timeout(30):
        await node.moved.wait()
