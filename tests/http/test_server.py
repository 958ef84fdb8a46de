"""The server on the socket: well-formed requests are answered, everything else ends at most its own connection."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from j10ce.errors import Denied, Finding, Invalid, NotFound, QosError, Unreachable
from j10ce.http import client, server
from j10ce.http.client import Peer
from j10ce.http.server import Request, Response


async def echo(request: Request) -> Response:
    match request.path:
        case "/echo":
            return server.answer({"method": request.method, "query": request.query, "body": request.body.decode()})
        case "/denied":
            raise Denied("not yours")
        case "/absent":
            raise NotFound("nothing here")
        case "/invalid":
            raise Invalid([Finding("a.b", 1, "wrong"), Finding("c", 2, "wrong too")])
        case _:
            raise ZeroDivisionError("a fault of ours")


@pytest.fixture
async def path(tmp_path: Path) -> AsyncIterator[Path]:
    async with serving(tmp_path / "s"):
        yield tmp_path / "s"


@asynccontextmanager
async def serving(path: Path) -> AsyncIterator[None]:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    sock.listen()  # whoever comes before the server has begun waits for it
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.listen(sock, echo))
        try:
            yield
        finally:
            task.cancel()
    sock.close()


async def talk(path: Path, data: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(data)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


async def test_a_request_is_answered(path: Path) -> None:
    answer = await client.call(Peer(f"unix:{path}"), "POST", "/echo?a=1&b=x%20y", {"hello": 1})
    assert answer == {"method": "POST", "query": {"a": "1", "b": "x y"}, "body": '{"hello":1}'}


async def test_one_connection_carries_several_requests(path: Path) -> None:
    one = b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n"
    assert (await talk(path, one * 3)).count(b"HTTP/1.1 200") == 3


@pytest.mark.parametrize(
    ("where", "status", "reason"),
    [
        ("/denied", 403, "Forbidden"),
        ("/absent", 404, "NotFound"),
        ("/invalid", 422, "Invalid"),
        ("/x", 500, "Internal"),
    ],
)
async def test_errors_become_status_objects(path: Path, where: str, status: int, reason: str) -> None:
    answer = await talk(path, f"GET {where} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    data = msgspec.json.decode(body)
    assert f" {status} ".encode() in head
    assert (data["kind"], data["code"]) == ("Status", status)
    assert data["reason"].startswith(reason)


async def test_every_finding_is_a_cause(path: Path) -> None:
    with pytest.raises(QosError, match=r"a\.b = 1: wrong; c = 2: wrong too"):
        await client.call(Peer(f"unix:{path}"), "GET", "/invalid")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00", id="TLS on a plain socket"),
        pytest.param(b"GET\r\n\r\n", id="half a request line"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="no Host"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", id="a negative length"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: " + b"b" * 40000 + b"\r\n\r\n", id="endless headers"),
        pytest.param(b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", id="a bad chunk"),
    ],
)
async def test_malformed_requests_are_refused_and_the_server_lives_on(path: Path, data: bytes) -> None:
    answer = await talk(path, data)
    assert b" 200 " not in answer
    assert await client.call(Peer(f"unix:{path}"), "GET", "/echo")


@pytest.mark.parametrize("data", [b"", b"GET /ec", b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab"])
async def test_a_peer_that_leaves_early_is_forgotten(path: Path, data: bytes) -> None:
    await talk(path, data)
    assert await client.call(Peer(f"unix:{path}"), "GET", "/echo")


async def test_a_body_beyond_the_limit_is_refused(path: Path) -> None:
    size = server.MOST_BODY + 1
    head = f"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode()
    assert b" 413 " in await talk(path, head + b"x" * size)


async def test_a_crowd_is_answered_few_at_a_time(path: Path) -> None:
    async def one() -> int:
        return len(await client.call(Peer(f"unix:{path}"), "GET", "/echo"))

    async with asyncio.timeout(60):
        assert sum(await asyncio.gather(*(one() for _ in range(300)))) == 900


async def test_a_peer_that_never_reads_its_answer_loses_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(server, "IDLE_S", 0.05)
    size = server.MOST_BODY // 2
    async with serving(tmp_path / "s"), asyncio.timeout(30):
        _, writer = await asyncio.open_unix_connection(str(tmp_path / "s"), limit=1)
        writer.write(f"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode() + b"x" * size)
        await writer.drain()
        assert await client.call(Peer(f"unix:{tmp_path / 's'}"), "GET", "/echo")
        writer.close()


async def test_nobody_there_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(Unreachable):
        await client.call(Peer(f"unix:{tmp_path}/nobody"), "GET", "/")


@pytest.mark.parametrize("turns", range(6))
async def test_no_connection_is_lost_when_the_server_ends_as_it_comes(tmp_path: Path, turns: int) -> None:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(tmp_path / "s"))
    with warnings.catch_warnings(record=True) as lost, socket.socket(socket.AF_UNIX) as caller, sock:
        warnings.simplefilter("always")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(server.listen(sock, echo))
            await asyncio.sleep(0)
            caller.connect(str(tmp_path / "s"))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
        gc.collect()
    assert [str(warning.message) for warning in lost] == []
