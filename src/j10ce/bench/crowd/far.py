"""Who is at the other end of a link: answers small requests, and swallows what others send. Standard library only.

    python -m j10ce.bench.crowd.far PARENT

`ready` is printed as soon as it is in a network namespace of its own. A line on standard input is the address at which
it is to serve; then `ready` is said again.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from j10ce.bench.crowd.antagonist import BULK_PORT
from j10ce.bench.crowd.mortal import mortal
from j10ce.bench.crowd.requests import RPC_PORT, SMALL

NEWNET: Final = 0x4000_0000
_MOST: Final = 1 << 20
_BACKLOG: Final = 64
Serve = Callable[[socket.socket], None]


def main() -> int:
    mortal(int(sys.argv[1]))
    if ctypes.CDLL(None, use_errno=True).unshare(NEWNET):
        print(f"no network namespace of its own: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
        return 1
    print("ready", flush=True)
    address = sys.stdin.readline().strip()
    if not address:
        return 0
    served = [(socket.create_server((address, p), backlog=_BACKLOG), f) for p, f in SERVED.items()]
    for listening, serve in served:
        _fork(listening, serve, os.getpid())
    print("ready", flush=True)
    os.waitpid(-1, 0)
    return 1


def answer(peer: socket.socket) -> None:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while asked := peer.recv(SMALL):
        peer.sendall(asked)


def swallow(peer: socket.socket) -> None:
    while peer.recv(_MOST):
        pass


SERVED: Final[Mapping[int, Serve]] = {RPC_PORT: answer, BULK_PORT: swallow}


def _fork(listening: socket.socket, serve: Serve, parent: int) -> None:
    """A process for each: threads of one interpreter take turns."""
    if os.fork():
        return
    try:
        mortal(parent)
        while True:
            peer, _ = listening.accept()
            threading.Thread(target=_served, args=(peer, serve), daemon=True).start()
    finally:
        os._exit(1)


def _served(peer: socket.socket, serve: Serve) -> None:
    with peer, suppress(ConnectionError):
        serve(peer)


if __name__ == "__main__":
    sys.exit(main())
