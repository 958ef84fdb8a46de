"""Those who compete with the service, as one process and its children. Standard library only.

    python -m j10ce.bench.crowd.antagonist PARENT KIND COUNT [AT]

`ready` and the process ids of COUNT children are printed first; they wait for a line on standard input, so that each
can be put where it belongs.

    spinner   wants a CPU all the time
    waker     sleeps and wakes thousands of times a second
    forker    makes short-lived children as fast as it can
    sender    sends all it can to a peer at the other end of a link, which AT names
    writer    writes a disk beside the page cache: AT is PATH, FIRST and BYTES of what is its
    eater     reads them by the page cache, so that memory is full of them
"""

from __future__ import annotations

import mmap
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from j10ce.bench.crowd.mortal import mortal

BULK_PORT: Final = 7001
LONG: Final = 1 << 20  # bytes at once
NAP_S: Final = 0.0002
BRIEF_S: Final = 0.0001  # on a CPU, between two naps


def spin(at: str) -> NoReturn:
    while True:
        pass


def wake(at: str) -> NoReturn:
    sleep, cpu = time.sleep, time.thread_time
    while True:
        until = cpu() + BRIEF_S
        while cpu() < until:
            pass
        sleep(NAP_S)


def fork(at: str) -> NoReturn:
    while True:
        if pid := os.fork():
            os.waitpid(pid, 0)
        else:
            os._exit(0)


def send(at: str) -> NoReturn:
    peer, bulk = socket.create_connection((at, BULK_PORT)), bytes(LONG)
    while True:
        peer.sendall(bulk)


def write(at: str) -> NoReturn:
    path, first, size = at.rsplit(":", 2)
    fd, bulk = os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC), mmap.mmap(-1, LONG)
    bulk[:] = os.urandom(LONG)
    while True:
        for offset in range(int(first), int(first) + int(size), LONG):
            os.pwrite(fd, bulk, offset)


def eat(at: str) -> NoReturn:
    path, first, size = at.rsplit(":", 2)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    while True:
        for offset in range(int(first), int(first) + int(size), LONG):
            os.pread(fd, LONG, offset)


KINDS: Final[Mapping[str, Callable[[str], NoReturn]]] = {
    "spinner": spin,
    "waker": wake,
    "forker": fork,
    "sender": send,
    "writer": write,
    "eater": eat,
}


def main() -> int:
    mortal(int(sys.argv[1]))
    compete, count, at = KINDS[sys.argv[2]], int(sys.argv[3]), "".join(sys.argv[4:])
    gate = os.pipe()
    me = os.getpid()
    pids = [_fork(lambda: compete(at), me, gate) for _ in range(count)]
    print("ready", *pids, flush=True)
    if sys.stdin.readline():
        os.write(gate[1], b"!" * count)
        os.close(gate[1])
        os.waitpid(-1, 0)
    return 0


def _fork(compete: Callable[[], NoReturn], parent: int, gate: tuple[int, int]) -> int:
    if pid := os.fork():
        return pid
    try:
        mortal(parent)
        os.close(gate[1])
        if os.read(gate[0], 1):
            compete()
    finally:
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
