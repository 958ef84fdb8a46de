"""HTTP/1.1 on asyncio streams: just enough server for one socket, with every size and wait bounded."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import h11
import msgspec
import structlog

from j10ce.errors import Invalid, QosError, cut
from j10ce.http.status import answer_to, body_of, reason_of
from j10ce.model import schema

log = structlog.get_logger()

MOST_HEADERS: Final = 16 * 1024
MOST_BODY: Final = 1024 * 1024
MOST_CONNECTIONS: Final = 64  # root waits in the backlog beyond: 1,000 workloads must fit in 1,024 descriptors
MOST_OTHERS: Final = 48  # of all users but root and the agent's own: those two always find room
MOST_PER_USER: Final = 32
UNKNOWN: Final = -1  # a user whom the kernel does not tell
BACKLOG: Final = 1024
IDLE_S: Final = 10.0  # between requests, and for each read of one
ARRIVAL_S: Final = 30.0  # for all of a request: a peer that sends a byte at a time must not keep its place for ever
ANSWER_S: Final = 60.0
CREDENTIALS: Final = struct.Struct("iII")  # of SO_PEERCRED: pid, uid, gid
_CROWDED: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 42\r\nContent-Type: text/plain\r\nRetry-After: 1\r\n"
    b"Connection: close\r\n\r\ntoo many connections of this user are open"
)


class Request(NamedTuple):
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    sock: socket.socket


class Response(NamedTuple):
    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"


Handler = Callable[[Request], Awaitable[Response]]


def answer(value: object, status: int = 200) -> Response:
    """Structs and plain data as JSON."""
    return Response(status, msgspec.json.encode(schema.plain(value)))


def text(body: str, status: int = 200) -> Response:
    return Response(status, body.encode(), "text/plain; charset=utf-8")


def failure(error: QosError) -> Response:
    """A `Status` as Kubernetes' tools read it."""
    _, status, _, reason, _ = answer_to(error)
    causes = [{"field": cut(f.path), "message": str(f)} for f in error.findings] if isinstance(error, Invalid) else []
    return answer(body_of(status, reason, str(error), causes), status)


def refuse(status: int, message: str, reason: str = "") -> Response:
    """`reason` where it is not the one that the code stands for."""
    return answer(body_of(status, reason or reason_of(status), message), status)


async def listen(sock: socket.socket, handler: Handler) -> None:
    """Serve connections of a bound socket until cancelled; at most MOST_CONNECTIONS at once."""
    sock.setblocking(False)
    sock.listen(BACKLOG)
    crowd = Crowd()
    try:
        async with asyncio.TaskGroup() as group:
            while True:
                if crowd.room.locked() and sock.family != socket.AF_UNIX:
                    await _readable(sock)
                    crowd.send_away()
                await crowd.room.acquire()
                peer = await _accept(sock)
                if crowd.enter(peer):
                    group.create_task(_converse(peer, handler)).add_done_callback(partial(crowd.leave, peer))
    finally:
        crowd.close()


class Crowd:
    """Who is connected. One user's connections, however many, keep no other's waiting, and none keeps root's."""

    def __init__(self) -> None:
        self.room = asyncio.Semaphore(MOST_CONNECTIONS)
        self._peers: dict[socket.socket, int] = {}
        self._of: Counter[int] = Counter()

    def enter(self, peer: socket.socket) -> bool:
        """Whether the peer may stay; one that may not gets an answer that says so, and is disconnected."""
        uid = _uid(peer)
        others = sum(self._of.values()) - sum(self._of[trusted] for trusted in {0, os.geteuid()})
        if uid not in (0, os.geteuid(), UNKNOWN) and (self._of[uid] >= MOST_PER_USER or others >= MOST_OTHERS):
            with suppress(OSError):  # whoever does not read it has hung up
                peer.send(_CROWDED)
            peer.close()
            self.room.release()
            return False
        self._peers[peer] = uid
        self._of[uid] += 1
        return True

    def send_away(self) -> None:
        """Who came first: of TCP's peers nobody knows the user, and any one of them could take all the room."""
        with suppress(OSError, StopIteration):
            next(iter(self._peers)).shutdown(socket.SHUT_RDWR)

    def leave(self, peer: socket.socket, _: asyncio.Task[None]) -> None:
        self._of[self._peers.pop(peer)] -= 1
        peer.close()
        self.room.release()

    def close(self) -> None:
        for peer in self._peers:
            peer.close()


def _uid(peer: socket.socket) -> int:
    """Of a unix socket's peer; of TCP's nobody knows, so that those make room for each other."""
    if peer.family != socket.AF_UNIX:
        return UNKNOWN
    return int(CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[1])


async def _accept(sock: socket.socket) -> socket.socket:
    """Nothing is awaited between taking a connection and returning it: the loop's own sock_accept, when it is
    cancelled in that moment, loses one."""
    while True:
        try:
            peer, _ = sock.accept()
            peer.setblocking(False)
        except BlockingIOError:
            await _readable(sock)
        except OSError as e:  # out of descriptors, or the peer left: neither may end the server
            log.warning("socket.accept_failed", error=str(e))
            await asyncio.sleep(0.05)
        else:
            return peer


async def _readable(sock: socket.socket) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sock, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sock)


async def _converse(sock: socket.socket, handler: Handler) -> None:
    """All requests of one connection; whatever the peer does ends at most this connection."""
    try:
        reader, writer = await asyncio.open_connection(sock=sock, limit=MOST_HEADERS)
        try:
            conn = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEADERS)
            while await _exchange(conn, reader, writer, handler):
                conn.start_next_cycle()
        finally:
            await _hang_up(writer)
    except (OSError, TimeoutError, h11.RemoteProtocolError, h11.LocalProtocolError, asyncio.IncompleteReadError) as e:
        log.debug("connection.ended", error=str(e))
    except Exception:  # a fault of ours in front of the handlers: the agent outlives that, too
        log.exception("connection.failed")


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    """What a peer has not read after a while is thrown away: else it would keep its place for as long as it likes."""
    writer.close()
    try:
        async with asyncio.timeout(IDLE_S):
            await writer.wait_closed()
    finally:
        writer.transport.abort()


async def _exchange(
    conn: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler
) -> bool:
    """One request and its answer; False when the connection ends with it."""
    try:
        async with asyncio.timeout(ARRIVAL_S):
            request = await _receive(conn, reader, writer)
    except h11.RemoteProtocolError as e:
        if conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await _send(conn, writer, refuse(e.error_status_hint, f"malformed request: {e}", "BadRequest"), close=True)
        return False
    if request is None:
        return False
    if isinstance(request, Response):
        await _send(conn, writer, request, close=True)
        return False
    async with asyncio.timeout(ANSWER_S):
        response = await _answered(handler, request)
    await _send(conn, writer, response)
    return conn.our_state is h11.DONE and conn.their_state is h11.DONE


async def _answered(handler: Handler, request: Request) -> Response:
    try:
        return await handler(request)
    except QosError as e:
        return failure(e)
    except Exception as e:  # a fault of ours in one handler: the caller hears of it, the log too, and the agent goes on
        log.exception("request.failed", method=request.method, path=request.path)
        return refuse(500, f"{type(e).__name__}: {e}")


async def _receive(
    conn: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Request | Response | None:
    """The next request; a Response to refuse it with; None when the peer has no more."""
    head: h11.Request | None = None
    body = bytearray()
    while True:
        match conn.next_event():
            case h11.NEED_DATA:
                if conn.they_are_waiting_for_100_continue:
                    writer.write(conn.send(h11.InformationalResponse(status_code=100, headers=[])))
                async with asyncio.timeout(IDLE_S):
                    conn.receive_data(await reader.read(65536))
            case h11.Request() as head:
                pass
            case h11.Data() as data:
                body += data.data
                if len(body) > MOST_BODY:
                    return refuse(413, f"the body is larger than {MOST_BODY} bytes")
            case h11.EndOfMessage() if head is not None:
                return _request(head, bytes(body), writer.get_extra_info("socket"))
            case _:
                return None


def _request(head: h11.Request, body: bytes, sock: socket.socket) -> Request | Response:
    try:
        url = urlsplit(head.target.decode("ascii", "replace"))
    except ValueError as e:  # `//[x` is no address
        return refuse(400, f"malformed request: {e}")
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    return Request(head.method.decode("ascii"), unquote(url.path), query, headers, body, sock)


async def _send(conn: h11.Connection, writer: asyncio.StreamWriter, r: Response, *, close: bool = False) -> None:
    headers = [("content-type", r.content_type), ("content-length", str(len(r.body)))]
    if close:
        headers.append(("connection", "close"))
    parts = (h11.Response(status_code=r.status, headers=headers), h11.Data(data=r.body), h11.EndOfMessage())
    writer.write(b"".join(conn.send(part) or b"" for part in parts))  # one packet: the peer wakes up once
    async with asyncio.timeout(IDLE_S):
        await writer.drain()
