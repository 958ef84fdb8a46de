"""Pods without a node: who is next, who waits for its turn, and for what.

active         is tried at the next step, in the order of its profile
back-off       has failed lately, and something that may help has happened since
unschedulable  has failed, and nothing that may help has happened since
gated          is not let in
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from enum import Enum
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, NamedTuple

from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.book.shape import Shape
from j10ce.scheduler.cycle.framework import Key, Side

LONGEST_S: Final = 300.0  # without a try
STALE_S: Final = 200e-6  # for each pod in the order: so old may it be, and to sort anew takes a tenth of the time


class Place(Enum):
    ACTIVE = "active"
    BACKOFF = "back-off"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"


class Backoff(NamedTuple):
    """How long a pod that found no node rests: twice as long after every try."""

    first_s: float = 1.0
    most_s: float = 10.0

    def rest_s(self, attempts: int) -> float:
        return min(self.most_s, self.first_s * 2.0 ** min(attempts - 1, 12))


KUBERNETES: Final = Backoff()


class Group(NamedTuple):
    """Unschedulable pods of one shape, that the same plugins refused."""

    scheduler: str
    shape: Shape
    plugins: frozenset[str]


class Entry:
    """One pod in the queue. `turn` tells its present place in a heap from those that it has left."""

    __slots__ = ("attempts", "backoff", "failed", "group", "place", "plugins", "pod", "refused", "turn", "until", "why")

    def __init__(self, pod: PodFacts, backoff: Backoff) -> None:
        self.pod, self.backoff = pod, backoff
        self.place = Place.GATED
        self.attempts = 0
        self.failed = -math.inf  # when it was last tried
        self.until = math.inf  # when it is tried again, come what may
        self.plugins: frozenset[str] = frozenset()  # that refused it
        self.why = ""
        self.refused = ""  # what became of an eviction for it, until one was done
        self.turn = 0
        self.group: Group | None = None

    @property
    def backed_off(self) -> float:
        """When it may be tried again at the earliest."""
        return self.failed + self.backoff.rest_s(self.attempts) if self.attempts else -math.inf


class Due(NamedTuple):
    last: bool  # its key is not known
    key: Key
    side: Side
    created: float
    uid: str
    turn: int


def alone(pod: PodFacts) -> None:
    """Nobody gathers pods."""


class Queue:
    """`key`: as the profile of a pod sorts; None: nobody knows. Where keys move, they are asked for at every step; of
    thousands of pods not quite as often, so that a pod costs the same however many wait beside it. `side`: with whom it
    stands among those of one key."""

    def __init__(
        self,
        key: Callable[[PodFacts, float], Key | None],
        *,
        moves: bool,
        backoff: Backoff = KUBERNETES,
        side: Callable[[PodFacts], Side | None] = alone,
    ) -> None:
        self._key, self._moves, self._backoff, self._side = key, moves, backoff, side
        self.entries: dict[str, Entry] = {}
        self._active: list[Due] = []
        self._timed: list[tuple[float, str, int]] = []
        self._groups: dict[Group, dict[str, Entry]] = {}
        self._within: dict[Place, dict[str, Entry]] = {place: {} for place in Place}
        self._sorted_at = self._asked_at = -math.inf
        self._turns = count(1)  # never twice the same, also of a pod that comes back

    def put(self, pod: PodFacts) -> Entry:
        """A pod that is new, or another than before; where it stands is for the caller to say."""
        entry = self.entries.get(pod.uid)
        if entry is None:
            entry = self.entries[pod.uid] = Entry(pod, self._backoff)
            self._within[entry.place][pod.uid] = entry
        entry.pod = pod
        return entry

    def remove(self, uid: str) -> Entry | None:
        entry = self.entries.pop(uid, None)
        if entry is not None:
            self._ungroup(entry)
            del self._within[entry.place][uid]
        return entry

    def activate(self, entry: Entry, now: float) -> None:
        """At once, or when it has been backed off for long enough."""
        if entry.backed_off > now:
            self._move(entry, Place.BACKOFF, entry.backed_off)
            return
        self._move(entry, Place.ACTIVE, math.inf)
        heappush(self._active, self._due(entry, now))

    def gate(self, entry: Entry, why: str, until: float) -> None:
        entry.why = why
        self._move(entry, Place.GATED, until)

    def fail(self, entry: Entry, plugins: frozenset[str], why: str, now: float, until: float) -> None:
        """It was tried, and found no node."""
        entry.attempts += 1
        entry.failed, entry.plugins, entry.why = now, plugins, why
        self._move(entry, Place.UNSCHEDULABLE, min(max(until, entry.backed_off), now + LONGEST_S))

    def wake(self, now: float) -> list[Entry]:
        """Those whose time has come: pods that are gated are for the caller to look at, others are active."""
        gated = []
        while self._timed and self._timed[0][0] <= now:
            _, uid, turn = heappop(self._timed)
            entry = self.entries.get(uid)
            if entry is None or entry.turn != turn:
                continue
            if entry.place is Place.GATED:
                gated.append(entry)
            else:
                self.activate(entry, now)
        return gated

    def pop(self, now: float) -> Entry | None:
        """The next one, which stays in the queue until it is failed or removed."""
        if (due := self._next(now)) is None:
            return None
        heappop(self._active)
        return self.entries[due.uid]

    def pop_equal(self, entry: Entry, most: int, now: float) -> list[Entry]:
        """And those right behind it that every plugin takes for the same."""
        pod, equal = entry.pod, [entry]
        while len(equal) < most and (due := self._next(now)) is not None:
            other = self.entries[due.uid]
            if not _alike(pod, other.pod):
                break
            heappop(self._active)
            equal.append(other)
        return equal

    def next_at(self) -> float:
        """When something is due that is not yet."""
        while self._timed:
            at, uid, turn = self._timed[0]
            entry = self.entries.get(uid)
            if entry is not None and entry.turn == turn:
                return at
            heappop(self._timed)
        return math.inf

    def has_active(self) -> bool:
        return self._next(self._asked_at) is not None

    def within(self, place: Place) -> Collection[Entry]:
        return self._within[place].values()

    def groups(self) -> list[Group]:
        """Pods that are unschedulable, those together whom the same may help."""
        return list(self._groups)

    def group(self, group: Group) -> list[Entry]:
        return list(self._groups[group].values())

    # -- inside

    def _due(self, entry: Entry, now: float) -> Due:
        pod, key = entry.pod, self._key(entry.pod, now)
        side = self._side(pod) or Side(pod.created, "")
        return Due(key is None, 0 if key is None else key, side, pod.created, pod.uid, entry.turn)

    def _next(self, now: float) -> Due | None:
        if self._moves and self._asked_at != now and now - self._sorted_at >= STALE_S * len(self._active):
            self._active = [self._due(e, now) for e in self.within(Place.ACTIVE)]
            heapify(self._active)
            self._sorted_at = now
        self._asked_at = now  # within a step the order stays: who was popped is active until it is decided
        while self._active:
            due = self._active[0]
            entry = self.entries.get(due.uid)
            if entry is not None and entry.turn == due.turn:
                return due
            heappop(self._active)
        return None

    def _move(self, entry: Entry, place: Place, until: float) -> None:
        self._ungroup(entry)
        del self._within[entry.place][entry.pod.uid]
        self._within[place][entry.pod.uid] = entry
        entry.place, entry.until = place, until
        if place is Place.UNSCHEDULABLE:
            pod = entry.pod
            entry.group = Group(pod.scheduler, pod.shape, entry.plugins)
            self._groups.setdefault(entry.group, {})[pod.uid] = entry
        entry.turn = next(self._turns)
        if until < math.inf:
            heappush(self._timed, (until, entry.pod.uid, entry.turn))

    def _ungroup(self, entry: Entry) -> None:
        if entry.group is not None:
            members = self._groups[entry.group]
            del members[entry.pod.uid]
            if not members:
                del self._groups[entry.group]
            entry.group = None


def _alike(pod: PodFacts, other: PodFacts) -> bool:
    return (
        pod.shape is other.shape
        and pod.scheduler == other.scheduler
        and pod.namespace == other.namespace
        and pod.labels == other.labels
        and pod.owner == other.owner
        and pod.claims == other.claims
        and pod.unjudged == other.unjudged
    )


def same_wishes(before: PodFacts, pod: PodFacts) -> bool:
    """What has been found out about the one holds of the other."""
    return (
        before.shape is pod.shape
        and before.gates == pod.gates
        and before.labels == pod.labels
        and before.annotations == pod.annotations
        and before.priority == pod.priority
        and before.claims == pod.claims
        and before.unjudged == pod.unjudged
    )
