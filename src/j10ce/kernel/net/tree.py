"""One tree of queues on one link: who has which class, and what each class may send.

All that is known of it stands in the kernel: rates in its classes, names and cgroups in the two maps of its program. So
whoever starts again finds what was there, and nothing of it outlives the tree.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from j10ce.host.net import bpf, queues
from j10ce.host.net.classes import CLASSES, DOORS, FLOWS, MOST_TEXT, NAMES, NUMBER, ON_PROBATION, RECORD, names, tables
from j10ce.host.net.netlink import Netlink, NetlinkRequest
from j10ce.host.net.queues import HtbClass, LinkQueue
from j10ce.kernel.net import htb
from j10ce.kernel.net.doors import flows, stamps
from j10ce.kernel.net.program import classifier
from j10ce.model.knob import TargetId
from j10ce.model.plan import Refused

MOST_CLASSES: Final = htb.LAST - htb.FIRST + 1
MOST_DOORS: Final = 4096  # two keys for each
AT_ONCE: Final = 256  # requests in one datagram
_ID: Final = struct.Struct("=Q")


class Sockets(NamedTuple):
    """The cgroup whose sockets a class is for; a share has none of its own."""

    cgroup: int = 0
    level: int = 0


class Branch(NamedTuple):
    """The class of a workload or a share."""

    minor: int
    target: TargetId
    sockets: Sockets
    now: HtbClass
    door: int = 0  # the link by which a network of its own reaches this machine


class LinkTree:
    """Used from one thread."""

    def __init__(self, netlink: Netlink, link: int, maps: dict[str, bpf.Map]) -> None:
        self.link = link
        self.rate = 0  # bytes per second of the whole
        self.branches: dict[TargetId, Branch] = {}
        self._netlink = netlink
        self._maps = maps
        self._names, self._classes, self._doors = maps[NAMES], maps[CLASSES], maps[DOORS]
        self._levels: frozenset[int] = frozenset()
        self._by_door = False  # whether the program looks at doors
        self._free = htb.FIRST

    # ------------------------------------------------------------------ as a whole

    @classmethod
    def build(
        cls, netlink: Netlink, link: int, rate: int, before: Sequence[NetlinkRequest] = (), most: int = MOST_CLASSES
    ) -> LinkTree | Refused:
        """At once: whoever is killed has done all of it or nothing. What is refused leaves no part behind.

        `before`: what makes room for it. `most`: classes that it is ever to have.
        """
        maps = {
            NAMES: bpf.Map.create(NAMES, NUMBER.size, RECORD.size, most),
            CLASSES: bpf.Map.create(CLASSES, _ID.size, NUMBER.size, 2 * most),
            DOORS: _new_doors(min(most, MOST_DOORS)),
        }
        tree = cls(netlink, link, maps)
        tree.rate = rate
        tree.mark(ON_PROBATION)
        fd = tree._program()
        try:
            grown = [htb.root(link), *htb.trunk(link, rate), htb.chooser(link, fd)]
            answers = netlink.ask([*before, *grown])
        finally:
            os.close(fd)
        if wrong := [a for a in answers[len(before) :] if a.code]:
            if not answers[len(before)].code:
                netlink.ask([htb.no_root(link)])
            return Refused(f"no queueing on link {link}: kernel said {wrong[0]}")
        return tree

    @classmethod
    def read(cls, netlink: Netlink, link: int) -> LinkTree | None:
        """The tree that stands there; None for none, or for one that somebody has taken the program from."""
        maps = tables(netlink, link)
        if not maps:
            return None
        tree = cls(netlink, link, maps if DOORS in maps else {**maps, DOORS: _new_doors()})
        tree._take(queues.classes(netlink, link))
        return tree if tree.rate else None

    @property
    def divides(self) -> bool:
        """Else nobody knows how much there is to divide: ceilings hold, and who has none passes by all classes."""
        return self.rate < htb.OPEN

    @property
    def classes(self) -> bpf.Map:
        """By cgroup."""
        return self._classes

    @property
    def on_probation(self) -> bool:
        """Whether nobody has seen traffic pass as yet."""
        return self.marked(ON_PROBATION)

    def mark(self, record: int) -> None:
        self._names.put(NUMBER.pack(record), bytes(RECORD.size))

    def marked(self, record: int) -> bool:
        return self._names.get(NUMBER.pack(record)) is not None

    def remove(self, after: Sequence[NetlinkRequest] = ()) -> Refused | None:
        answer, *_ = self._netlink.ask([htb.no_root(self.link), *after])
        return Refused(f"queueing on link {self.link} stays: kernel said {answer}") if answer.code else None

    def carry(self, rate: int) -> Refused | None:
        """Another rate of the whole, and at once the program that goes with it; then turns as long as go with it."""
        before, self.rate = self.rate, rate
        fd = self._program(self._levels, doors=self._by_door)
        try:
            refused = self._ask([htb.chooser(self.link, fd), *htb.trunk(self.link, rate)])
        finally:
            os.close(fd)
        if refused:
            self.rate = before
        return refused or (self._take_turns() if htb.turn(rate) != htb.turn(before) else None)

    def _take_turns(self) -> Refused | None:
        """Classes share a level evenly only if the turns of all are equally long."""
        spelled = [self._spelled(b.minor, b.now) for b in self.branches.values()]
        parts = (spelled[n : n + AT_ONCE] for n in range(0, len(spelled), AT_ONCE))
        return next(filter(None, map(self._ask, parts)), None)

    def _take(self, present: Iterable[LinkQueue]) -> None:
        """What the kernel holds; classes without a name are what somebody was killed over, and go."""
        classes = {q.handle & 0xFFFF: c for q in present if q.handle >> 16 == htb.MAJOR and (c := queues.htb_class(q))}
        whole = classes.get(htb.WHOLE)
        self.rate = whole.rate if whole else 0
        chosen = {_ID.unpack(k)[0]: NUMBER.unpack(v)[0] & 0xFFFF for k, v in self._classes.items()}
        for minor, cgroup, level, target, door in list(names(self._names)):
            now = classes.pop(minor, None)
            if now is None or (cgroup and chosen.get(cgroup) != minor):
                self._names.drop(NUMBER.pack(minor))
                if now is not None:
                    classes[minor] = now
                continue
            self.branches[target] = Branch(minor, target, Sockets(cgroup, level), now, door)
        self._clear(classes, chosen)
        self._levels = frozenset(b.sockets.level for b in self.branches.values() if b.sockets.cgroup)
        self._by_door = any(b.door for b in self.branches.values())
        self._free = max((b.minor + 1 for b in self.branches.values()), default=htb.FIRST)

    def _clear(self, left: Iterable[int], chosen: dict[int, int]) -> None:
        named = {b.minor for b in self.branches.values()}
        for cgroup, minor in chosen.items():
            if minor not in named:
                self._classes.drop(_ID.pack(cgroup))
        if over := sorted((m for m in left if m >= htb.FIRST), reverse=True):
            self._netlink.ask([htb.no_branch(self.link, m) for m in over])

    # ------------------------------------------------------------------ one class

    def put(self, target: TargetId, sockets: Sockets, wanted: HtbClass, door: int = 0) -> Refused | None:
        """A class like that for those sockets, whatever the target had before; the packets of others do not notice.

        OSError where no name or no program can be had: then it has what it had.
        """
        known = self.branches.get(target)
        if known and known.now.parent == wanted.parent:
            return self._change(known, sockets, wanted, door)
        minor = self._next()
        if minor is None:
            return Refused(f"link {self.link} has {len(self.branches)} classes already; {MOST_CLASSES} fit")
        if refused := self._ask([self._spelled(minor, wanted)]):
            return refused
        made = Branch(minor, target, sockets, wanted, door)
        try:
            self._name(made)
        except OSError:
            self._end(made)
            raise
        self._free = minor + 1
        if known:
            self._end(known)
        return None

    def drop(self, target: TargetId) -> Refused | None:
        known = self.branches.get(target)
        if known is None:
            return None
        if known.sockets.cgroup:
            self._classes.drop(_ID.pack(known.sockets.cgroup))
        if refused := self._end(known):
            return refused
        del self.branches[target]
        return None

    def members(self, minor: int) -> list[TargetId]:
        return [b.target for b in self.branches.values() if b.now.parent & 0xFFFF == minor]

    @property
    def by_door(self) -> bpf.Map:
        return self._doors

    @property
    def flows(self) -> bpf.Map | None:
        """Conversations of those behind doors, as far as they are noted."""
        return self._maps.get(FLOWS)

    def note_flows(self, table: bpf.Map) -> None:
        self._maps = {**self._maps, FLOWS: table}
        self._look_at(self._levels, doors=True)

    @property
    def doors(self) -> frozenset[int]:
        return frozenset(b.door for b in self.branches.values() if b.door)

    def _change(self, known: Branch, sockets: Sockets, wanted: HtbClass, door: int) -> Refused | None:
        if refused := self._ask([self._spelled(known.minor, wanted)]):
            return refused
        changed = known._replace(sockets=sockets, now=wanted, door=door)
        if known.sockets == sockets and not (known.door or door):  # a door's own record may not have been reached
            self.branches[known.target] = changed
            return None
        if known.sockets.cgroup not in (0, sockets.cgroup):
            self._classes.drop(_ID.pack(known.sockets.cgroup))
        if known.door != door:
            self._close(known)
        self._name(changed)
        return None

    def _name(self, branch: Branch) -> None:
        """Its name, then whose sockets it is for: of two that one target has after a kill, those sockets decide."""
        sockets = branch.sockets
        if sockets.cgroup and sockets.level not in self._levels:
            self._look_at(self._levels | {sockets.level}, doors=self._by_door)
        if branch.door and not self._by_door:
            self._look_at(self._levels, doors=True)
        name = branch.target.encode()[:MOST_TEXT]
        self._names.put(NUMBER.pack(branch.minor), RECORD.pack(sockets.cgroup, sockets.level, name, branch.door))
        if sockets.cgroup:
            self._classes.put(_ID.pack(sockets.cgroup), NUMBER.pack(htb.handle(branch.minor)))
        for key in stamps.keys(branch.door) if branch.door else ():
            self._doors.put(NUMBER.pack(key), NUMBER.pack(htb.handle(branch.minor)))
        self.branches[branch.target] = branch

    def _close(self, branch: Branch) -> None:
        """Its door, unless that leads to another class by now."""
        for key in map(NUMBER.pack, stamps.keys(branch.door)):
            if self._doors.get(key) == NUMBER.pack(htb.handle(branch.minor)):
                self._doors.drop(key)

    def _end(self, branch: Branch) -> Refused | None:
        if branch.door:
            self._close(branch)
        answer, *_ = self._netlink.ask([htb.no_branch(self.link, branch.minor)])
        if answer.code not in (0, errno.ENOENT):
            return Refused(f"link {self.link}: kernel said {answer}")
        self._names.drop(NUMBER.pack(branch.minor))
        return None

    def _look_at(self, levels: frozenset[int], *, doors: bool) -> None:
        fd = self._program(levels, doors=doors)
        try:
            answer, *_ = self._netlink.ask([htb.chooser(self.link, fd)])
        finally:
            os.close(fd)
        if answer.code:
            raise OSError(answer.code, f"the filter of link {self.link}: {answer}")
        self._levels, self._by_door = levels, doors

    def _program(self, levels: frozenset[int] = frozenset(), *, doors: bool = False) -> int:
        past = None if self.divides else htb.HANDLE
        learn = partial(flows.learn, flows=self.flows) if self.flows is not None else None
        code = classifier(levels, self._maps, htb.handle(htb.SYSTEM), past, doors=doors, learn=learn)
        return bpf.load("j10ce_choose", code)

    def _spelled(self, minor: int, wanted: HtbClass) -> NetlinkRequest:
        parent, most = wanted.parent & 0xFFFF, htb.turn(self.rate)
        return htb.branch(self.link, minor, parent, wanted.rate, wanted.ceil, wanted.priority, most=most)

    def _ask(self, requests: Sequence[NetlinkRequest]) -> Refused | None:
        wrong = next((a for a in self._netlink.ask(requests) if a.code), None)
        return Refused(f"link {self.link}: kernel said {wrong}") if wrong else None

    def _next(self) -> int | None:
        used = {b.minor for b in self.branches.values()}
        every = chain(range(self._free, htb.LAST + 1), range(htb.FIRST, self._free))
        return next((m for m in every if m not in used), None)


def _new_doors(most: int = MOST_DOORS) -> bpf.Map:
    return bpf.Map.create(DOORS, NUMBER.size, NUMBER.size, 2 * most)
