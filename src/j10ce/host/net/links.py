"""Which links there are, what each carries, and by which the rest of the world is reached.

Nothing is polled: the kernel says that something has changed, and only then all is read again, once a tick at most.
"""

from __future__ import annotations

import array
import fcntl
import math
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final
from weakref import finalize

from msgspec.structs import replace

from j10ce.errors import Corrupt, Unsupported
from j10ce.host.net.ends import Beyond, FarEnd, FarEnds
from j10ce.host.net.netlink import (
    GROUP_LINK,
    GROUP_ROUTE4,
    GROUP_ROUTE6,
    Message,
    Netlink,
    NetlinkWatch,
    attributes,
    number,
    text,
)
from j10ce.model.machine.link import PAIRS, Link

NEW_LINK: Final = 16
GET_LINK: Final = 18
_NEW_ROUTE: Final = 24
GET_ROUTE: Final = 26
LINK: Final = struct.Struct("=BxHiII")  # family, type, index, flags, change
ROUTE: Final = struct.Struct("=BBBBBBBBI")  # family, bits of the destination, …, type, flags
GET_NEIGHBOUR: Final = 30
NEIGHBOUR: Final = struct.Struct("=BxxxiHBB")  # family, link, state, flags, type
_HOP: Final = struct.Struct("=HBBi")
_LOOPBACK: Final = 772
_UP: Final = 1
_UNICAST: Final = 1
_MAIN: Final = 254
_ADDRESS, _NAME, _MTU, _LINK, _INFO, _NAMESPACE = 1, 3, 4, 5, 18, 37
_KIND: Final = 1
_OUT, _GATEWAY, _PATHS, _TABLE = 4, 5, 9, 15
OURS: Final = "j10ce-"  # what our own links are called
# Made of nothing but software: the speed that such a link names was never anybody's.
MADE_UP: Final = frozenset(("veth", "bridge", "tun", "tap", "ifb", "dummy", "netkit", "vxlan", "geneve", "wireguard"))
PATIENCE: Final = 60  # looks: whoever makes such a pair gives it its addresses within seconds
_MEGA: Final = 1_000_000
_ETHTOOL: Final = 0x8946  # SIOCETHTOOL
_SETTINGS: Final = 0x1  # ETHTOOL_GSET
_UNKNOWN: Final = (0, 0xFFFF, 0xFFFF_FFFF)

Speed = Callable[[str], float]  # bits per second by name; infinite: not known


def links(
    present: Iterable[Message], routes: Iterable[Message], speed: Speed, beyond: Beyond | None = None
) -> dict[str, Link]:
    """Those that are up, without `lo` and our own, by name; raises Corrupt for what no kernel sends."""
    ways, known = frozenset(index for m in routes for _, index, _ in gateways(m)), beyond or {}
    read = (_link(m.body, ways, speed) for m in present if m.kind == NEW_LINK)
    here = (link for link in read if link is not None)
    return {k.name: replace(k, beyond=known[k.index]) if k.index in known else k for k in here}


def far_ends(present: Iterable[Message]) -> dict[int, FarEnd]:
    """Of the pairs of links whose other one is in another network namespace."""
    out = {}
    for m in present:
        if m.kind != NEW_LINK or len(m.body) < LINK.size:
            continue
        about = dict(attributes(m.body, LINK.size))
        made = text(dict(attributes(about.get(_INFO, b""))).get(_KIND, b""))
        if made in PAIRS and _LINK in about and _NAMESPACE in about:
            out[LINK.unpack_from(m.body)[2]] = FarEnd(number(about[_NAMESPACE]), number(about[_LINK]))
    return out


def _link(body: bytes, ways: frozenset[int], speed: Speed) -> Link | None:
    if len(body) < LINK.size:
        raise Corrupt(f"netlink: a link of {len(body)} bytes")
    _, kind, index, flags, _ = LINK.unpack_from(body)
    about = dict(attributes(body, LINK.size))
    name = text(about.get(_NAME, b""))
    if not name or kind == _LOOPBACK or not flags & _UP or name.startswith(OURS):
        return None
    made = text(dict(attributes(about.get(_INFO, b""))).get(_KIND, b""))
    return Link(
        name=name,
        index=index,
        speed=math.inf if made in MADE_UP else speed(name),
        managed=index in ways,
        kind=made,
        mac=about.get(_ADDRESS, b"").hex(":"),
        mtu=number(about.get(_MTU, b"")) or 1500,
        routes=index in ways,
    )


def gateways(m: Message) -> Iterator[tuple[int, int, bytes]]:
    """(family, link, address) of each way of a route that leads to everywhere; the address is empty without a gateway.

    None for a route to somewhere.
    """
    if m.kind != _NEW_ROUTE:
        return
    if len(m.body) < ROUTE.size:
        raise Corrupt(f"netlink: a route of {len(m.body)} bytes")
    fields = ROUTE.unpack_from(m.body)
    if fields[1] or fields[7] != _UNICAST:
        return
    about = dict(attributes(m.body, ROUTE.size))
    if number(about.get(_TABLE, bytes([fields[4]]))) != _MAIN:
        return
    if _OUT in about:
        yield fields[0], number(about[_OUT]), about.get(_GATEWAY, b"")
    for index, gateway in _hops(about.get(_PATHS, b"")):
        yield fields[0], index, gateway


def _hops(paths: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while len(paths) - at >= _HOP.size:
        length, _, _, index = _HOP.unpack_from(paths, at)
        if not _HOP.size <= length <= len(paths) - at:
            raise Corrupt(f"netlink: a hop of {length} bytes")
        yield index, dict(attributes(paths[at + _HOP.size : at + length])).get(_GATEWAY, b"")
        at += (length + 3) & ~3


def _named(present: Iterable[Message]) -> Iterator[tuple[int, str]]:
    for m in present:
        if m.kind == NEW_LINK and len(m.body) >= LINK.size:
            yield LINK.unpack_from(m.body)[2], text(dict(attributes(m.body, LINK.size)).get(_NAME, b""))


class LinkTable:
    """The links of one network namespace: the one that it was made in. Used from one thread."""

    def __init__(self, ends: FarEnds | None = None) -> None:
        """Raises Unsupported where there is no rtnetlink. `ends`: whoever finds out what is at the other ends."""
        self._netlink = Netlink()
        self._ends = ends
        self._again = 0  # looks for addresses at other ends that had none when something last changed
        self._watch = NetlinkWatch(GROUP_LINK | GROUP_ROUTE4 | GROUP_ROUTE6)
        self._wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._end = finalize(self, self._wire.close)
        self._known: Mapping[str, Link] | None = None
        self.names: Mapping[int, str] = {}  # by index, of those that are down as well

    def now(self) -> Mapping[str, Link]:
        """The same object until something has changed; what cannot be read for the moment stays as it was."""
        try:
            changed = bool(self._watch.heard())
        except OSError:  # more than the kernel kept for us: whatever it was, look again
            changed = True
        if self._known is None or changed:
            self._again = PATIENCE
            self._look()
        elif self._again:
            self._look()
        return self._known or {}

    def _look(self) -> None:
        try:
            every = self._netlink.dump(GET_LINK, LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0))
            routes = self._netlink.dump(GET_ROUTE, ROUTE.pack(socket.AF_UNSPEC, 0, 0, 0, 0, 0, 0, 0, 0))
        except OSError:
            return
        ends = far_ends(every) if self._ends else {}
        beyond = self._ends.of(ends) if self._ends else {}
        self._again = self._again - 1 if ends.keys() - beyond.keys() else 0
        present = links(every, routes, self._speed, beyond)
        self.names = dict(_named(every))
        if present != self._known:
            self._known = present

    def _speed(self, name: str) -> float:
        """As the driver says it; most virtual ones do not know."""
        about = array.array("B", struct.pack("=I40x", _SETTINGS))
        address, _ = about.buffer_info()
        try:
            fcntl.ioctl(self._wire, _ETHTOOL, struct.pack("16sP16x", name.encode()[:15], address))
        except OSError:
            return math.inf
        low, high = struct.unpack_from("=H", about, 12)[0], struct.unpack_from("=H", about, 28)[0]
        said = high << 16 | low
        return math.inf if said in _UNKNOWN else float(said * _MEGA)


def table(*, ends: bool = False) -> LinkTable | None:
    """Of where this process is; None where nothing can be known of links. `ends`: with what is at the other ends."""
    try:
        return LinkTable(FarEnds() if ends else None)
    except (Unsupported, OSError):
        return None
