"""Readiness and life signs as systemd, and `j10ce-qos` itself, wait for them."""

from __future__ import annotations

import socket


def notify(address: str, *lines: str) -> None:
    """Send `READY=1`, `STOPPING=1`, `WATCHDOG=1`…; without an address nobody listens."""
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as s:
        try:
            s.sendto("\n".join(lines).encode(), "\0" + address[1:] if address.startswith("@") else address)
        except OSError:
            return  # the listener went away; it is no longer interested
