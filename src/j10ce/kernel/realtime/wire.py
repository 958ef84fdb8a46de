"""What agent and keeper say to each other: one packet each, fields apart by NUL, which no path of the kernel has.

agent → keeper   BEAT                              I live
                 KEEP key rate share top threads usage per_cpu
                 DROP key                          answered when its threads are fair
keeper → agent   BEAT
                 STATE key real-time spinners refused
                 DROPPED key                       asked for, or the workload is gone
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, TypeAlias

BEAT: Final = "beat"
KEEP: Final = "keep"
DROP: Final = "drop"
STATE: Final = "state"
DROPPED: Final = "dropped"
MOST: Final = 1 << 16
_AT_ONCE: Final = int(socket.MSG_DONTWAIT)  # plain numbers: flags of an enumeration are slow to join
_QUIETLY: Final = int(socket.MSG_DONTWAIT) | int(socket.MSG_NOSIGNAL)
Peer: TypeAlias = socket.socket


class Ended(Exception):
    """The other side is gone."""


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(peer: socket.socket, *fields: str) -> None:
    """Never waits: a peer that does not read is judged by its silence."""
    with suppress(BlockingIOError):
        try:
            peer.send("\0".join(fields).encode(errors="surrogateescape"), _QUIETLY)
        except OSError as e:
            if isinstance(e, BlockingIOError):
                raise
            raise Ended from e


def receive(peer: socket.socket) -> Iterator[list[str]]:
    """All that has come."""
    while True:
        try:
            packet = peer.recv(MOST, _AT_ONCE)
        except BlockingIOError:
            return
        except OSError as e:
            raise Ended from e
        if not packet:
            raise Ended
        yield packet.decode(errors="surrogateescape").split("\0")
