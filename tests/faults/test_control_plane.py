"""A control plane that is lost, empty, broken or hostile: what it last said in earnest stays in force."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from j10ce.errors import Unreachable
from j10ce.http import client
from j10ce.http.client import Peer
from j10ce.model import schema
from j10ce.model.kinds import QoSProfile
from j10ce.policy.document.document import FORMAT, NodeDocument, digest
from j10ce.policy.profiles import builtin
from j10ce.testing import build
from tests.agent.process import AgentProcess, eventually

NODE = "n1"


def stored(prefix: str) -> tuple[QoSProfile, ...]:
    """Built-in profiles as a store holds them."""
    return tuple(replace(p, metadata=replace(p.metadata, uid=f"{prefix}-{p.metadata.name}")) for p in builtin())


def document(cpu: str) -> NodeDocument:
    floor = build.reservation("floor", labels={"app": "web"}, cpu=cpu)
    made = NodeDocument(node=NODE, format=FORMAT, profiles=stored("old"), policies=(floor,))
    return replace(made, hash=digest(made))


def line(document: NodeDocument, kind: str = "ADDED") -> bytes:
    return msgspec.json.encode({"type": kind, "object": schema.plain(document)}) + b"\n"


class Answer:
    """What every request gets, as status and bytes. `stays`: the connection is kept open afterwards."""

    def __init__(self, status: int, body: bytes, *, stays: bool = False) -> None:
        self.status, self.body, self.stays = status, body, stays


NO_DATABASE = NodeDocument(node=NODE, format=FORMAT, profiles=stored("fresh"), hash="x")
HOSTILE = {
    "404": Answer(404, b'{"kind":"Status","code":404,"message":"there is no such thing"}'),
    "404 without a word": Answer(404, b""),
    "an empty list": Answer(200, b'{"kind":"List","items":[]}\n'),
    "an empty document": Answer(200, line(NodeDocument(node=NODE, format=FORMAT))),
    "no database": Answer(200, line(NO_DATABASE)),
    "everything deleted": Answer(200, line(document("100m"), "DELETED")),
    "garbage": Answer(200, b"\x00\xff<html>\n"),
    "garbage of the right shape": Answer(200, b'{"type":"ADDED","object":[[[{"node":7}]]]}\nnull\n7\n"x"\n'),
    "too deep": Answer(200, b"[" * 100_000 + b"\n"),
    "a redirection": Answer(302, line(NodeDocument(node=NODE, format=FORMAT))),
    "an error": Answer(500, b"Traceback (most recent call last)"),
    "half a line": Answer(200, line(document("900m"))[:-40]),
    "silence": Answer(0, b"", stays=True),
    "no HTTP": Answer(0, b"SSH-2.0-OpenSSH_9.2\r\n"),
    "nothing": Answer(0, b""),
}


class ControlPlane(ThreadingHTTPServer):
    """Answers as a test wants; a change of mind ends every open connection."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.turn = threading.Condition()
        self.answer = Answer(200, b"", stays=True)
        self.watches = 0
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def say(self, answer: Answer) -> None:
        with self.turn:
            self.answer, self.watches = answer, 0
            self.turn.notify_all()

    def wait_for_watches(self, count: int) -> None:
        with self.turn:
            assert self.turn.wait_for(lambda: self.watches >= count, 60)


class Handler(BaseHTTPRequestHandler):
    server: ControlPlane
    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        asked = self.rfile.readline()
        with self.server.turn:
            answer = self.server.answer
            self.server.watches += b"watch=1" in asked
            self.server.turn.notify_all()
        self.close_connection = True
        if b"watch=1" in asked or not (answer.stays and answer.status):
            self.respond(answer)
        elif asked:
            self.respond(Answer(200, b"{}"))

    def respond(self, answer: Answer) -> None:
        if answer.status:
            self.wfile.write(f"HTTP/1.1 {answer.status} X\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            self.wfile.write(b"%x\r\n%s\r\n" % (len(answer.body), answer.body) if answer.body else b"")
        else:
            self.wfile.write(answer.body)
        self.wfile.flush()
        if answer.stays:
            with self.server.turn:
                self.server.turn.wait_for(lambda: self.server.answer is not answer, 60)
        elif answer.status:
            self.wfile.write(b"0\r\n\r\n")


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as one:
        yield one
        one.say(Answer(0, b""))
        one.shutdown()


def floor(agent: AgentProcess) -> str:
    (web,) = agent.client.get("/v1/workloads")["items"]
    return str(web["status"].get("floor", {}).get("cpu", "none"))


@pytest.mark.host
def test_nothing_that_a_control_plane_answers_takes_a_floor_away(agent: AgentProcess, plane: ControlPlane) -> None:
    plane.say(Answer(200, line(document("100m")), stays=True))
    agent.start("--server", plane.url, "--node-name", NODE).place("web", profile="ls", labels={"app": "web"})
    assert eventually(lambda: floor(agent) == "100m")
    agent.client.post("/v1/holds", held := hold())
    agent.client.delete("/v1/holds", target=held["target"])  # so that it has one to withdraw, too
    for name, answer in HOSTILE.items():
        plane.say(answer)
        plane.wait_for_watches(1)
        plane.say(Answer(200, line(document("100m")), stays=True))
        plane.wait_for_watches(1)  # it asks again once it is through with the answer
        assert floor(agent) == "100m", name
    plane.say(Answer(200, line(document("200m")), stays=True))
    assert eventually(lambda: floor(agent) == "200m", 60)
    assert agent.process is not None
    assert agent.process.poll() is None


def hold() -> dict[str, Any]:
    return {"target": "workload/default/web", "knobs": ["cpu.weight"], "forSeconds": 600, "why": "test"}


@pytest.mark.host
def test_started_without_it_the_agent_protects_as_before(agent: AgentProcess, plane: ControlPlane) -> None:
    plane.say(Answer(200, line(document("100m")), stays=True))
    agent.start("--server", plane.url, "--node-name", NODE).place("web", profile="ls", labels={"app": "web"})
    assert eventually(lambda: floor(agent) == "100m")
    agent.stop()
    plane.say(HOSTILE["no database"])
    agent.start("--server", plane.url, "--node-name", NODE)
    plane.wait_for_watches(2)
    assert floor(agent) == "100m"


async def test_one_that_takes_the_call_and_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ANSWER_S", 0.2)

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the other side has had enough
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, asyncio.timeout(30):
        with pytest.raises(Unreachable, match="no answer within"):
            await everything(Peer(f"http://127.0.0.1:{port}"))


@pytest.mark.parametrize(
    "many", [lambda peer: client.call(peer, "GET", "/"), lambda peer: everything(peer)], ids=["an answer", "a watch"]
)
async def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch, many: Callable[[Peer], Any]) -> None:
    monkeypatch.setattr(client, "MOST_BYTES", 1 << 20)

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        try:
            while True:
                writer.write(bytes(65536))
                await writer.drain()
        except ConnectionError:
            writer.close()

    server = await asyncio.start_server(pour, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, asyncio.timeout(30):
        with pytest.raises(Unreachable, match="1048576 bytes"):
            await many(Peer(f"http://127.0.0.1:{port}"))


async def everything(peer: Peer) -> None:
    async with client.watch(peer, "/watch", quiet_s=60) as events:
        async for _ in events:
            pass
