"""The trees of all links, as they are now: read again only where the kernel says that somebody else was at work."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Literal, TypeAlias

from j10ce.host.net import bpf, classes, queues
from j10ce.host.net.classes import HOOK_IS_OURS
from j10ce.host.net.links import LinkTable
from j10ce.host.net.netlink import GROUP_QUEUES, Netlink, NetlinkRequest, NetlinkWatch
from j10ce.kernel.net import foreign, ingress
from j10ce.kernel.net.doors import flows, stamps
from j10ce.kernel.net.tree import MOST_CLASSES, LinkTree
from j10ce.model.machine.link import Link
from j10ce.model.plan import Refused

FEW: Final = 16  # records, of a tree in which there are no classes
FRESH_S: Final = 0.001  # how long what was heard counts as all there is to hear: a large change asks 100,000 times
KINDS: Final = range(queues.NEW_QUEUE, queues.GET_FILTER)  # what is told of queues; chains of filters are not


Way: TypeAlias = Literal["egress", "ingress"]


class Trees:
    """Of the network namespace that it was made in. Used from one thread."""

    def __init__(self, table: LinkTable) -> None:
        self.netlink = Netlink()
        self._table = table
        self._watch = NetlinkWatch(GROUP_QUEUES)
        self._trees: dict[int, LinkTree] = {}
        self._known = False
        self._attached: set[int] = set()  # links whose incoming packets go by a queue of ours
        self._stamped: set[int] = set()  # doors that have our program
        self._named: Mapping[int, str] = {}
        self._indices: dict[str, int] = {}  # the same, the other way round
        self._heard_at = 0.0
        self.moment = 0  # moves whenever it was asked what has changed

    def links(self) -> Mapping[str, Link]:
        """Those that are up."""
        return self._table.now()

    def names(self) -> Mapping[int, str]:
        """By index, of those that are down as well."""
        self._hear()
        return self._table.names

    def index(self, name: str) -> int | None:
        names = self.names()
        if names is not self._named:
            self._named, self._indices = names, {n: i for i, n in names.items()}
        return self._indices.get(name)

    def every(self) -> Mapping[int, LinkTree]:
        """By link."""
        self._hear()
        return self._trees

    def _hear(self) -> None:
        """Once for all that is asked within a moment."""
        now = time.monotonic()
        if now - self._heard_at < FRESH_S:
            return
        self._heard_at = now
        self.moment += 1
        self._table.now()
        try:
            heard = (m.body for port, m in self._watch.heard() if port != self.netlink.port and m.kind in KINDS)
            others = {queues.queue(body).link for body in heard}
        except OSError:  # more than the kernel kept for us
            self._known, others = False, set()
        if not self._known:
            qdiscs = queues.qdiscs(self.netlink)
            others |= {q.link for q in qdiscs if q.parent == queues.ROOT and classes.is_ours(q)} | self._trees.keys()
            self._known = True
            self._look_for_queues()
            self._stamped = {q.link for q in qdiscs if q.parent == queues.INGRESS}
            doors = {*self._stamped}
        else:
            doors = others & self._stamped
        for index in others:
            self._read(index)
        if doors:
            self._look_at_doors(doors)
        for index in self._attached - self._table.names.keys():
            self._unmake(index)

    def of(self, index: int, way: Way = "egress") -> LinkTree | None:
        every = self.every()
        if way == "egress":
            return every.get(index)
        queue = self._queue(index) if index in self._attached else None
        return every.get(queue) if queue is not None else None

    def by_way(self, way: Way) -> list[int]:
        """The links that have a tree there."""
        return [i for i in self.names() if self.of(i, way)]

    def leads_in(self, index: int) -> bool:
        """Whether it is a door: all of it is one workload's."""
        name = self.names().get(index, "")
        return name in self.links() and self.links()[name].leads_in

    def plant(
        self, index: int, rate: int, before: Sequence[NetlinkRequest] = (), *, divided: bool = True
    ) -> Refused | None:
        """`divided`: among several, of whom each may have a class."""
        most = MOST_CLASSES if divided else FEW
        built = LinkTree.build(self.netlink, index, rate, before, most)
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
        self.stamp(tree.doors if tree else ())
        return None

    def stamped(self, door: int) -> bool:
        return door in self._stamped and door in self.names()

    def stamp(self, doors: Iterable[int]) -> Refused | None:
        """Those that some class is reached by have our program then, and the others have it no more."""
        used = frozenset().union(*(tree.doors for tree in self._trees.values()))
        for door in {*doors} & self.names().keys():
            if door in used and not stamps.stamped(self.netlink, door):
                if refused := stamps.stamp(self.netlink, door):
                    return refused
            elif door not in used:
                stamps.unstamp(self.netlink, door)
            (self._stamped.add if door in used else self._stamped.discard)(door)
        return next(filter(None, (self._note(index) for index in self._attached)), None)

    def _note(self, index: int) -> Refused | None:
        """Conversations by a link, once somebody behind a door has a class there: first whoever looks them up."""
        out, queue = self._trees.get(index), self._queue(index)
        if out is None or queue not in self._trees or not out.doors or out.flows is not None:
            return None
        table = flows.new()
        if refused := self._direct(index, queue, out, table):
            return refused
        out.note_flows(table)
        return None

    def _direct(self, index: int, queue: int, out: LinkTree | None, table: bpf.Map | None = None) -> Refused | None:
        """What comes in by the link, to the queue where it waits. `out`: where what leaves by it waits."""
        back, known = self._trees[queue], table or (out.flows if out else None)
        recall = partial(flows.recall, flows=known, doors=back.by_door) if known is not None else None
        return ingress.attach(self.netlink, index, queue, back.classes, recall)

    def plant_ingress(self, index: int, rate: int) -> Refused | None:
        if why := ingress.others(self.netlink, index):
            return Refused(f"{why} of somebody else decides about what comes in by {self.names()[index]}")
        had_hook = ingress.hooked(self.netlink, index)
        refused = ingress.make(self.netlink, index)
        self._table.now()
        if refused:
            return refused
        try:
            refused = self._receive(index, rate, hook_is_ours=not had_hook)
        except OSError:
            self._unmake(index)
            raise
        if refused:
            self._unmake(index)
            return refused
        self._attached.add(index)
        return None

    def _receive(self, index: int, rate: int, *, hook_is_ours: bool) -> Refused | None:
        """A tree on our link, then the program that sends packets there."""
        queue = self._queue(index)
        if queue is None:
            return Refused("our link for what comes in is gone")
        if refused := self.plant(queue, rate, divided=not self.leads_in(index)):
            return refused
        if hook_is_ours:
            self._trees[queue].mark(HOOK_IS_OURS)
        return self._direct(index, queue, self._trees.get(index))

    def fell_ingress(self, index: int) -> None:
        if tree := self.of(index, "ingress"):
            hook = tree.marked(HOOK_IS_OURS)
            ingress.detach(self.netlink, index, hook=hook)
            self._unmake(index)
            if hook and self.stamped(index):  # who else uses the place where programs hang takes it away in the end
                stamps.unstamp(self.netlink, index)
                stamps.stamp(self.netlink, index, heir=True)

    def _queue(self, index: int) -> int | None:
        return self.index(ingress.queue_of(index))

    def _unmake(self, index: int) -> None:
        queue = self._queue(index)
        if queue is not None:
            ingress.unmake(self.netlink, queue)
            self._table.now()
            self._trees.pop(queue, None)
        self._attached.discard(index)

    def _look_for_queues(self) -> None:
        """Those that nobody uses are what somebody was killed over."""
        self._attached = set()
        for index in [i for n in self.names().values() if (i := ingress.link_of(n)) is not None]:
            if index in self.names() and ingress.attached(self.netlink, index):
                self._attached.add(index)
            else:
                self._unmake(index)

    def _look_at_doors(self, doors: Iterable[int]) -> None:
        """Whether they still have our program; those that lead to no class are what somebody was killed over."""
        there = {d for d in doors if d in self.names() and stamps.stamped(self.netlink, d)}
        self._stamped = self._stamped - {*doors} | there
        self.stamp(there)

    def root(self, index: int) -> queues.LinkQueue | None:
        """What somebody gave the link to queue in, ourselves included."""
        return foreign.root_of(queues.qdiscs(self.netlink, index))

    def _read(self, index: int) -> None:
        if index in self._attached and not ingress.attached(self.netlink, index):
            self._unmake(index)  # somebody has taken our program away
        here = index in self.names() and classes.is_ours(self.root(index))
        tree = LinkTree.read(self.netlink, index) if here else None
        if tree is None:
            self._trees.pop(index, None)
        else:
            self._trees[index] = tree
