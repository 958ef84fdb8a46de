"""What passes each link, and how much of it is whose: counted by the kernel, in the queues that divide it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from j10ce.errors import Unsupported
from j10ce.host.files import read_whole
from j10ce.host.net import classes, queues
from j10ce.host.net.classes import NAMES
from j10ce.host.net.links import OURS, LinkTable
from j10ce.host.net.netlink import GROUP_QUEUES, Netlink, NetlinkWatch
from j10ce.host.net.queues import Counted
from j10ce.model.knob import TargetId, link
from j10ce.model.workload import Workload
from j10ce.observe.sensor import Sample, Sensor
from j10ce.observe.sensors.counters import Rate

COUNTERS: Final = "/proc/net/dev"
BITS: Final = 8
_RECEIVED, _SENT = 0, 8  # columns


class TrafficSensor:
    """Links by their own counters; workloads and shares by those of their classes, over all links.

    Where nothing is divided it costs a look at one file, and at a socket on which nobody has spoken.
    """

    name = "traffic"

    def __init__(self, table: LinkTable, counters: str = COUNTERS) -> None:
        """Raises Unsupported where there is no rtnetlink."""
        self._netlink, self._watch = Netlink(), NetlinkWatch(GROUP_QUEUES)
        self._table, self._counters = table, counters
        self._owners: dict[int, dict[int, TargetId]] | None = None  # by link and class; None: to be looked up
        self._rates: defaultdict[tuple[TargetId, str], Rate] = defaultdict(Rate)
        self._shares: set[TargetId] = set()
        self._seen: frozenset[str] = frozenset()  # links whose own traffic is of interest: those that are managed

    @property
    def targets(self) -> Collection[TargetId]:
        return self._shares | {link(name) for name in self._seen}

    def sample(self, now: float, workloads: Collection[Workload], /) -> Iterable[Sample]:
        self._seen = frozenset(name for name, known in self._table.now().items() if known.managed)
        yield from self._links(now)
        passed: dict[tuple[TargetId, str], Counted] = {}
        for index, owners in self._trees().items():
            way = "ingress" if self._table.names.get(index, "").startswith(OURS) else "egress"
            for target, counted in self._classes(index, owners):
                passed[target, way] = _sum(passed.get((target, way), Counted()), counted)
        for (target, way), counted in passed.items():
            yield from self._samples(now, target, way, counted)
        here = {target for target, _ in passed}
        self._shares = {target for target in here if target.startswith("share/")}
        for gone in [key for key in self._rates if key[0] not in here and not key[0].startswith("link/")]:
            del self._rates[gone]

    def _samples(self, now: float, target: TargetId, way: str, counted: Counted) -> Iterator[Sample]:
        if (rate := self._rates[target, f"{way} sent"].of(now, counted.sent)) is not None:
            yield Sample(target, f"net.{way}.rate", rate * BITS)
        if way == "egress":
            if (drops := self._rates[target, "drops"].of(now, counted.drops)) is not None:
                yield Sample(target, "net.egress.drops", drops)
            yield Sample(target, "net.egress.backlog", float(counted.backlog))

    def _links(self, now: float) -> Iterator[Sample]:
        for name, received, sent in moved(read_whole(self._counters) or b""):
            if name in self._seen:
                for way, count in (("egress", sent), ("ingress", received)):
                    if (rate := self._rates[link(name), way].of(now, count)) is not None:
                        yield Sample(link(name), f"net.{way}.rate", rate * BITS)

    def _trees(self) -> dict[int, dict[int, TargetId]]:
        """Who has which class of which link; looked up again once somebody has changed something there."""
        try:
            changed = bool(self._watch.heard())
        except OSError:
            changed = True
        if self._owners is None or changed:
            roots = (q for q in queues.qdiscs(self._netlink) if q.parent == queues.ROOT and classes.is_ours(q))
            self._owners = {q.link: self._owned(q.link) for q in roots}
        return self._owners

    def _owned(self, index: int) -> dict[int, TargetId]:
        maps = classes.tables(self._netlink, index)
        return {c.minor: c.target for c in classes.names(maps[NAMES])} if maps else {}

    def _classes(self, index: int, owners: Mapping[int, TargetId]) -> Iterator[tuple[TargetId, Counted]]:
        for q in queues.classes(self._netlink, index) if owners else ():
            owner = owners.get(q.handle & 0xFFFF) if q.handle >> 16 == classes.MAJOR else None
            if owner is not None:
                yield owner, queues.counted(q)


def moved(text: bytes) -> Iterator[tuple[str, int, int]]:
    """(link, bytes received, bytes sent) of every line that can be read."""
    for line in text.splitlines():
        name, colon, rest = line.partition(b":")
        columns = rest.split()
        if colon and len(columns) > _SENT and columns[_RECEIVED].isdigit() and columns[_SENT].isdigit():
            yield name.strip().decode(errors="replace"), int(columns[_RECEIVED]), int(columns[_SENT])


def traffic(table: LinkTable) -> list[Sensor]:
    """Nobody where nothing can be known of queues."""
    try:
        return [TrafficSensor(table)]
    except (Unsupported, OSError):
        return []


def _sum(one: Counted, other: Counted) -> Counted:
    return Counted(*(a + b for a, b in zip(one, other, strict=True)))
