"""What comes in is queued for on a link of our own (IFB), to which a program at the link's ingress sends it.

That link is made first, then its tree, the program last; taken away it is the other way round. So packets pass at every
moment, and whoever is killed between leaves a link of ours that nobody uses, which goes at the next start.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from typing import Final

from j10ce.host.net import bpf, queues
from j10ce.host.net.links import LINK, NEW_LINK, OURS
from j10ce.host.net.netlink import CREATE, EXCLUSIVE, REPLACE, Netlink, NetlinkAnswer, NetlinkRequest, attribute
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
    address,
)
from j10ce.kernel.net import htb
from j10ce.kernel.net.director import Recall, director
from j10ce.kernel.net.doors import stamps
from j10ce.model.plan import Refused

LAST: Final = 0xC000  # priority of our program: those of others look first
NAME: Final = "j10ce"
_DEL_LINK: Final = 17
_UP: Final = 1
_LENGTH: Final = 1000  # packets that may wait, as on other links; these have 32
_NAME, _TXQLEN, _INFO = 3, 13, 18
_ALL: Final = 0x0003
_HOOKS: Final = 0xFFFF_0000
_DIRECT: Final = 1  # the program says itself what becomes of the packet


def queue_of(index: int) -> str:
    """What our link for what comes in by another is called."""
    return f"{OURS}i{index}"


def link_of(name: str) -> int | None:
    """The index that such a name is for."""
    number = name.removeprefix(f"{OURS}i")
    return int(number) if name.startswith(f"{OURS}i") and number.isdecimal() else None


def make(netlink: Netlink, index: int) -> Refused | None:
    """The link of ours, up; done already is done."""
    kind = attribute(_INFO, attribute(1, b"ifb\0"))
    body = LINK.pack(0, 0, 0, _UP, _UP) + attribute(_NAME, queue_of(index).encode() + b"\0") + kind
    body += attribute(_TXQLEN, struct.pack("=I", _LENGTH))
    answer, *_ = netlink.ask([NetlinkRequest(NEW_LINK, body, CREATE | EXCLUSIVE)])
    return _refused(answer, "a link of kind ifb") if answer.code != errno.EEXIST else None


def unmake(netlink: Netlink, ifb: int) -> None:
    netlink.ask([NetlinkRequest(_DEL_LINK, LINK.pack(0, 0, ifb, 0, 0))])


def attached(netlink: Netlink, index: int) -> bool:
    return any(_is_ours(f) for f in queues.filters(netlink, index, AT_INGRESS))


def others(netlink: Netlink, index: int) -> str:
    """Whose programs decide there before ours could."""
    hook = next((q for q in queues.qdiscs(netlink, index) if q.parent == INGRESS), None)
    if hook is not None and hook.kind != "clsact":
        return f"qdisc {hook.kind}"
    theirs = [f for f in queues.filters(netlink, index, AT_INGRESS) if _decides(f)]
    return f"a filter of kind {theirs[0].kind!r}" if theirs else ""


def hooked(netlink: Netlink, index: int) -> bool:
    """Whether the link has the place where programs hang."""
    return any(q.parent == INGRESS for q in queues.qdiscs(netlink, index))


def attach(netlink: Netlink, index: int, ifb: int, classes: bpf.Map, recall: Recall | None = None) -> Refused | None:
    """In place of the program that was there. `classes`: of the tree that stands on `ifb`, by cgroup."""
    fd = bpf.load("j10ce_direct", director(ifb, classes, htb.handle(htb.SYSTEM), recall))
    try:
        hook = address(index, _HOOKS, INGRESS) + attribute(KIND, b"clsact\0")
        options = attribute(6, struct.pack("=I", fd)) + attribute(7, NAME.encode() + b"\0")
        options += attribute(8, struct.pack("=I", _DIRECT))
        body = address(index, 1, AT_INGRESS, LAST << 16 | socket.htons(_ALL))
        body += attribute(KIND, b"bpf\0") + attribute(OPTIONS, options)
        first = [] if hooked(netlink, index) else [NetlinkRequest(NEW_QUEUE, hook, CREATE | EXCLUSIVE)]
        answers = netlink.ask([*first, NetlinkRequest(NEW_FILTER, body, CREATE | REPLACE)])
    finally:
        os.close(fd)
    return _refused(next((a for a in answers if a.code), answers[-1]), "a program at its ingress")


def detach(netlink: Netlink, index: int, *, hook: bool) -> None:
    """`hook`: we made the place where programs hang; it goes, unless others use it by now."""
    body = address(index, 1, AT_INGRESS, LAST << 16 | socket.htons(_ALL)) + attribute(KIND, b"bpf\0")
    netlink.ask([NetlinkRequest(DEL_FILTER, body)])
    if hook and not any(queues.filters(netlink, index, where) for where in (AT_INGRESS, AT_EGRESS)):
        netlink.ask([NetlinkRequest(DEL_QUEUE, address(index, _HOOKS, INGRESS))])


def _is_ours(seen: queues.LinkQueue) -> bool:
    return seen.kind == "bpf" and seen.info >> 16 == LAST


def _decides(seen: queues.LinkQueue) -> bool:
    """A stamp decides nothing; nor does what stands for all filters of one turn, which has no number."""
    return seen.handle != 0 and not _is_ours(seen) and queues.name(seen) not in stamps.NAMES


def _refused(answer: NetlinkAnswer, what: str) -> Refused | None:
    return Refused(f"{what} is not to be had: kernel said {answer}") if answer.code else None
