"""The program at a door that stamps what comes out of there with the door's number.

The stamp is `tc_index`, which translation of addresses, bridges, routing and tunnels leave alone, and which nobody but
a few programs of packet schedulers uses: marks belong to CNIs, and a priority is written anew where a packet is routed.
Other programs at the door stay as they are, and see each packet after ours.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import Final

from j10ce.host.net import bpf, queues
from j10ce.host.net.netlink import CREATE, EXCLUSIVE, Netlink, NetlinkRequest, attribute
from j10ce.host.net.queues import (
    AT_EGRESS,
    AT_INGRESS,
    DEL_FILTER,
    DEL_QUEUE,
    INGRESS,
    KIND,
    NEW_FILTER,
    NEW_QUEUE,
    OPTIONS,
    LinkQueue,
    address,
)
from j10ce.kernel.net.program import R1, R2, STAMPED, TC_INDEX, Instructions
from j10ce.model.plan import Refused

TURN: Final = 0x10CE  # priority of our filter: before those whose makers leave it to the kernel to choose one
OURS: Final = 0x8000  # in every stamp: other users of the field count from 1
NAME, NAME_WITH_HOOK = "j10ce_stamp", "j10ce_stamp_hook"  # the latter: the place where it hangs is ours, too
NAMES: Final = (NAME, NAME_WITH_HOOK)
_NEXT: Final = -1  # TC_ACT_UNSPEC: whoever is next decides
_ALL: Final = 0x0003
_HOOKS: Final = 0xFFFF_0000
_INFO: Final = TURN << 16 | socket.htons(_ALL)


def stamp_of(door: int) -> int:
    """Of a link's number; it is that number itself until a machine has had 32 767 links."""
    return OURS | door & (OURS - 1)


def keys(door: int) -> tuple[int, int]:
    """By what packets from there are known: the link that they came in by, and their stamp."""
    return door, STAMPED & 0xFFFF_FFFF | stamp_of(door)


def program(door: int) -> bytes:
    code = Instructions()
    code.put(R2, stamp_of(door))
    code.store_as("W", R1, R2, TC_INDEX)
    code.answer(_NEXT)
    return code.bytes()


def stamped(netlink: Netlink, door: int) -> bool:
    return _ours(netlink, door) is not None


def stamp(netlink: Netlink, door: int, *, heir: bool = False) -> Refused | None:
    """Whoever is killed meanwhile has done all of it or nothing. `heir`: the place where it hangs is ours already."""
    made = heir or not any(q.parent == INGRESS for q in queues.qdiscs(netlink, door))
    fd = bpf.load(NAME, program(door))
    try:
        name = NAME_WITH_HOOK if made else NAME
        options = attribute(6, struct.pack("=I", fd)) + attribute(7, name.encode() + b"\0")
        options += attribute(8, struct.pack("=I", 1))  # the program says itself what becomes of the packet
        body = address(door, 1, AT_INGRESS, _INFO) + attribute(KIND, b"bpf\0") + attribute(OPTIONS, options)
        hook = address(door, _HOOKS, INGRESS) + attribute(KIND, b"clsact\0")
        first = [NetlinkRequest(NEW_QUEUE, hook, CREATE | EXCLUSIVE)] if made and not heir else []
        answers = netlink.ask([*first, NetlinkRequest(NEW_FILTER, body, CREATE | EXCLUSIVE)])
    finally:
        os.close(fd)
    wrong = next((a for a in answers if a.code), None)
    return Refused(f"link {door} takes no program at its ingress: kernel said {wrong}") if wrong else None


def unstamp(netlink: Netlink, door: int) -> None:
    """The place where programs hang goes as well if we made it, unless others use it by now."""
    if (seen := _ours(netlink, door)) is None:
        return
    body = address(door, 1, AT_INGRESS, _INFO) + attribute(KIND, b"bpf\0")
    netlink.ask([NetlinkRequest(DEL_FILTER, body)])
    used = any(queues.filters(netlink, door, where) for where in (AT_INGRESS, AT_EGRESS))
    if queues.name(seen) == NAME_WITH_HOOK and not used:
        netlink.ask([NetlinkRequest(DEL_QUEUE, address(door, _HOOKS, INGRESS))])


def _ours(netlink: Netlink, door: int) -> LinkQueue | None:
    here = queues.filters(netlink, door, AT_INGRESS)
    return next((f for f in here if queues.name(f) in NAMES), None)
