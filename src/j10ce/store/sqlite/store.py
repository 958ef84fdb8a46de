"""The embedded durable store: SQLite behind one writer thread.

Writes are decided on the event loop, against what is committed and what is on its way. Callers that wait together
share the price of one flush of the disk; nobody is answered, and no reader sees a change, before the flush is through.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from j10ce.errors import Closed, Conflict, StoreError
from j10ce.model.kinds import Object
from j10ce.model.schema import encode
from j10ce.model.stored import Event, Key, Listing, Part, Unreadable, key_of
from j10ce.store.reading import OR_DISCARD, refuse_partial
from j10ce.store.revise import Decide, kept, removed, revise
from j10ce.store.sqlite.database import BrokenDisk, ChangeRow, Database, Trim
from j10ce.store.sqlite.writer import Job, Jobs, Writer
from j10ce.store.store import ANY, Discarding, Expect, Movable, Store
from j10ce.store.table import KEPT_CHANGES, Watch


class SqliteStore:
    def __init__(self, path: Path, wall: Callable[[], float], *, kept: int = KEPT_CHANGES, create: bool = True) -> None:
        self._wall = wall
        database = Database(path, wall(), create=create)
        self._table = database.table(kept=kept)
        self._unread = database.unread
        self._revision = self._table.revision
        self._coming: dict[Key, Event] = {}  # decided, not yet committed
        self._collected: Jobs = []  # decided in this turn of the event loop
        self._epoch = 0
        self._ended: StoreError | None = None
        self._writer = Writer(database, self._settle)

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        return self._table.get(self._readable(Key(kind, namespace, name)))

    async def list(self, kind: str, namespace: str | None = None) -> Listing:
        return self._table.list(kind, namespace)

    async def put(self, obj: Object, *, expect: str | Expect = ANY, part: Part = "spec") -> Object:
        def decide(old: Object | None, revision: str) -> Object:
            return revise(old, obj, expect=expect, part=part, revision=revision, wall=self._wall())

        return await self._write(key_of(obj), decide)

    async def restore(self, obj: Object) -> Object:
        return await self._write(key_of(obj), lambda old, revision: kept(old, obj, revision=revision))

    async def delete(self, kind: str, namespace: str, name: str, *, expect: str | Expect = ANY) -> Object:
        key, revision = self._readable(Key(kind, namespace, name)), str(self._revision + 1)
        old = self._latest(key)
        gone = removed(old, key, expect=expect, revision=revision)
        await self._commit(Event("DELETED", gone, revision, old))
        return gone

    async def discard(self, kind: str, namespace: str, name: str) -> None:
        key = Key(kind, namespace, name)
        if key not in self._unread:
            self._table.get(key)
            raise Conflict(f"{key} can be read: delete it as any other")
        self._refuse_if_ended()
        await self._queued(None, discard=key)

    def watch(self, kind: str, since: str) -> Watch:
        return self._table.watch(kind, since)

    def unreadable(self) -> dict[str, int]:
        """How many stored objects of each kind are left out because they cannot be read."""
        return dict(Counter(key.kind for key in self._unread))

    async def snapshot(self) -> Listing:
        refuse_partial(self._unread)
        return self._table.everything()

    async def close(self) -> None:
        """Waits until everything queued is on disk."""
        self._ended = self._ended or Closed()
        if self._collected:
            self._hand_over()
        await asyncio.to_thread(self._writer.close)
        self._table.close()

    def _readable(self, key: Key) -> Key:
        if key in self._unread:
            raise Unreadable(key, f"it was written by another release; run that one to read or change it{OR_DISCARD}")
        return key

    def _latest(self, key: Key) -> Object | None:
        coming = self._coming.get(key)
        if coming is None:
            return self._table.find(key)
        return None if coming.type == "DELETED" else coming.object

    async def _write(self, key: Key, decide: Decide) -> Object:
        old, revision = self._latest(self._readable(key)), str(self._revision + 1)
        new = decide(old, revision)
        if new is not old:
            await self._commit(Event("MODIFIED" if old else "ADDED", new, revision, old))
        elif key in self._coming:
            await self._queued(None)
        return new

    async def _commit(self, event: Event) -> None:
        self._refuse_if_ended()
        row = ChangeRow(event, encode(event.object))  # before anyone counts on it: what cannot be written is not coming
        self._revision = int(event.revision)
        self._coming[key_of(event.object)] = event
        await self._queued(row)

    def _refuse_if_ended(self) -> None:
        if self._ended:
            raise Closed() if isinstance(self._ended, Closed) else StoreError(str(self._ended))

    def _queued(self, row: ChangeRow | None, *, discard: Key | None = None) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        if not self._collected:
            loop.call_soon(self._hand_over)
        self._collected.append(Job(self._epoch, done, row, discard))
        return done

    def _hand_over(self) -> None:
        """At the end of the loop's turn: what was decided in one turn wakes the writer once."""
        self._writer.put(self._collected)
        self._collected = []

    def _settle(self, jobs: Jobs, failure: StoreError | None) -> None:
        """The disk has answered for these jobs; they come in the order in which they were decided."""
        if failure and jobs[-1].epoch == self._epoch:
            self._epoch += 1
            self._coming.clear()
            self._ended = failure if isinstance(failure, BrokenDisk) else self._ended
        for job in jobs:
            if job.row and not failure:
                self._publish(job.row)
            if job.discard and not failure:
                self._unread.discard(job.discard)
            if job.done.done():
                continue  # its caller was cancelled
            if failure:
                job.done.set_exception(StoreError(str(failure)))
            else:
                job.done.set_result(None)

    def _publish(self, row: ChangeRow) -> None:
        key = key_of(row.event.object)
        if self._coming.get(key) is row.event:
            del self._coming[key]
        dropped = self._table.apply(row.event, len(row.data))
        if dropped is not None:
            self._writer.put((Trim(key.kind, *dropped),))


_: type[Store] = SqliteStore
__: type[Movable] = SqliteStore
___: type[Discarding] = SqliteStore
