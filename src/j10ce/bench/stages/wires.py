"""Network namespaces, and what is in them: pairs of links, addresses, ways, a queue that is full sooner or later."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from j10ce.bench.crowd.far import NEWNET
from j10ce.errors import Unsupported
from j10ce.host.net import queues
from j10ce.host.net.links import LINK, NEW_LINK, ROUTE
from j10ce.host.net.netlink import CREATE, EXCLUSIVE, Netlink, NetlinkRequest, attribute
from j10ce.host.net.queues import KIND, NEW_QUEUE, OPTIONS, address
from j10ce.kernel.net import htb

LO: Final = 1  # the first link of every namespace
HERE: Final = "/proc/self/ns/net"
_NEW_ADDRESS, _NEW_ROUTE = 20, 24
_UP: Final = 1
_NAME, _INFO, _NAMESPACE_OF = 3, 18, 19
_PEER: Final = 1
_ADDRESS: Final = struct.Struct("=BBBBI")
_LOCAL: Final = 2
_OUT, _GATEWAY = 4, 5
_MAIN, _STATIC, _UNICAST = 254, 4, 1
_BITS: Final = 30
_BY_FAMILY, _CONFIGURED, _FORWARDING = 26, 1, 1
_QUEUE: Final = 0x10_0000


@contextmanager
def own_namespace() -> Iterator[None]:
    """This thread, and what it starts, are in a network namespace of their own."""
    before = os.open(HERE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc().unshare(NEWNET):
            raise Unsupported(f"a network namespace ({os.strerror(ctypes.get_errno())})", needs="CAP_SYS_ADMIN")
        try:
            yield
        finally:
            _enter(before)
    finally:
        os.close(before)


class Wires:
    """What a namespace has, made by requests to the kernel; each raises Unsupported where it does not want to."""

    def __init__(self, pid: int = 0) -> None:
        """Of this process, or of another."""
        self._pid = pid
        with self._inside():
            self._netlink = Netlink()
        self._ask([NetlinkRequest(NEW_LINK, LINK.pack(0, 0, LO, _UP, _UP))])

    def pair(self, name: str, pid: int) -> None:
        """A link here, and one of the same name in the namespace of a process."""
        peer = LINK.pack(0, 0, 0, 0, 0) + attribute(_NAME, _text(name)) + attribute(_NAMESPACE_OF, _number(pid))
        info = attribute(1, _text("veth")) + attribute(2, attribute(_PEER, peer))
        body = LINK.pack(0, 0, 0, 0, 0) + attribute(_NAME, _text(name)) + attribute(_INFO, info)
        self._ask([NetlinkRequest(NEW_LINK, body, CREATE | EXCLUSIVE)])

    def address(self, name: str, ip: str) -> None:
        """One of two on that link, which is up then."""
        at, index = socket.inet_aton(ip), self.index(name)
        body = _ADDRESS.pack(socket.AF_INET, _BITS, 0, 0, index) + attribute(_LOCAL, at) + attribute(1, at)
        up = NetlinkRequest(NEW_LINK, LINK.pack(0, 0, index, _UP, _UP))
        self._ask([up, NetlinkRequest(_NEW_ADDRESS, body, CREATE | EXCLUSIVE)])

    def way(self, name: str, gateway: str) -> None:
        """To everywhere."""
        body = ROUTE.pack(socket.AF_INET, 0, 0, 0, _MAIN, _STATIC, 0, _UNICAST, 0)
        body += attribute(_OUT, _number(self.index(name))) + attribute(_GATEWAY, socket.inet_aton(gateway))
        self._ask([NetlinkRequest(_NEW_ROUTE, body, CREATE | EXCLUSIVE)])

    def forward(self, name: str) -> None:
        """What comes in by a link and is for others."""
        forwarding = attribute(_CONFIGURED, attribute(_FORWARDING, _number(1)))
        body = LINK.pack(0, 0, self.index(name), 0, 0)
        body += attribute(_BY_FAMILY, attribute(socket.AF_INET, forwarding))
        self._ask([NetlinkRequest(NEW_LINK, body)])

    def narrow(self, name: str, rate: int, waiting: int) -> None:
        """What leaves by a link: so many bytes a second in their order, and so many bytes may wait."""
        index = self.index(name)
        queue = address(index, _QUEUE, htb.handle(htb.OTHERS)) + attribute(KIND, b"bfifo\0")
        self._ask(
            [
                htb.root(index),
                htb.branch(index, htb.WHOLE, 0, rate, rate, 0),
                htb.branch(index, htb.OTHERS, htb.WHOLE, rate, rate, 0),
                NetlinkRequest(NEW_QUEUE, queue + attribute(OPTIONS, _number(waiting)), CREATE | EXCLUSIVE),
            ]
        )

    def sent(self, name: str) -> int:
        """Bytes that have left by a link that is narrow."""
        roots = (q for q in queues.qdiscs(self._netlink, self.index(name)) if q.parent == queues.ROOT)
        return sum(queues.counted(root).sent for root in roots)

    def index(self, name: str) -> int:
        with self._inside():
            return socket.if_nametoindex(name)

    def _ask(self, requests: Sequence[NetlinkRequest]) -> None:
        refused = [answer for answer in self._netlink.ask(requests) if answer.code]
        if refused:
            raise Unsupported(f"links and queues of this run ({refused[0]})", needs="veth and CONFIG_NET_SCH_HTB")

    @contextmanager
    def _inside(self) -> Iterator[None]:
        if not self._pid:
            yield
            return
        here, there = (os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in (HERE, f"/proc/{self._pid}/ns/net"))
        try:
            _enter(there)
            yield
        finally:
            _enter(here)
            os.close(here)
            os.close(there)


def _enter(namespace: int) -> None:
    if _libc().setns(namespace, NEWNET):
        raise OSError(ctypes.get_errno(), "a network namespace cannot be entered")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _text(name: str) -> bytes:
    return name.encode() + b"\0"


def _number(value: int) -> bytes:
    return struct.pack("=I", value)
