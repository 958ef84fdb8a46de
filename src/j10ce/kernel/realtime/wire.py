"""What agent and keeper say to each other: one packet each, fields apart by NUL, which no path of the kernel has.

agent → keeper   BEAT                              I live
                 KEEP key rate top threads usage per_cpu
                 DROP key                          answered when its threads are fair
keeper → agent   BEAT
                 STATE key real-time spinners refused
                 DROPPED key                       asked for, or the workload is gone
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

BEAT: Final = "beat"
KEEP: Final = "keep"
DROP: Final = "drop"
STATE: Final = "state"
DROPPED: Final = "dropped"
MOST: Final = 1 << 16


class Ended(Exception):
    """The other side is gone."""


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(peer: socket.socket, *fields: str) -> None:
    """Never waits: a peer that does not read is judged by its silence."""
    with suppress(BlockingIOError):
        try:
            peer.send("\0".join(fields).encode(errors="surrogateescape"), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError as e:
            if isinstance(e, BlockingIOError):
                raise
            raise Ended from e


def receive(peer: socket.socket) -> Iterator[list[str]]:
    """All that has come."""
    while True:
        try:
            packet = peer.recv(MOST, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError as e:
            raise Ended from e
        if not packet:
            raise Ended
        yield packet.decode(errors="surrogateescape").split("\0")
