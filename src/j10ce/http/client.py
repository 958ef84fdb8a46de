"""HTTP/1.1 as a client, on asyncio streams: the agent's way to the manager, and to an agent that it takes over from."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import h11
import msgspec

from j10ce.errors import Later, QosError, Unreachable
from j10ce.http.addresses import keep_secret
from j10ce.http.dialogue import JSON, Dialogue, headers
from j10ce.http.lines import Cutter
from j10ce.http.status import BUSY, document_of, error_of, is_final, status_of

CONNECT_S: Final = 5.0
ANSWER_S: Final = 15.0
AGENT: Final = "j10ce-qos-agent"
MOST_BYTES: Final = 16 * 1024 * 1024  # of one answer, or of one line of a watch


# What an answer means: (its head, its text, what was asked); raises where it is no success.
Check = Callable[[h11.Response, bytes, str], None]


class Peer(NamedTuple):
    """Who to talk to: `http://host:port`, `https://host:port` or `unix:/path`."""

    url: str
    token_file: str = ""
    ca_file: str = ""
    token: str = ""  # where there is no file
    tls: ssl.SSLContext | None = None  # made already, instead of one from `ca_file`
    server_name: str = ""  # that the certificate is for, where it is not the host of `url`

    def bearer(self) -> str:
        """The token in force. A file is read each time: tokens are rotated in place."""
        return Path(self.token_file).read_text().strip() if self.token_file else self.token


class Rejected(QosError):
    """The peer read the request and will not do it; the same request again would end the same way."""


class Broken(Unreachable):
    """The connection ended before anything was answered on it."""


async def call(peer: Peer, method: str, path: str, body: object = None) -> Any:
    """One request on a connection of its own, and its decoded answer; raises as `Client.call` does."""
    client = Client(peer)
    try:
        return await client.call(method, path, body)
    finally:
        await client.close()


class Client:
    """Requests to one peer over one kept connection, one after another.

    A handshake costs a control plane of ten thousand agents far more than a report does.
    """

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._kept: ClientConnection | None = None
        self._turn = asyncio.Lock()

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """The decoded answer; raises Unreachable, Later, Denied, NotFound, Conflict, Rejected or QosError."""
        head, answer = await self.ask(method, path, body)
        _check(head, answer, f"{method} {path}")
        return document_of(answer, self.peer.url) if answer else None

    async def ask(
        self, method: str, path: str, body: object = None, *, content: str = JSON, within_s: float = ANSWER_S
    ) -> tuple[h11.Response, bytes]:
        """Whatever is answered; raises Unreachable.

        A kept connection may have been closed while it rested: the request then goes out once more, on a fresh one.
        """
        data = b"" if body is None else msgspec.json.encode(body)
        async with self._turn:
            try:
                async with asyncio.timeout(within_s):
                    return await self._ask(method, path, data, content)
            except TimeoutError:
                await self.close()
                raise Unreachable(f"{self.peer.url} did not answer within {within_s:g} s") from None

    async def close(self) -> None:
        line, self._kept = self._kept, None
        if line is not None:
            await line.close()

    async def _ask(self, method: str, path: str, data: bytes, content: str) -> tuple[h11.Response, bytes]:
        rested = self._kept is not None
        try:
            return await self._exchange(method, path, data, content)
        except Broken:
            if not rested:
                raise
            return await self._exchange(method, path, data, content)

    async def _exchange(self, method: str, path: str, data: bytes, content: str) -> tuple[h11.Response, bytes]:
        line, self._kept = self._kept or await ClientConnection.open(self.peer), None
        try:
            head = await line.ask(method, path, data, content)
            answer = await line.whole()
        except BaseException:
            await line.close()
            raise
        if line.reusable():
            self._kept = line
        else:
            await line.close()
        return head, answer


@asynccontextmanager
async def watch(peer: Peer, path: str, *, quiet_s: float) -> AsyncIterator[AsyncIterator[Any]]:
    """A watch that the peer has begun: one decoded document per line. Raises Unreachable after `quiet_s` of silence."""
    async with stream(peer, path, quiet_s=quiet_s) as lines:
        yield (document_of(text, peer.url) async for text in lines)


@asynccontextmanager
async def stream(
    peer: Peer, path: str, *, quiet_s: float, check: Check | None = None
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Lines as the peer sends them. `check` raises what an answer that is no stream means."""
    line = await ClientConnection.open(peer)
    try:
        async with asyncio.timeout(ANSWER_S):
            head = await line.ask("GET", path, b"")
            if head.status_code != 200:
                (check or _check)(head, await line.whole(), f"GET {path}")
                raise Unreachable(f"{peer.url} answers HTTP {head.status_code} instead of a watch")
    except TimeoutError:
        await line.close()
        raise Unreachable(f"{peer.url} broke off: no answer within {ANSWER_S:g} s") from None
    except BaseException:
        await line.close()
        raise
    try:
        yield _lines(line, quiet_s)
    finally:
        await line.close()


async def _lines(line: ClientConnection, quiet_s: float) -> AsyncIterator[bytes]:
    chunks, cutter = line.chunks(), Cutter()
    while (chunk := await _next(chunks, quiet_s)) is not None:
        whole = cutter.cut(chunk)
        if max(map(len, (*whole, cutter.begun))) > MOST_BYTES:
            raise Unreachable(f"{line.peer.url} sent a line longer than {MOST_BYTES} bytes")
        for text in filter(None, whole):
            yield text


async def _next(chunks: AsyncIterator[bytes], quiet_s: float) -> bytes | None:
    try:
        async with asyncio.timeout(quiet_s):
            return await anext(chunks, None)
    except TimeoutError:
        raise Unreachable(f"no word for {quiet_s:g} s") from None


class ClientConnection:
    """A connection, and how far the conversation on it has come."""

    def __init__(self, peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.peer = peer
        self._reader, self._writer = reader, writer
        self._dialogue = Dialogue()

    @classmethod
    async def open(cls, peer: Peer) -> ClientConnection:
        try:
            async with asyncio.timeout(CONNECT_S):
                return cls(peer, *await _connect(peer))
        except ValueError as e:
            raise Unreachable(f"{peer.url[:200]} is no address: {e}") from None
        except (OSError, TimeoutError) as e:
            raise Unreachable(f"{peer.url} does not answer: {str(e) or 'timed out'}") from e

    async def ask(self, method: str, path: str, data: bytes, content: str = JSON) -> h11.Response:
        """Send a request; the head of its answer."""
        given = headers(self.peer.url, AGENT, self.peer.bearer(), data, content)
        self._writer.write(self._dialogue.request(method, path, given, data))
        head = await self._event()
        if not isinstance(head, h11.Response):
            raise Broken(f"{self.peer.url} closed the connection")
        return head

    async def whole(self) -> bytes:
        data = bytearray()
        async for chunk in self.chunks():
            data += chunk
            if len(data) > MOST_BYTES:
                raise Unreachable(f"{self.peer.url} sent more than {MOST_BYTES} bytes")
        return bytes(data)

    async def chunks(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self._event(), h11.Data):
            yield bytes(event.data)

    def reusable(self) -> bool:
        """Whether the next request may follow; makes ready for it."""
        return self._dialogue.again()

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _event(self) -> object:
        begun = self._dialogue.begun
        try:
            while (event := self._dialogue.event()) is None:
                self._dialogue.received(await self._reader.read(65536))
        except (OSError, h11.ProtocolError) as e:
            kind = Unreachable if begun else Broken
            raise kind(f"{self.peer.url} broke off: {e}") from e
        return event


async def _connect(peer: Peer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if peer.url.startswith("unix:"):
        return await asyncio.open_unix_connection(peer.url.removeprefix("unix:"))
    if peer.token or peer.token_file:
        keep_secret(peer.url)
    url = urlsplit(peer.url)
    secure = url.scheme == "https"
    context = (peer.tls or ssl.create_default_context(cafile=peer.ca_file or None)) if secure else None
    port, name = url.port or (443 if secure else 80), peer.server_name or None
    return await asyncio.open_connection(url.hostname, port, ssl=context, server_hostname=name if secure else None)


def _check(head: h11.Response, data: bytes, what: str) -> None:
    status = head.status_code
    if status < 400:
        return
    text = f"{what}: {status_of(data).message} (HTTP {status})"
    if status in BUSY:
        raise Later(text, _after(head))
    raise Rejected(text) if is_final(status) else error_of(status)(text)


def _after(head: h11.Response) -> float:
    given = dict(head.headers).get(b"retry-after", b"0")
    return float(given) if given.isdigit() else 0.0
