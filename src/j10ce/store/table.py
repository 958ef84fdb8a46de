"""Committed objects and their latest changes, in memory: what reads and watches are served from.

Used from one event loop. A durable store fills it once its disk has acknowledged.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from j10ce.errors import Closed, Compacted, NotFound
from j10ce.model.kinds import Object
from j10ce.store.bell import Bell
from j10ce.store.revise import Key, key_of
from j10ce.store.store import Event, Listing

KEPT_CHANGES: Final = 16_384  # per kind
KEPT_BYTES: Final = 32 * 2**20  # per kind; the reports of nodes are large and frequent


def first_revision(wall: float) -> int:
    """Where a fresh store begins to count: past every revision of a store that was here before it.

    So a watch that resumes with a predecessor's revision is told to list again, and never misreads it.
    """
    return int(wall * 1000)


class Table:
    def __init__(self, revision: int, *, kept: int = KEPT_CHANGES, kept_bytes: int = KEPT_BYTES) -> None:
        self.revision = revision  # of the last change
        self._began = revision
        self._kept, self._kept_bytes = kept, kept_bytes
        self._objects: dict[str, dict[Key, Object]] = {}
        self._listed: dict[str, tuple[Object, ...]] = {}
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
        self._objects.clear()
        for obj in objects:
            self._objects.setdefault(obj.kind, {})[key_of(obj)] = obj
        for log in lost.values():
            log.horizon = sys.maxsize
            log.changed.ring()

    def find(self, key: Key) -> Object | None:
        return self._objects.get(key.kind, {}).get(key)

    def get(self, key: Key) -> Object:
        found = self.find(key)
        if found is None:
            raise NotFound(f"{key} does not exist")
        return found

    def list(self, kind: str, namespace: str | None) -> Listing:
        """Ordered by namespace and name."""
        if self._closed:
            raise Closed()
        listed = self._listed.get(kind)
        if listed is None:
            held = self._objects.get(kind, {})
            listed = self._listed[kind] = tuple(held[key] for key in sorted(held))
        if namespace is not None:
            listed = tuple(obj for obj in listed if obj.metadata.namespace == namespace)
        return Listing(listed, str(self.revision))

    def everything(self) -> Listing:
        """All kinds at one revision, ordered by kind, namespace and name."""
        if self._closed:
            raise Closed()
        held = {key: obj for objects in self._objects.values() for key, obj in objects.items()}
        return Listing(tuple(held[key] for key in sorted(held)), str(self.revision))

    def apply(self, event: Event, size: int = 0) -> int | None:
        """Make a change visible; returns the new horizon of its kind when old changes were dropped."""
        key = key_of(event.object)
        held = self._objects.setdefault(key.kind, {})
        if event.type == "DELETED":
            del held[key]
        else:
            held[key] = event.object
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
            log = self._logs[kind] = Log(self._began)
        return log


class Log:
    """The changes of one kind after its horizon, and the wake-up call of its watchers."""

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon
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

    def trim(self, kept: int, kept_bytes: int) -> int | None:
        """Drop the oldest eighth at a time, so that most changes pay nothing for it."""
        if len(self._events) <= kept and self._bytes <= kept_bytes:
            return None
        drop = max(1, len(self._events) // 8)
        self.horizon = self._revisions[drop - 1]
        self._bytes -= sum(self._sizes[:drop])
        del self._revisions[:drop], self._events[:drop], self._sizes[:drop]
        return self.horizon


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
