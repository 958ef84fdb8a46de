"""Bytes to a server as they are, whatever they are."""

from __future__ import annotations

import socket
from pathlib import Path

PATIENCE_S = 150.0

Address = Path | tuple[str, int]


def connect(address: Address) -> socket.socket:
    family = socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET
    sock = socket.socket(family)
    sock.settimeout(PATIENCE_S)
    sock.connect(str(address) if isinstance(address, Path) else address)
    return sock


def talk(address: Address, data: bytes) -> bytes:
    """What comes back to `data` with nothing behind it; a server that hangs up early is no error."""
    with connect(address) as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return drain(sock)


def drain(sock: socket.socket) -> bytes:
    """Everything until the other side closes."""
    received = b""
    try:
        while chunk := sock.recv(65536):
            received += chunk
    except ConnectionError:
        pass
    return received
