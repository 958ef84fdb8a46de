"""How one tree of queues is spelled for the kernel: qdisc, classes and filter of HTB. Rates in bytes per second."""

from __future__ import annotations

import math
import socket
import struct
from typing import Final

from j10ce.host.net.classes import FIRST as FIRST
from j10ce.host.net.classes import HANDLE as HANDLE
from j10ce.host.net.classes import MAJOR as MAJOR
from j10ce.host.net.netlink import CREATE, EXCLUSIVE, REPLACE, NetlinkRequest, attribute
from j10ce.host.net.queues import (
    DEL_CLASS,
    DEL_QUEUE,
    KIND,
    NEW_CLASS,
    NEW_FILTER,
    NEW_QUEUE,
    OPTIONS,
    ROOT,
    address,
)
from j10ce.model.machine.link import OPEN as OPEN_LINK

WHOLE: Final = 1  # the class of all that leaves
OTHERS: Final = 2  # of whoever has no class
SYSTEM: Final = 3  # of what must always pass, as far as its rate goes: neighbours, SSH
LAST: Final = 0xFFEF
OPEN: Final = int(OPEN_LINK) // 8  # of the whole, where nothing is divided
NO_FLOOR: Final = 16  # HTB has no class without a rate: 128 bit/s stand for none, which many may have of a slow link
NO_CEIL: Final = 1 << 37  # above every link: the class above limits
LEAST: Final = 1001  # of a floor, so that it is told from none, also from what stood for none before
OTHERS_SHARE, OTHERS_MOST = 0.01, 2_500_000
SYSTEM_SHARE, SYSTEM_MOST = 0.005, 1_250_000
OTHERS_PRIORITY: Final = 4
FILTER_PRIORITY: Final = 1
_U32: Final = 0xFFFF_FFFF
_ALL: Final = 0x0003  # ETH_P_ALL
_GLOB: Final = struct.Struct("=IIIII")
_OPT: Final = struct.Struct("=BBHhHIBBHhHIIIIII")
_ETHERNET: Final = 1
_TICKS: Final = 1e9 / 64  # of the packet scheduler, per second
_BURST_S: Final = 0.001
_LEAST_BURST: Final = 16_384
_TURN_S: Final = 0.005
LEAST_TURN, MOST_TURN = 3_200, 65_536  # two packets; what TCP hands over at once
_PACKET: Final = 1600


def handle(minor: int) -> int:
    return HANDLE | minor


def root(link: int) -> NetlinkRequest:
    options = attribute(2, _GLOB.pack(3, 10, OTHERS, 0, 0))
    body = address(link, HANDLE, ROOT) + attribute(KIND, b"htb\0") + attribute(OPTIONS, options)
    return NetlinkRequest(NEW_QUEUE, body, CREATE | EXCLUSIVE)


def no_root(link: int) -> NetlinkRequest:
    return NetlinkRequest(DEL_QUEUE, address(link, 0, ROOT))


def turn(rate: int) -> int:
    """Bytes that a class sends before the next of its level has its turn, in a tree of that rate: as many for each.

    HTB looks at it after a packet: where it is less than a packet, turns are packets, and who has larger ones has more.
    """
    return min(MOST_TURN, max(LEAST_TURN, int(rate * _TURN_S)))


def branch(
    link: int, minor: int, parent: int, rate: int, ceil: int, priority: int, *, most: int = LEAST_TURN
) -> NetlinkRequest:
    """A class, new or changed; the parent of one that is there stays as it was. `most`: of a turn."""
    rate, ceil = max(1, rate), max(1, ceil, rate)
    parms = _OPT.pack(
        *(0, _ETHERNET, 0, -1, 0, min(rate, _U32)),
        *(0, _ETHERNET, 0, -1, 0, min(ceil, _U32)),
        *(_burst(rate), _burst(ceil), most, 0, priority),
    )
    wide = b"".join(attribute(k, struct.pack("=Q", v)) for k, v in ((6, rate), (7, ceil)) if v > _U32)
    body = address(link, handle(minor), HANDLE | parent if parent else ROOT)
    body += attribute(KIND, b"htb\0") + attribute(OPTIONS, attribute(1, parms) + wide)
    return NetlinkRequest(NEW_CLASS, body, CREATE)


def no_branch(link: int, minor: int) -> NetlinkRequest:
    return NetlinkRequest(DEL_CLASS, address(link, handle(minor), 0))


def trunk(link: int, rate: int) -> list[NetlinkRequest]:
    """The three classes that every tree has.

    What must pass has its own rate before all others, and beyond it is served as others are: whoever likes may send to
    port 22.
    """
    others, system = (
        max(8_000, min(most, int(rate * share)))
        for share, most in ((OTHERS_SHARE, OTHERS_MOST), (SYSTEM_SHARE, SYSTEM_MOST))
    )
    return [
        branch(link, WHOLE, 0, rate, rate, 0),
        branch(link, OTHERS, WHOLE, others, NO_CEIL, OTHERS_PRIORITY, most=turn(rate)),
        branch(link, SYSTEM, WHOLE, system, NO_CEIL, OTHERS_PRIORITY, most=turn(rate)),
    ]


def chooser(link: int, program: int) -> NetlinkRequest:
    """The filter that asks the program; a new one takes the place of the old one at once."""
    options = attribute(6, struct.pack("=I", program)) + attribute(7, b"j10ce\0")
    info = FILTER_PRIORITY << 16 | socket.htons(_ALL)
    body = address(link, 1, HANDLE, info) + attribute(KIND, b"bpf\0") + attribute(OPTIONS, options)
    return NetlinkRequest(NEW_FILTER, body, CREATE | REPLACE)


def bytes_of(bits: float) -> int:
    """Per second; never more than was asked for, but for the least that can be told from nothing."""
    return NO_CEIL if bits == math.inf else int(bits) // 8


def _burst(rate: int) -> int:
    """What may leave at once, in ticks of the time that it takes: a millisecond's worth, a large packet at least."""
    least = _LEAST_BURST if rate >= LEAST else _PACKET  # of many without a floor, each had as much at once
    return min(_U32, int(max(least, rate * _BURST_S) / rate * _TICKS))
