"""Committed objects and their latest changes, in memory: what reads and watches are served from.

Used from one event loop. A durable store fills it once its disk has acknowledged.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

from j10ce.daemon.bell import Bell
from j10ce.errors import Closed, Compacted, NotFound
from j10ce.model.kinds import Object
from j10ce.model.stored import Event, Key, Listing, key_of
from j10ce.store.order import Order

KEPT_CHANGES: Final = 16_384  # per kind
KEPT_BYTES: Final = 16 * 2**20  # per kind; the reports of nodes are large and frequent
REPORTED: Final = "NodeQoS"  # which its node writes as often as it likes
MOST_OF_ONE: Final = 8  # one object may have an eighth of what is kept of its kind


class Dropped(NamedTuple):
    """What is no longer kept of a kind: all up to a revision, and some of an object that changed too often."""

    horizon: int
    thinned: tuple[int, ...] = ()


def first_revision(wall: float) -> int:
    """Where a fresh store begins to count: past every revision of a store that was here before it.

    So a watch that resumes with a predecessor's revision has to list again, and never misreads it. There is room
    for a million writes in every millisecond: where the clock went back between the two stores, the present one would
    have to be that busy for as long to reach revisions of the other. 63 bits hold them until the year 2248.
    """
    return int(wall * 1000) << 20


class Table:
    def __init__(self, revision: int, *, kept: int = KEPT_CHANGES, kept_bytes: int = KEPT_BYTES) -> None:
        self.revision = revision  # of the last change
        self._began = revision
        self._kept, self._kept_bytes = kept, kept_bytes
        self._objects: dict[str, dict[Key, Object]] = {}
        self._listed: dict[str, tuple[Object, ...]] = {}
        self._orders: dict[str, Order] = {}  # of kinds that someone listed
        self._logs: dict[str, Log] = {}
        self._closed = False

    def load(self, objects: Iterable[Object], events: Iterable[tuple[Event, int]], horizons: dict[str, int]) -> None:
        """Take over what was kept from an earlier run; `events` come with their sizes, oldest first."""
        for kind, horizon in horizons.items():
            self._log(kind).horizon = horizon
        for event, size in events:
            self._log(event.object.kind).append(event, size)
            self.revision = int(event.revision)
        for obj in objects:
            self._objects.setdefault(obj.kind, {})[key_of(obj)] = obj

    def reset(self, objects: Iterable[Object], revision: int) -> None:
        """Begin again with what was listed at `revision`; whoever watches has to list again."""
        self.revision = self._began = revision
        lost, self._logs = self._logs, {}
        self._listed.clear()
        self._orders.clear()
        self._objects.clear()
        for obj in objects:
            self._objects.setdefault(obj.kind, {})[key_of(obj)] = obj
        for log in lost.values():
            log.horizon = sys.maxsize
            log.changed.ring()

    def find(self, key: Key) -> Object | None:
        return self._objects.get(key.kind, {}).get(key)

    def get(self, key: Key) -> Object:
        obj = self.find(key)
        if obj is None:
            raise NotFound(f"{key} does not exist")
        return obj

    def list(self, kind: str, namespace: str | None) -> Listing:
        """Ordered by namespace and name."""
        if self._closed:
            raise Closed()
        held = self._objects.setdefault(kind, {})
        if kind not in self._orders:
            self._orders[kind] = Order(held)
        listed = self._listed.get(kind) if namespace is None else None
        if listed is None:
            listed = tuple(map(held.__getitem__, self._orders[kind].within(namespace)))
        if namespace is None:
            self._listed[kind] = listed
        return Listing(listed, str(self.revision))

    def everything(self) -> Listing:
        """All kinds at one revision, ordered by kind, namespace and name."""
        if self._closed:
            raise Closed()
        held = {key: obj for objects in self._objects.values() for key, obj in objects.items()}
        return Listing(tuple(held[key] for key in sorted(held)), str(self.revision))

    def apply(self, event: Event, size: int = 0) -> Dropped | None:
        """Make a change visible; returns which old changes of its kind were dropped, if any."""
        key = key_of(event.object)
        held = self._objects.setdefault(key.kind, {})
        if event.type == "DELETED":
            del held[key]
        else:
            held[key] = event.object
        if key.kind in self._orders:
            self._orders[key.kind].moved(key)
        self._listed.pop(key.kind, None)
        self.revision = int(event.revision)
        log = self._log(key.kind)
        log.append(event, size)
        log.changed.ring()
        return log.trim(self._kept, self._kept_bytes)

    def knows(self, since: str) -> bool:
        """Whether it may be a revision of this table."""
        return since.isdecimal() and len(since) < 20 and int(since) <= self.revision

    def watch(self, kind: str, since: str) -> Watch:
        if not self.knows(since):
            raise Compacted(f"revision {since} is not of this store: list again")
        log = self._log(kind)
        log.check(int(since))
        return Watch(log, int(since))

    def close(self) -> None:
        self._closed = True
        for log in self._logs.values():
            log.closed = True
            log.changed.ring()

    def _log(self, kind: str) -> Log:
        log = self._logs.get(kind)
        if log is None:
            log = self._logs[kind] = Log(self._began, thins=kind == REPORTED)
        return log


class Log:
    """The changes of one kind after its horizon, and the wake-up call of its watchers."""

    def __init__(self, horizon: int, *, thins: bool = False) -> None:
        self.horizon, self._thins = horizon, thins
        self.closed = False
        self.changed = Bell()
        self._revisions: list[int] = []
        self._events: list[Event] = []
        self._sizes: list[int] = []
        self._bytes = 0

    def append(self, event: Event, size: int) -> None:
        self._revisions.append(int(event.revision))
        self._events.append(event)
        self._sizes.append(size)
        self._bytes += size

    def check(self, since: int) -> None:
        if since < self.horizon:
            kept = f"up to revision {self.horizon} " if self.horizon < sys.maxsize else ""
            raise Compacted(f"changes {kept}are no longer kept; {since} is older: list again")

    def after(self, since: int) -> Event | None:
        self.check(since)
        at = bisect_right(self._revisions, since)
        return self._events[at] if at < len(self._events) else None

    def trim(self, kept: int, kept_bytes: int) -> Dropped | None:
        """A node that fills the log pays first: of one with more than its share only the latest state is sent.

        Else the oldest eighth goes, so that most changes pay nothing for it.
        """
        if self._fits(kept, kept_bytes):
            return None
        thinned = self._thin(kept // MOST_OF_ONE, kept_bytes // MOST_OF_ONE) if self._thins else ()
        if self._fits(kept, kept_bytes):
            return Dropped(self.horizon, thinned)
        drop = max(1, len(self._events) // 8)
        self.horizon = self._revisions[drop - 1]
        self._bytes -= sum(self._sizes[:drop])
        del self._revisions[:drop], self._events[:drop], self._sizes[:drop]
        return Dropped(self.horizon, thinned)

    def _fits(self, kept: int, kept_bytes: int) -> bool:
        return len(self._events) <= kept and self._bytes <= kept_bytes

    def _thin(self, kept: int, kept_bytes: int) -> tuple[int, ...]:
        """Drop changes of objects with more than that which a later change makes good; returns their revisions."""
        counts, sizes = Counter[Key](), Counter[Key]()
        for event, size in zip(self._events, self._sizes, strict=True):
            counts[key_of(event.object)] += 1
            sizes[key_of(event.object)] += size
        greedy = {key for key in counts if counts[key] > kept or sizes[key] > kept_bytes}
        if not greedy:
            return ()
        gone, later = set[int](), dict[Key, int]()
        for at in range(len(self._events) - 1, -1, -1):
            event = self._events[at]
            key = key_of(event.object)
            if key not in greedy or event.type != "MODIFIED":
                later.pop(key, None)
            elif key in later:
                # What a watcher saw last is not known any more, so everything counts as seen.
                self._events[later[key]] = self._events[later[key]]._replace(old=None)
                gone.add(at)
            else:
                later[key] = at
        return self._without(gone)

    def _without(self, gone: set[int]) -> tuple[int, ...]:
        revisions = tuple(self._revisions[at] for at in sorted(gone))
        kept = [at for at in range(len(self._events)) if at not in gone]
        self._bytes -= sum(self._sizes[at] for at in gone)
        self._revisions = [self._revisions[at] for at in kept]
        self._events = [self._events[at] for at in kept]
        self._sizes = [self._sizes[at] for at in kept]
        return revisions


class Watch:
    """The changes of one kind from a revision on. A wait may be cancelled and repeated: nothing is lost."""

    def __init__(self, log: Log, since: int) -> None:
        self._log, self._at = log, since

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> Event:
        while (event := self._log.after(self._at)) is None:
            if self._log.closed:
                raise StopAsyncIteration
            await self._log.changed.wait()
        self._at = int(event.revision)
        return event


class DeferredWatch:
    """A watch that the first wait for it opens.

    A wait may be cancelled and repeated: nothing is lost. `open_` raises Closed once the store is closed.
    """

    def __init__(self, open_: Callable[[], Awaitable[Watch]]) -> None:
        self._open = open_
        self._watch: Watch | None = None

    def __aiter__(self) -> DeferredWatch:
        return self

    async def __anext__(self) -> Event:
        if self._watch is None:
            try:
                self._watch = await self._open()
            except Closed:
                raise StopAsyncIteration from None
        return await anext(self._watch)
