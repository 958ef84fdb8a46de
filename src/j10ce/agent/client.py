"""HTTP/1.1 as a client, on asyncio streams: the agent's way to the manager, and to an agent that it takes over from."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import h11
import msgspec

from j10ce.errors import Conflict, Denied, NotFound, QosError, Unreachable

CONNECT_S: Final = 5.0
ANSWER_S: Final = 15.0
JSON: Final = "application/json"
MOST_BYTES: Final = 16 * 1024 * 1024  # of one answer, or of one line of a watch


class Peer(NamedTuple):
    """Who to talk to: `http://host:port`, `https://host:port` or `unix:/path`."""

    url: str
    token_file: str = ""
    ca_file: str = ""


async def call(peer: Peer, method: str, path: str, body: object = None, content: str = JSON) -> Any:
    """One request and its decoded answer; raises Unreachable, Denied, NotFound, Conflict or QosError."""
    try:
        async with asyncio.timeout(ANSWER_S), _exchange(peer, method, path, body, content) as (status, chunks):
            data = await _whole(peer, chunks)
    except TimeoutError:
        raise Unreachable(f"{peer.url} did not answer within {ANSWER_S:g} s") from None
    _check(status, data, f"{method} {path}")
    return msgspec.json.decode(data) if data else None


async def lines(peer: Peer, path: str, *, quiet_s: float) -> AsyncIterator[Any]:
    """A watch: one decoded document per line. Raises Unreachable when the peer says nothing for `quiet_s`."""
    async with _exchange(peer, "GET", path, None, JSON) as (status, chunks):
        rest = b""
        if status != 200:
            _check(status, await _whole(peer, chunks), f"GET {path}")
            raise Unreachable(f"{peer.url} answers HTTP {status} instead of a watch")
        while (chunk := await _next(chunks, quiet_s)) is not None:
            *whole, rest = (rest + chunk).split(b"\n")
            if len(rest) > MOST_BYTES:
                raise Unreachable(f"{peer.url} sent a line longer than {MOST_BYTES} bytes")
            for line in filter(None, whole):
                yield msgspec.json.decode(line)


async def _whole(peer: Peer, chunks: AsyncIterator[bytes]) -> bytes:
    data = bytearray()
    async for chunk in chunks:
        data += chunk
        if len(data) > MOST_BYTES:
            raise Unreachable(f"{peer.url} sent more than {MOST_BYTES} bytes")
    return bytes(data)


async def _next(chunks: AsyncIterator[bytes], quiet_s: float) -> bytes | None:
    try:
        async with asyncio.timeout(quiet_s):
            return await anext(chunks, None)
    except TimeoutError:
        raise Unreachable(f"no word for {quiet_s:g} s") from None


def _check(status: int, data: bytes, what: str) -> None:
    if status < 400:
        return
    try:
        message = str(msgspec.json.decode(data)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        message = data[:200].decode(errors="replace")
    kind = {401: Denied, 403: Denied, 404: NotFound, 409: Conflict}.get(status, QosError)
    raise kind(f"{what}: {message} (HTTP {status})")


@asynccontextmanager
async def _exchange(
    peer: Peer, method: str, path: str, body: object, content: str
) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
    """(status, chunks of the body); the connection ends with the block."""
    try:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await _connect(peer)
    except (OSError, TimeoutError) as e:
        raise Unreachable(f"{peer.url} does not answer: {str(e) or 'timed out'}") from e
    conn = h11.Connection(h11.CLIENT)
    try:
        data = b"" if body is None else msgspec.json.encode(body)
        writer.write(conn.send(h11.Request(method=method, target=path, headers=_headers(peer, data, content))) or b"")
        writer.write(conn.send(h11.Data(data=data)) or b"")
        writer.write(conn.send(h11.EndOfMessage()) or b"")
        async with asyncio.timeout(ANSWER_S):  # a watch may be silent, but only once it has begun
            head = await _event(conn, reader)
            while isinstance(head, h11.InformationalResponse):
                head = await _event(conn, reader)
        if not isinstance(head, h11.Response):
            raise Unreachable(f"{peer.url} closed the connection")
        yield head.status_code, _chunks(conn, reader)
    except (OSError, h11.ProtocolError) as e:
        raise Unreachable(f"{peer.url} broke off: {str(e) or f'no answer within {ANSWER_S:g} s'}") from e
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _connect(peer: Peer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if peer.url.startswith("unix:"):
        return await asyncio.open_unix_connection(peer.url.removeprefix("unix:"))
    url = urlsplit(peer.url)
    secure = url.scheme == "https"
    context = ssl.create_default_context(cafile=peer.ca_file or None) if secure else None
    return await asyncio.open_connection(url.hostname, url.port or (443 if secure else 80), ssl=context)


def _headers(peer: Peer, data: bytes, content: str) -> list[tuple[str, str]]:
    host = "localhost" if peer.url.startswith("unix:") else urlsplit(peer.url).netloc
    headers = [("Host", host), ("Content-Length", str(len(data))), ("Content-Type", content)]
    if peer.token_file:  # read each time: tokens are rotated in place
        headers.append(("Authorization", f"Bearer {Path(peer.token_file).read_text().strip()}"))
    return headers


async def _chunks(conn: h11.Connection, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while isinstance(event := await _event(conn, reader), h11.Data):
        yield bytes(event.data)


async def _event(conn: h11.Connection, reader: asyncio.StreamReader) -> object:
    while (event := conn.next_event()) is h11.NEED_DATA:
        conn.receive_data(await reader.read(65536))
    return event
