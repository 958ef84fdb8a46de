"""A real redis-server of the run's own, on a socket of its own and without files; it ends with who started it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from j10ce.bench.crowd.mortal import dying_by
from j10ce.host import child

PROGRAM: Final = "redis-server"
KEY: Final = "j10ceprove"
LENGTH: Final = 1000  # of the list that is asked for
ASKED: Final = ("LRANGE", KEY, "0", "-1")
START_S: Final = 20.0
_PATIENCE_S: Final = 30.0
_STEP_S: Final = 0.02


def program() -> str | None:
    """Where it is; not where somebody's PATH says, for it is run as root."""
    return shutil.which(PROGRAM, path=child.PATH)


@contextmanager
def started(at: str) -> Iterator[None]:
    """It serves at that socket, and has its list."""
    words = [program() or PROGRAM, "--port", "0", "--unixsocket", at, "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=child.FOLDER,
        env=child.environ(os.environ), preexec_fn=dying_by(signal.SIGKILL),
    )  # fmt: skip
    try:
        _fill(server, at)
        yield
    finally:
        server.kill()
        server.wait()


def _fill(server: subprocess.Popen[bytes], at: str) -> None:
    ends = time.monotonic() + START_S
    while server.poll() is None and time.monotonic() < ends:
        with suppress(FileNotFoundError, ConnectionRefusedError), connected(at) as peer:
            peer.sendall(command("DEL", KEY) + command("RPUSH", KEY, *map(str, range(LENGTH))))
            _numbers(peer, 2)
            return
        time.sleep(_STEP_S)
    raise ConnectionError(f"{PROGRAM} did not start: exit code {server.poll()}")


def connected(at: str) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(_PATIENCE_S)
    peer.connect(at)
    return peer


def command(*words: str) -> bytes:
    """As redis reads it."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words)


def _numbers(peer: socket.socket, answers: int) -> None:
    said = b""
    while said.count(b"\r\n") < answers:
        said += _more(peer)
    if said[:1] != b":":
        raise ConnectionError(f"{PROGRAM} answered {said!r}")


def asked(peer: socket.socket, length: int) -> None:
    """For the list: so many bytes."""
    left = length
    while left:
        left -= len(_more(peer, left))


def length() -> int:
    """Of the answer."""
    return len(b"*%d\r\n" % LENGTH) + sum(len(b"$%d\r\n%d\r\n" % (len(str(n)), n)) for n in range(LENGTH))


def _more(peer: socket.socket, most: int = 1 << 16) -> bytes:
    if not (got := peer.recv(most)):
        raise ConnectionError(f"{PROGRAM} hung up")
    return got
