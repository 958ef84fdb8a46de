"""Whatever is sent to a server of ours ends at most its own connection: agent socket, agent metrics, manager."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn

from j10ce.http import server as http
from j10ce.http.server import Request, Response
from j10ce.manager import connection
from tests.agent.process import AgentProcess, one_agent
from tests.faults.raw import Address, connect, drain, talk
from tests.manager import process
from tests.manager.process import Running

HEAD = b"Host: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
SERVERS = ["agent socket", "agent metrics", "manager"]
PATHS = {"agent socket": b"/v1/plan", "agent metrics": b"/metrics", "manager": b"/apis/j10ce.io/v1alpha1/qosprofiles"}
ALIVE = {"agent socket": b"/healthz", "agent metrics": b"/metrics", "manager": b"/healthz"}


class Server:
    def __init__(self, name: str, address: Address, token: str, pid: int) -> None:
        self.name, self.address, self.token, self.pid = name, address, token.encode(), pid

    def send(self, data: bytes) -> bytes:
        return talk(self.address, data.replace(b"{path}", PATHS[self.name]).replace(b"{head}", HEAD % self.token))

    def lives(self) -> bool:
        received = talk(
            self.address, b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % ALIVE[self.name]
        )
        return received.startswith(b"HTTP/1.1 200") and os.path.exists(f"/proc/{self.pid}")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as s:
        return int(s.getsockname()[1])


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory, clone: Path) -> Iterator[AgentProcess]:
    with one_agent(tmp_path_factory.mktemp("agent"), clone) as one:
        one.config_dir.mkdir(parents=True)
        (one.config_dir / "a.yaml").write_text(f"metrics: 127.0.0.1:{free_port()}\n")
        yield one.start()


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    one = process.start(tmp_path_factory.mktemp("manager"))
    yield one
    process.end(one.process)


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Server:
    if request.param == "manager":
        one: Running = request.getfixturevalue("manager")
        host, _, port = one.server.removeprefix("http://").rpartition(":")
        return Server(request.param, (host, int(port)), one.token, one.process.pid)
    agent: AgentProcess = request.getfixturevalue("agent")
    assert agent.process is not None
    port = int((agent.config_dir / "a.yaml").read_text().rpartition(":")[2])
    address: Address = agent.run_dir / "agent.sock" if request.param == "agent socket" else ("127.0.0.1", port)
    return Server(request.param, address, "", agent.process.pid)


def post(body: bytes, *more: bytes) -> bytes:
    received = b"".join(line + b"\r\n" for line in more)
    return b"POST {path} HTTP/1.1\r\n{head}%sContent-Length: %d\r\n\r\n%s" % (received, len(body), body)


@pytest.mark.host
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="TLS"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
        pytest.param(b"GET //[x HTTP/1.1\r\n{head}\r\n", id="an address that is none"),
        pytest.param(b"GET http://[::1/ HTTP/1.1\r\n{head}\r\n", id="a URL that is none"),
        pytest.param(b"GET * HTTP/1.1\r\n{head}\r\n", id="no path"),
        pytest.param(b"GET /%00%ff%2e%2e/..;/ HTTP/1.1\r\n{head}\r\n", id="a path of garbage"),
        pytest.param(b"GET /\xff HTTP/1.1\r\n{head}\r\n", id="a path that is no ASCII"),
        pytest.param(b"GET /v1/../../../etc/passwd HTTP/1.1\r\n{head}\r\n", id="a path that escapes"),
        pytest.param(b"GET /nothing?%00=%ff&watch=1&limit=x HTTP/1.1\r\n{head}\r\n", id="a query of garbage"),
        pytest.param(b"BREW / HTTP/1.1\r\n{head}\r\n", id="an unknown method"),
        pytest.param(b"GET / HTTP/9.9\r\n{head}\r\n", id="an unknown version"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", id="two hosts"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a b\r\nX\0: y\r\n\r\n", id="a header of garbage"),
        pytest.param(b"GET / HTTP/1.1\r\n{head}Content-Length: 9\r\nContent-Length: 8\r\n\r\n", id="two lengths"),
        pytest.param(b"POST {path} HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n", id="a bad chunk"),
        pytest.param(b"POST {path} HTTP/1.1\r\n{head}Content-Length: 99\r\n\r\nabc", id="a body that breaks off"),
        pytest.param(b"POST {path} HTTP/1.1\r\n{head}Content-Length: 99999999999999999999\r\n\r\n", id="a huge length"),
        pytest.param(post(b"{" * 5000), id="no JSON"),
        pytest.param(post(b"\xff\xfe\x00"), id="no text"),
        pytest.param(post(b'{"objects": ' + b"[" * 400 + b"]" * 400 + b"}"), id="deep"),
        pytest.param(post(b"[" * 200_000 + b"]" * 200_000), id="very deep"),
        pytest.param(post(b'{"a":1e999999,"a":NaN}'), id="numbers that are none"),
        pytest.param(post(b"x" * (5 << 20)), id="an oversize body"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 50_000, id="headers without end"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"b" * 500_000, id="a header without end"),
        pytest.param(b"GET /" + b"a" * 500_000, id="a path without end"),
        pytest.param(b"\r\n" * 50_000, id="blank lines without end"),
    ],
)
def test_what_is_no_request_is_refused_and_the_server_lives_on(server: Server, data: bytes) -> None:
    received = server.send(data)
    assert b" 200 " not in received.partition(b"\r\n")[0]
    assert b" 500 " not in received.partition(b"\r\n")[0]
    assert server.lives()


@pytest.mark.host
@pytest.mark.parametrize("sent", [b"", b"GET ", b"POST {path} HTTP/1.1\r\n{head}Content-Length: 9\r\n\r\n"])
def test_peers_that_hang_up_by_the_hundred_are_forgotten(server: Server, sent: bytes) -> None:
    data = sent.replace(b"{path}", PATHS[server.name]).replace(b"{head}", HEAD % server.token)
    before = len(os.listdir(f"/proc/{server.pid}/fd"))
    for _ in range(200):
        with connect(server.address) as sock:
            sock.sendall(data)
    assert server.lives()  # answered after all of them were taken
    assert len(os.listdir(f"/proc/{server.pid}/fd")) < before + 100


@pytest.mark.host
def test_a_half_closed_peer_still_gets_its_answer(server: Server) -> None:
    request = b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % ALIVE[server.name]
    assert talk(server.address, request).startswith(b"HTTP/1.1 200")


@pytest.mark.host
@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"Host: evil.example", id="a foreign host"),
        pytest.param(b"Host: 127.0.0.1.evil.example", id="a host that begins like ours"),
        pytest.param(b"Host: localhost\r\nOrigin: http://evil.example", id="a foreign origin"),
        pytest.param(b"Host: localhost\r\nOrigin: null", id="a sandboxed page"),
    ],
)
def test_a_web_page_of_someone_else_gets_no_further(server: Server, header: bytes) -> None:
    if server.name == "agent socket":
        pytest.skip("Unsupported: no browser opens a unix socket")
    received = talk(
        server.address, b"GET %s HTTP/1.1\r\n%s\r\nConnection: close\r\n\r\n" % (ALIVE[server.name], header)
    )
    assert received.startswith(b"HTTP/1.1 403")


# ------------------------------------------------------------------ slow ones, with less patience than in production


async def greet(request: Request) -> Response:
    return http.text("hello\n")


@asynccontextmanager
async def agents_server(sock: socket.socket, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(http, "ARRIVAL_S", 0.5)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(http.listen(sock, greet))
        yield
        task.cancel()


@asynccontextmanager
async def managers_server(sock: socket.socket, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(connection, "ARRIVAL_S", 0.5)

    async def app(scope: object, receive: object, send: Callable[[object], Awaitable[None]]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hello\n"})

    config = uvicorn.Config(app, http=connection.BoundedProtocol, lifespan="off", log_config=None, ws="none")  # type: ignore[arg-type]
    one = uvicorn.Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(one._serve([sock]))
        yield
        one.should_exit = True


@pytest.mark.parametrize("serving", [agents_server, managers_server], ids=["agent", "manager"])
@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(b"", id="silent"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", id="a header, a byte at a time"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n", id="a body, likewise"),
    ],
)
async def test_slow_peers_lose_their_place(
    monkeypatch: pytest.MonkeyPatch, serving: Callable[..., AsyncIterator[None]], begun: bytes
) -> None:
    """More of them than there are places: unless they are sent away, nobody else is served."""
    sock = socket.create_server(("127.0.0.1", 0))
    address = sock.getsockname()
    async with serving(sock, monkeypatch), asyncio.timeout(60):  # type: ignore[attr-defined]
        async with asyncio.TaskGroup() as crowd:
            for _ in range(http.MOST_CONNECTIONS + 16):
                crowd.create_task(trickle(address, begun))
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
    sock.close()


async def trickle(address: tuple[str, int], begun: bytes) -> None:
    """Until the server has had enough."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(begun)
    heard = b"?"
    while heard:
        try:
            async with asyncio.timeout(0.1):
                heard = await reader.read(1024)
        except TimeoutError:
            writer.write(b"x" if begun else b"")
        except ConnectionError:
            break
    writer.close()


def test_drain_sees_the_end(tmp_path: Path) -> None:
    one, other = socket.socketpair()
    with one, other:
        other.sendall(b"said")
        other.close()
        assert drain(one) == b"said"
