"""NodePorts: a port of the node is given once for each protocol and address; the address 0.0.0.0 is all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

import numpy as np

from j10ce.scheduler.book.book import Book, PodListener
from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.shape import HostPort
from j10ce.scheduler.cluster import Mask, Rows
from j10ce.scheduler.cycle.framework import Filter, PreFilter, Reach, Skip, Turned

EVERYWHERE: Final = HostPort._field_defaults["address"]
TAKEN: Final = Turned(("node(s) didn't have free ports for the requested pod ports",))


class NodePorts:
    name = "NodePorts"
    reach = Reach.ROOM

    def __init__(self) -> None:
        self._book: Book | None = None
        self._ports = UsedPorts()

    def pre_filter(self, pod: PodFacts, book: Book, /) -> Skip | None:
        return None if pod.shape.ports else Skip()

    def filter(self, pod: PodFacts, book: Book, rows: Rows, /) -> Mask:
        if not pod.shape.ports:
            return np.ones(len(rows), np.bool_)
        if self._book is not book:
            self._book, self._ports = book, UsedPorts()
            book.listen(self._ports)
        taken = [row for port in pod.shape.ports for row in self._ports.taken(port)]
        return np.isin(rows, taken, invert=True)

    def why(self, pod: PodFacts, book: Book, row: int, /) -> Turned:
        return TAKEN


class UsedPorts:
    def __init__(self) -> None:
        # By protocol and port, then row: how often each address.
        self._used: defaultdict[tuple[str, int], defaultdict[int, Counter[str]]] = defaultdict(
            lambda: defaultdict(Counter)
        )

    def added(self, pod: PodFacts, row: int, /) -> None:
        for port in pod.shape.ports:
            self._used[port.protocol, port.port][row][port.address] += 1

    def removed(self, pod: PodFacts, row: int, /) -> None:
        for port in pod.shape.ports:
            rows = self._used[port.protocol, port.port]
            addresses = rows[row]
            addresses[port.address] -= 1
            if addresses[port.address] <= 0:
                del addresses[port.address]
            if not addresses:
                del rows[row]

    def taken(self, port: HostPort) -> list[int]:
        """Rows where somebody has it, at that address or at all of them."""
        rows = self._used.get((port.protocol, port.port))
        if rows is None:
            return []
        if port.address == EVERYWHERE:
            return list(rows)
        return [row for row, addresses in rows.items() if port.address in addresses or EVERYWHERE in addresses]


_: tuple[type[Filter], type[PreFilter], type[PodListener]] = (NodePorts, NodePorts, UsedPorts)
