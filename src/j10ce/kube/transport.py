"""Requests to a Kubernetes API server: patient, with fresh tokens, and honest about what may have happened."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import aiohttp

from j10ce import __version__
from j10ce.errors import Closed, Conflict, Denied, NotFound, QosError, Unavailable, Unsure
from j10ce.http.lines import lines
from j10ce.http.retry import asked_s, pauses
from j10ce.http.status import status_of
from j10ce.kube.access import KubeAccess, load_certificate
from j10ce.kube.failure import failure
from j10ce.kube.wire import QUIET_S

ATTEMPT_S: Final = 5.0
CONNECT_S: Final = 2.0
AT_A_TIME: Final = 64  # requests
NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})
JSON: Final = "application/json"


class KubeRequest(NamedTuple):
    method: str
    path: str
    query: Mapping[str, str] = NO_QUERY
    body: bytes | None = None
    content: str = JSON
    attempt_s: float = ATTEMPT_S  # or half of the client's patience, where that is longer
    repeatable: bool = True  # carried out twice, it does no more than once

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class KubeHttp:
    """Used from one event loop."""

    def __init__(self, access: KubeAccess, *, patience_s: float) -> None:
        self._access, self._patience_s = access, patience_s
        self._bearer = Bearer(access.token, access.token_file)
        self._asking = asyncio.Lock()  # one plugin at a time
        self._room = asyncio.Semaphore(AT_A_TIME)
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, request: KubeRequest) -> bytes:
        """Tried again while the server is away or busy. Raises Unavailable when it was not carried out, Unsure when it
        may have been, and what the server objects to."""
        loop = asyncio.get_running_loop()
        deadline, doubt = loop.time() + self._patience_s, False
        for pause_s in pauses():
            try:
                async with self._room:
                    return await self._once(request)
            except (Unavailable, Unsure) as e:
                doubt |= isinstance(e, Unsure) and request.method != "GET"
                pause_s = max(pause_s, asked_s(e))
                if (doubt and not request.repeatable) or loop.time() + pause_s > deadline:
                    raise _unsure(e) if doubt else Unavailable(str(e)) from None
                await asyncio.sleep(pause_s)
            except (Conflict, NotFound) as e:  # of our own making, perhaps: an attempt that was not answered
                raise _unsure(e) if doubt else e from None
        raise AssertionError("unreachable")

    async def ask_once(self, request: KubeRequest) -> bytes:
        """As `ask`, without a second attempt; Later where the server is busy, or does not allow it now."""
        async with self._room:
            return await self._once(request)

    async def stream(self, request: KubeRequest) -> AsyncGenerator[bytes, None]:
        """The lines of an answer, until the server ends it. Close it after use.

        Raises Unavailable when the connection is lost, and what the server objects to.
        """
        try:
            async with self._sent(request, aiohttp.ClientTimeout(sock_connect=CONNECT_S, sock_read=QUIET_S)) as answer:
                if answer.status != 200:
                    raise self._refusal(request, answer, await answer.read())
                async for line in lines(answer.content.iter_any()):
                    yield line
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            raise Unavailable(self._silence(request, e)) from None
        except Unsure as e:
            raise Unavailable(str(e)) from None

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            await asyncio.sleep(0)  # connections that are being dropped go with the next turn of the loop

    async def _once(self, request: KubeRequest) -> bytes:
        attempt_s = max(request.attempt_s, self._patience_s / 2)
        limits = aiohttp.ClientTimeout(attempt_s, sock_connect=CONNECT_S, sock_read=self._patience_s)
        try:
            async with self._sent(request, limits) as answer:
                text = await answer.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as e:
            raise Unavailable(self._silence(request, e)) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            raise Unsure(self._silence(request, e)) from None
        if answer.status < 300:
            return text
        raise self._refusal(request, answer, text)

    async def _introduce(self) -> None:
        """Have the credential plugin say who we are, where there is one and its word has ended. Raises QosError."""
        plugin = self._access.plugin
        if plugin is None or not plugin.due:
            return
        async with self._asking:
            credential = await asyncio.to_thread(plugin.credential)
            self._bearer = Bearer(credential.token, None)
            if credential.certificate and self._access.tls:
                load_certificate(self._access.tls, credential.certificate, credential.key)

    @asynccontextmanager
    async def _sent(self, request: KubeRequest, limits: aiohttp.ClientTimeout) -> AsyncIterator[aiohttp.ClientResponse]:
        await self._introduce()
        async with self._http().request(
            request.method,
            self._access.server + request.path,
            params=request.query,
            data=request.body,
            headers={**self._bearer.header(), "Content-Type": request.content},
            server_hostname=self._access.server_name or None,
            timeout=limits,
            allow_redirects=False,
        ) as answer:
            try:
                yield answer
            finally:
                if answer.connection and answer.connection.transport:
                    answer.connection.transport.abort()  # not read to its end: nobody waits for TLS to say goodbye

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ssl=self._access.tls or True, socket_factory=_connection)
            headers = {
                "User-Agent": f"j10ce-qos/{__version__}",
                "Accept": JSON,
                "Accept-Encoding": "identity",  # a server next door packs slower than it sends
            }
            self._session = aiohttp.ClientSession(connector=connector, headers=headers)
            # Else it would silently repeat a DELETE that was carried out, and tell us that there is nothing to delete.
            self._session._retry_connection = False
        if self._session.closed:
            raise Closed()
        return self._session

    def _refusal(self, request: KubeRequest, answer: aiohttp.ClientResponse, text: bytes) -> QosError:
        if answer.status == HTTPStatus.UNAUTHORIZED and self._access.plugin:
            self._access.plugin.forget()
        after = answer.headers.get("Retry-After", "")
        return failure(answer.status, status_of(text), str(request), self._access.who, after)

    def _silence(self, request: KubeRequest, e: Exception) -> str:
        return f"the API server at {self._access.server} does not answer {request}: {str(e) or type(e).__name__}"


class Bearer:
    """The token in force: a kubelet renews that of a pod in its file, long before it expires."""

    def __init__(self, token: str, file: Path | None) -> None:
        self._token, self._file = token, file
        self._seen: object = None

    def header(self) -> dict[str, str]:
        """Raises Denied when the file cannot be read."""
        if self._file:
            try:
                file = self._file.stat()
                if self._seen != (file.st_ino, file.st_mtime_ns, file.st_size):
                    self._token = self._file.read_text().strip()
                    self._seen = (file.st_ino, file.st_mtime_ns, file.st_size)
            except OSError as e:
                raise Denied(f"cannot read the token in {self._file}: {e.strerror}") from None
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}


def _unsure(e: Exception) -> Unsure:
    return Unsure(f"{e}: it may or may not have happened; read it again")


def _connection(address: aiohttp.AddrInfoType) -> socket.socket:
    """One that notices within half a minute that its peer is gone, also while it only waits."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3)):
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)  # ms
    return made
