"""What one request of the service does: burn CPU time, or ask somebody and wait for the answer.

cpu     burns so many µs
rpc     sends a hundred bytes to a peer at the other end of a link, and reads as many
read    reads a block somewhere on a disk, beside the page cache
pages   reads blocks of a file by the page cache
redis   has a redis-server do something with a list
"""

from __future__ import annotations

import mmap
import os
import random
import socket
import time
from collections.abc import Callable, Mapping
from typing import Final

from j10ce.bench.crowd import redis

RPC_PORT: Final = 7002
SMALL: Final = 100  # bytes there and back
BLOCK: Final = 4096
PAGES: Final = 16  # of one request
_PATIENCE_S: Final = 30.0

Request = Callable[[], None]


def burning(at: str, cpu_s: float) -> Request:
    """`at`: nothing."""
    cpu = time.thread_time

    def burn() -> None:
        until = cpu() + cpu_s
        while cpu() < until:
            pass

    return burn


def calling(at: str, cpu_s: float) -> Request:
    """`at`: the address of the peer."""
    peer, asked = socket.create_connection((at, RPC_PORT), _PATIENCE_S), bytes(SMALL)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call() -> None:
        peer.sendall(asked)
        left = SMALL
        while left:
            if not (got := len(peer.recv(left))):
                raise ConnectionError("the peer hung up")
            left -= got

    return call


def reading(at: str, cpu_s: float) -> Request:
    """`at`: PATH, FIRST and BYTES of what is read."""
    fd, first, blocks = _opened(at, os.O_DIRECT)
    page, chance, read = [mmap.mmap(-1, BLOCK)], random.Random(os.getpid()), os.preadv
    return lambda: _whole(read(fd, page, first + chance.randrange(blocks) * BLOCK))


def paging(at: str, cpu_s: float) -> Request:
    """As `reading`, some blocks and those that memory has already from there."""
    fd, first, blocks = _opened(at, 0)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    chance, read = random.Random(os.getpid()), os.pread

    def page() -> None:
        for _ in range(PAGES):
            _whole(len(read(fd, BLOCK, first + chance.randrange(blocks) * BLOCK)))

    return page


def asking(at: str, cpu_s: float) -> Request:
    """`at`: the socket of a redis-server."""
    peer, words, length = redis.connected(at), redis.command(*redis.ASKED), redis.length()

    def ask() -> None:
        peer.sendall(words)
        redis.asked(peer, length)

    return ask


def _opened(at: str, flags: int) -> tuple[int, int, int]:
    path, first, size = at.rsplit(":", 2)
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags), int(first), int(size) // BLOCK


def _whole(read: int) -> None:
    if read != BLOCK:
        raise OSError(f"{read} of {BLOCK} bytes were read")


KINDS: Final[Mapping[str, Callable[[str, float], Request]]] = {
    "cpu": burning,
    "rpc": calling,
    "read": reading,
    "pages": paging,
    "redis": asking,
}
