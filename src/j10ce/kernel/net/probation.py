"""A link that has just been given a tree is on probation: unless traffic passes, it gets back what it had.

A process of its own, so that it does so even where the agent is gone, or where nobody can reach this machine any more.
What it needs to put back comes by its standard input. It ends with 0 where traffic passed.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from j10ce.errors import QosError
from j10ce.host import child
from j10ce.host.mounts import UNIFIED, Hierarchies
from j10ce.host.net import classes, queues
from j10ce.host.net.classes import NAMES, NUMBER
from j10ce.host.net.links import (
    GET_LINK,
    GET_NEIGHBOUR,
    GET_ROUTE,
    LINK,
    NEIGHBOUR,
    NEW_LINK,
    ROUTE,
    LinkTable,
    gateways,
)
from j10ce.host.net.netlink import REPLACE, Netlink, NetlinkRequest, attribute, attributes
from j10ce.kernel.net import foreign, htb
from j10ce.kernel.net.ingress import queue_of
from j10ce.kernel.net.trees import Trees, Way

WITHIN_S: Final = 10.0
LOOK_S: Final = 0.25
PASSED, WENT_BACK = 0, 3
_STATS: Final = 23  # IFLA_STATS64
_NEW_NEIGHBOUR: Final = 28
_DST: Final = 1
_REACHABLE: Final = 0x02
_PROBE: Final = 0x10
_FIXED: Final = 0x40 | 0x80  # NUD_NOARP, NUD_PERMANENT: such a neighbour is not asked
_DISCARD: Final = 9  # a port that nobody has to listen on


class Passed(NamedTuple):
    """Packets since the link is there."""

    received: int
    sent: int


def start(link: int, way: Way, before: str, within_s: float = WITHIN_S) -> subprocess.Popen[bytes]:
    """`before`: what others had there, as `foreign.capture` spells it."""
    command = child.python("j10ce.kernel.net.probation", str(link), way, f"{within_s:g}")
    started = subprocess.Popen(
        command,
        cwd=child.FOLDER,
        env=child.environ(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if started.stdin:
        with suppress(BrokenPipeError), started.stdin:
            started.stdin.write(before.encode())
    return started


def main(arguments: Sequence[str]) -> int:
    link, way, within_s, before = int(arguments[0]), arguments[1], float(arguments[2]), sys.stdin.read()
    _leave()
    netlink = Netlink()
    first, until = _passed(netlink, link), time.monotonic() + within_s
    while (now := _passed(netlink, link)) is not None and first is not None:
        doors, known = _doors(netlink, link), dict(_neighbours(netlink, link))
        asked = [door for door in doors if not known.get(door, 0) & _FIXED]
        answered = not asked or any(known.get(door, 0) & _REACHABLE for door in asked)
        if answered and now.sent > first.sent and now.received > first.received:
            return _prove(netlink, link, way)
        if time.monotonic() >= until:
            return _go_back(netlink, link, before) if way == "egress" else _let_in(link)
        _knock(netlink, link, doors, asked)
        time.sleep(LOOK_S)
    return PASSED  # the link is gone, and its tree with it


def _leave() -> None:
    """Out of the agent's cgroup: who ends a service ends what is in there."""
    with suppress(OSError, QosError):
        path = Hierarchies.discover().file(UNIFIED, "", "cgroup.procs")
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.write(fd, b"0")
        finally:
            os.close(fd)


def _prove(netlink: Netlink, link: int, way: str) -> int:
    table = LinkTable()
    table.now()
    queue = link if way == "egress" else next((i for i, n in table.names.items() if n == queue_of(link)), 0)
    if maps := classes.tables(netlink, queue):
        maps[NAMES].drop(NUMBER.pack(classes.ON_PROBATION))
    return PASSED


def _go_back(netlink: Netlink, link: int, before: str) -> int:
    """Only where it is still ours."""
    if classes.is_ours(foreign.root_of(queues.qdiscs(netlink, link))):
        netlink.ask([htb.no_root(link), *foreign.replay(before)])
    return WENT_BACK


def _let_in(link: int) -> int:
    """Nothing of ours stands between the link and whoever receives."""
    Trees(LinkTable()).fell_ingress(link)
    return WENT_BACK


def _passed(netlink: Netlink, link: int) -> Passed | None:
    """None: the link is gone."""
    for m in netlink.dump(GET_LINK, LINK.pack(0, 0, 0, 0, 0)):
        if m.kind == NEW_LINK and LINK.unpack_from(m.body)[2] == link:
            stats = dict(attributes(m.body, LINK.size)).get(_STATS, b"")
            return Passed(*struct.unpack_from("=QQ", stats)) if len(stats) >= 16 else None
    return None


def _doors(netlink: Netlink, link: int) -> dict[bytes, int]:
    """Addresses by which everything goes that goes by the link, and of which family they are.

    None where the route names a link alone: traffic itself is the only witness then.
    """
    routes = netlink.dump(GET_ROUTE, ROUTE.pack(0, 0, 0, 0, 0, 0, 0, 0, 0))
    return {door: family for m in routes for family, index, door in gateways(m) if index == link and door}


def _neighbours(netlink: Netlink, link: int) -> Iterator[tuple[bytes, int]]:
    for m in netlink.dump(GET_NEIGHBOUR, NEIGHBOUR.pack(0, 0, 0, 0, 0)):
        if m.kind == _NEW_NEIGHBOUR and len(m.body) >= NEIGHBOUR.size:
            _, index, state, _, _ = NEIGHBOUR.unpack_from(m.body)
            if index == link:
                yield dict(attributes(m.body, NEIGHBOUR.size)).get(_DST, b""), state


def _knock(netlink: Netlink, link: int, doors: dict[bytes, int], asked: Collection[bytes]) -> None:
    """Make them answer: by a question to the neighbour, and by a packet that nobody has to take.

    What an operator has written down of a neighbour stays: whoever is in there may never answer such questions.
    """
    for address, family in doors.items():
        if address in asked:
            body = NEIGHBOUR.pack(family, link, _PROBE, 0, 0) + attribute(_DST, address)
            netlink.ask([NetlinkRequest(_NEW_NEIGHBOUR, body, REPLACE)])
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as knocking:
            host = socket.inet_ntop(family, address)
            where = (host, _DISCARD, 0, link) if family == socket.AF_INET6 else (host, _DISCARD)
            knocking.sendto(b"", where)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
