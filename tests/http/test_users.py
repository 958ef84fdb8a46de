"""One HTTP client: agents, commands and the manager's proxy understand the same peer alike, whatever it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from j10ce.cli.client import Client as CliClient
from j10ce.errors import QosError, Unreachable
from j10ce.http import client
from j10ce.http.client import Peer
from j10ce.http.status import answer_to
from j10ce.manager.api import agent_proxy
from j10ce.manager.api.agent_proxy import AgentProxy
from tests.style.sources import product

PATH = "/v1/workloads"
ANSWER = b'{"items": []}'
JSON = b"Content-Type: application/json\r\n"
STATUS = b'{"kind": "Status", "code": 404, "reason": "NotFound", "message": "no such workload"}'


def reply(first: bytes, body: bytes, *more: bytes, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    head = b"HTTP/1.1 " + first + b"\r\n" + JSON + b"".join(line + b"\r\n" for line in more)
    return head + b"Content-Length: %d\r\n\r\n" % size + body


CHUNKED = b"HTTP/1.1 200 OK\r\n" + JSON + b"Transfer-Encoding: chunked\r\n\r\n"


async def by_an_agent(socket: Path) -> Any:
    return await client.call(Peer(f"unix:{socket}"), "GET", PATH)


async def by_a_command(socket: Path) -> Any:
    return await asyncio.to_thread(CliClient(f"unix:{socket}", timeout=client.ANSWER_S).get, PATH)


async def by_the_proxy(socket: Path) -> Any:
    return await AgentProxy(socket)._get(PATH)


USERS = {"agent": by_an_agent, "command": by_a_command, "proxy": by_the_proxy}


@asynccontextmanager
async def peer(folder: Path, says: bytes | None) -> AsyncIterator[Path]:
    """It reads a request, says this whatever was asked, and hangs up; with None it says nothing and stays."""
    done = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if says is None:
            await done.wait()
        else:
            writer.write(says)
        writer.close()

    server = await asyncio.start_unix_server(talk, folder / "peer.sock")
    async with server:
        yield folder / "peer.sock"
        done.set()


async def outcome(user: Callable[[Path], Any], socket: Path) -> Any:
    """What it answers, or the code of the failure."""
    try:
        return await user(socket)
    except QosError as e:
        return answer_to(e).code, isinstance(e, Unreachable)


AWAY = (503, True)
SAID = [
    pytest.param(reply(b"200 OK", ANSWER), {"items": []}, id="an answer"),
    pytest.param(
        CHUNKED + b"6\r\n" + ANSWER[:6] + b"\r\n7\r\n" + ANSWER[6:] + b"\r\n0\r\n\r\n", {"items": []}, id="chunks"
    ),
    pytest.param(b"HTTP/1.1 102 Processing\r\n\r\n" + reply(b"200 OK", ANSWER), {"items": []}, id="after a while"),
    pytest.param(reply(b"404 Not Found", STATUS), (404, False), id="a refusal"),
    pytest.param(b"", AWAY, id="nothing"),
    pytest.param(b"SSH-2.0-OpenSSH_9.7\r\n", AWAY, id="another protocol"),
    pytest.param(reply(b"200 OK", ANSWER)[:30], AWAY, id="half a head"),
    pytest.param(reply(b"200 OK", ANSWER, length=99), AWAY, id="half a body"),
    pytest.param(CHUNKED + b"6\r\n" + ANSWER[:6], AWAY, id="half of the chunks"),
    pytest.param(reply(b"200 OK", ANSWER, b"Content-Length: 3"), AWAY, id="two lengths"),
    pytest.param(reply(b"200 OK", ANSWER[:-1]), AWAY, id="half a document"),
    pytest.param(reply(b"200 OK", b"\xff\xfe"), AWAY, id="no text"),
    pytest.param(None, AWAY, id="silence"),
]


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize(("says", "expected"), SAID)
async def test_a_peer_is_understood_alike(
    says: bytes | None, expected: object, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience_s = 0.1 if says is None else 30.0
    monkeypatch.setattr(client, "ANSWER_S", patience_s)
    monkeypatch.setattr(
        client.Client.ask, "__kwdefaults__", {**client.Client.ask.__kwdefaults__, "within_s": patience_s}
    )
    monkeypatch.setattr(agent_proxy, "ANSWER_S", patience_s)
    async with peer(tmp_path, says) as socket:
        assert await outcome(USERS[name], socket) == expected


@pytest.mark.parametrize("name", USERS)
async def test_a_peer_that_is_not_there_is_unreachable(name: str, tmp_path: Path) -> None:
    assert await outcome(USERS[name], tmp_path / "absent.sock") == AWAY


def test_h11_is_spoken_in_one_place() -> None:
    """Commands are synchronous and agents are not; what the bytes mean is read by one module for both."""
    speakers = {source.module for source in product() if "h11.Connection(h11.CLIENT" in source.text}
    assert speakers == {"http/dialogue.py"}
