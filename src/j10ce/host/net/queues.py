"""Queues on links as the kernel tells of them: qdiscs, their classes and filters."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from j10ce.errors import Corrupt
from j10ce.host.net.netlink import Message, Netlink, attributes, number, text

ROOT: Final = 0xFFFF_FFFF
INGRESS: Final = 0xFFFF_FFF1  # where qdiscs of what comes in are: ingress, clsact
AT_INGRESS: Final = 0xFFFF_FFF2  # filters of those that see what comes in
AT_EGRESS: Final = 0xFFFF_FFF3
NEW_QUEUE, DEL_QUEUE, GET_QUEUE = 36, 37, 38
NEW_CLASS, DEL_CLASS, GET_CLASS = 40, 41, 42
NEW_FILTER, DEL_FILTER, GET_FILTER = 44, 45, 46
ADDRESS: Final = struct.Struct("=BxxxiIII")  # family, link, handle, parent, info
KIND, OPTIONS, CHAIN = 1, 2, 11
_STATS: Final = 7
_BASIC, _QUEUE = 1, 3
_PARMS, _RATE64, _CEIL64 = 1, 6, 7
_OPT: Final = struct.Struct("=BBHhHIBBHhHIIIIII")  # two rates, then buffers, quantum, level, priority
_NAME, _PROGRAM = 7, 11  # TCA_BPF_NAME, TCA_BPF_ID


class LinkQueue(NamedTuple):
    """A qdisc, a class or a filter."""

    link: int
    handle: int
    parent: int
    info: int  # of a filter: its priority and protocol
    kind: str
    options: bytes
    body: bytes  # all of it, as the kernel said it
    counted: bytes = b""


class Counted(NamedTuple):
    """What passed a queue since it was made; the backlog is of now."""

    sent: int = 0  # bytes
    packets: int = 0
    drops: int = 0
    backlog: int = 0  # bytes


class HtbClass(NamedTuple):
    """Rates in bytes per second."""

    parent: int
    rate: int
    ceil: int
    priority: int


def queue(body: bytes) -> LinkQueue:
    """Raises Corrupt for what no kernel sends."""
    if len(body) < ADDRESS.size:
        raise Corrupt(f"netlink: a queue of {len(body)} bytes")
    _, link, handle, parent, info = ADDRESS.unpack_from(body)
    about = dict(attributes(body, ADDRESS.size))
    kind = text(about.get(KIND, b""))
    return LinkQueue(link, handle, parent, info, kind, about.get(OPTIONS, b""), body, about.get(_STATS, b""))


def counted(seen: LinkQueue) -> Counted:
    about = dict(attributes(seen.counted))
    basic, waiting = about.get(_BASIC, b""), about.get(_QUEUE, b"")
    sent, packets = (number(basic[:8]), number(basic[8:12])) if len(basic) >= 12 else (0, 0)
    backlog, drops = (number(waiting[4:8]), number(waiting[8:12])) if len(waiting) >= 12 else (0, 0)
    return Counted(sent, packets, drops, backlog)


def htb_class(seen: LinkQueue) -> HtbClass | None:
    """None for a class of another kind."""
    about = dict(attributes(seen.options)) if seen.kind == "htb" else {}
    if len(about.get(_PARMS, b"")) < _OPT.size:
        return None
    fields = _OPT.unpack_from(about[_PARMS])
    rate, ceil = number(about.get(_RATE64, b"")) or fields[5], number(about.get(_CEIL64, b"")) or fields[11]
    return HtbClass(seen.parent, rate, ceil, fields[16])


def program(seen: LinkQueue) -> int:
    """The number of the program that a filter asks; 0: none."""
    return number(dict(attributes(seen.options)).get(_PROGRAM, b"")) if seen.kind == "bpf" else 0


def name(seen: LinkQueue) -> str:
    """What whoever set up a filter with a program calls it."""
    return text(dict(attributes(seen.options)).get(_NAME, b"")) if seen.kind == "bpf" else ""


def address(link: int, handle: int, parent: int, info: int = 0) -> bytes:
    return ADDRESS.pack(0, link, handle, parent, info)


def qdiscs(netlink: Netlink, link: int = 0) -> list[LinkQueue]:
    """Of one link, or of all."""
    return _of(netlink.dump(GET_QUEUE, address(link, 0, 0)), NEW_QUEUE, link)


def classes(netlink: Netlink, link: int) -> list[LinkQueue]:
    return _of(netlink.dump(GET_CLASS, address(link, 0, 0)), NEW_CLASS, link)


def filters(netlink: Netlink, link: int, parent: int) -> list[LinkQueue]:
    return _of(netlink.dump(GET_FILTER, address(link, 0, parent)), NEW_FILTER, link)


def _of(answer: Iterable[Message], kind: int, link: int) -> list[LinkQueue]:
    seen = (queue(m.body) for m in answer if m.kind == kind)
    return [q for q in seen if link in (0, q.link)]
