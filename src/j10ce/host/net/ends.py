"""Who is at the other end of a link that leads into another network namespace: its addresses there.

The kernel tells them from here, by the number that this namespace has for that one: nobody has to enter it, and no
process of it has to be known.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from j10ce.host.net.netlink import Message, Netlink, attribute, attributes

_NEW_ADDRESS: Final = 20
_GET_ADDRESS: Final = 22
_HEADER: Final = struct.Struct("=BBBBI")  # family, bits, flags, scope, link
_ADDRESS, _LOCAL, _NAMESPACE = 1, 2, 10
_EVERYWHERE: Final = 0  # scope of an address that others may know


class FarEnd(NamedTuple):
    namespace: int  # as this one counts them
    link: int


Beyond = Mapping[int, tuple[str, ...]]  # by link here


class FarEnds:
    """What is known is kept as long as the link is there; a link without an address is asked about again."""

    def __init__(self) -> None:
        self._netlink = Netlink(strict=True)
        self._known: dict[tuple[int, FarEnd], tuple[str, ...]] = {}

    def of(self, ends: Mapping[int, FarEnd]) -> Beyond:
        kept = {key: a for key, a in self._known.items() if ends.get(key[0]) == key[1]}
        missing = [(here, end) for here, end in ends.items() if not kept.get((here, end))]
        kept |= {(here, end): self._addresses(end) for here, end in missing}
        self._known = kept
        return {here: addresses for (here, _), addresses in kept.items() if addresses}

    def _addresses(self, end: FarEnd) -> tuple[str, ...]:
        every: list[str] = []
        for family in (socket.AF_INET, socket.AF_INET6):
            body = _HEADER.pack(family, 0, 0, 0, end.link) + attribute(_NAMESPACE, struct.pack("=i", end.namespace))
            try:
                every += addresses(self._netlink.dump(_GET_ADDRESS, body), end.link)
            except OSError:  # it is gone, it is not ours to look into, or the kernel is older than 5.0
                continue
        return tuple(every)


def addresses(heard: Iterable[Message], link: int) -> list[str]:
    """Of one link, as people write them."""
    out = []
    for m in heard:
        if m.kind != _NEW_ADDRESS or len(m.body) < _HEADER.size:
            continue
        family, _, _, scope, index = _HEADER.unpack_from(m.body)
        about = dict(attributes(m.body, _HEADER.size))
        held = about.get(_LOCAL) or about.get(_ADDRESS, b"")
        if index == link and scope == _EVERYWHERE and len(held) == (4 if family == socket.AF_INET else 16):
            out.append(socket.inet_ntop(family, held))
    return out
