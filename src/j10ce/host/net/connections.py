"""TCP connections, whose they are, and how they fare: from the kernel (sock_diag), which knows the cgroup of each."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Final, NamedTuple

from j10ce.errors import Corrupt, Unsupported
from j10ce.host.net.netlink import SOCK_DIAG, Netlink, attributes, number

_BY_FAMILY: Final = 20
_REQUEST: Final = struct.Struct("=BBBxI48x")  # family, protocol, what more is said, states; then which socket: any
_HEAD: Final = struct.Struct("=BBBB")  # family, state, timer, retransmits
_ADDRESSES: Final = slice(8, 40)  # of both ends, after the ports
_COOKIE: Final = slice(44, 52)
_SIZE: Final = 72
_INFO, _CGROUP = 2, 21
_MORE: Final = 1 << (_INFO - 1)
_ESTABLISHED: Final = 1 << 1
_RTT, _RETRANSMITS = 68, 100  # in tcp_info
_LOOPBACK4: Final = 127
_LOOPBACK6: Final = bytes(15) + b"\1"
_NEWNET: Final = 0x4000_0000


class TcpConnection(NamedTuple):
    cookie: bytes  # no other socket has it while this machine runs
    cgroup: int
    rtt_us: int  # smoothed
    retransmits: int  # segments that were sent again, ever


def connections(netlink: Netlink) -> Iterator[TcpConnection]:
    """Those of the network namespace that `netlink` was opened in, without those of the machine with itself.

    Linux 5.8 says the cgroup; OSError as the kernel says, Corrupt for what none sends.
    """
    for family in (socket.AF_INET, socket.AF_INET6):
        request = _REQUEST.pack(family, socket.IPPROTO_TCP, _MORE, _ESTABLISHED)
        for m in netlink.dump(_BY_FAMILY, request):
            if (read := connection(m.body)) is not None:
                yield read


def connection(body: bytes) -> TcpConnection | None:
    """None for one of the machine with itself, and where the kernel does not tell whose it is."""
    if len(body) < _SIZE:
        raise Corrupt(f"netlink: a connection of {len(body)} bytes")
    family, *_ = _HEAD.unpack_from(body)
    here, there = body[_ADDRESSES][:16], body[_ADDRESSES][16:]
    if here in (there, _LOOPBACK6) or (family == socket.AF_INET and here[0] == _LOOPBACK4):
        return None
    about = dict(attributes(body, _SIZE))
    info, cgroup = about.get(_INFO, b""), about.get(_CGROUP, b"")
    if len(info) < _RETRANSMITS + 4 or not cgroup:
        return None
    rtt, again = number(info[_RTT : _RTT + 4]), number(info[_RETRANSMITS : _RETRANSMITS + 4])
    return TcpConnection(body[_COOKIE], number(cgroup), rtt, again)


def here() -> Netlink:
    """Raises Unsupported where sockets cannot be asked about."""
    return Netlink(SOCK_DIAG)


def inside(namespace: str) -> Netlink:
    """`namespace`: its file. By a thread that ends, since only whoever asks is moved; raises OSError, Unsupported."""
    fd = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    opened: list[Netlink | Unsupported | OSError] = []

    def enter() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(fd, _NEWNET):
            opened.append(OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno())))
            return
        try:
            opened.append(here())
        except (Unsupported, OSError) as e:
            opened.append(e)

    try:
        thread = threading.Thread(target=enter, name="netns")
        thread.start()
        thread.join()
    finally:
        os.close(fd)
    if isinstance(opened[0], Netlink):
        return opened[0]
    raise opened[0]
