"""The trees of all links, as they are now: read again only where the kernel says that somebody else was at work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from j10ce.host.net import classes, queues
from j10ce.host.net.links import LinkTable
from j10ce.host.net.netlink import GROUP_QUEUES, Netlink, NetlinkRequest, NetlinkWatch
from j10ce.kernel.net import foreign
from j10ce.kernel.net.tree import LinkTree
from j10ce.model.machine.link import Link
from j10ce.model.plan import Refused

KINDS: Final = range(queues.NEW_QUEUE, queues.GET_FILTER)  # what is told of queues; chains of filters are not


class Trees:
    """Of the network namespace that it was made in. Used from one thread."""

    def __init__(self, table: LinkTable) -> None:
        self.netlink = Netlink()
        self._table = table
        self._watch = NetlinkWatch(GROUP_QUEUES)
        self._trees: dict[int, LinkTree] = {}
        self._known = False

    def links(self) -> Mapping[str, Link]:
        """Those that are up."""
        return self._table.now()

    def names(self) -> Mapping[int, str]:
        """By index, of those that are down as well."""
        self._table.now()
        return self._table.names

    def index(self, name: str) -> int | None:
        return next((i for i, n in self.names().items() if n == name), None)

    def every(self) -> Mapping[int, LinkTree]:
        """By link."""
        try:
            heard = (m.body for port, m in self._watch.heard() if port != self.netlink.port and m.kind in KINDS)
            others = {queues.queue(body).link for body in heard}
        except OSError:  # more than the kernel kept for us
            self._known, others = False, set()
        if not self._known:
            qdiscs = queues.qdiscs(self.netlink)
            others |= {q.link for q in qdiscs if q.parent == queues.ROOT and classes.is_ours(q)} | self._trees.keys()
            self._known = True
        for index in others:
            self._read(index)
        return self._trees

    def of(self, index: int) -> LinkTree | None:
        return self.every().get(index)

    def plant(self, index: int, rate: int, before: Sequence[NetlinkRequest] = ()) -> Refused | None:
        built = LinkTree.build(self.netlink, index, rate, before)
        if isinstance(built, Refused):
            return built
        self._trees[index] = built
        return None

    def fell(self, index: int, after: Sequence[NetlinkRequest] = ()) -> Refused | None:
        """`after`: what stands there instead."""
        tree = self._trees.get(index)
        if tree and (refused := tree.remove(after)):
            return refused
        self._trees.pop(index, None)
        return None

    def root(self, index: int) -> queues.LinkQueue | None:
        """What somebody gave the link to queue in, ourselves included."""
        return foreign.root_of(queues.qdiscs(self.netlink, index))

    def _read(self, index: int) -> None:
        here = index in self.names() and classes.is_ours(self.root(index))
        tree = LinkTree.read(self.netlink, index) if here else None
        if tree is None:
            self._trees.pop(index, None)
        else:
            self._trees[index] = tree
