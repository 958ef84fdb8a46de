"""What etcd holds, kept in a table of this process by one watch over all kinds, however many watch the table.

Reads come from the table and are as fresh as etcd itself: readers that wait together share one question to etcd about
the last batch of writes, and are served once the table has taken it in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Final, NamedTuple

import structlog

from j10ce.errors import Compacted, StoreError, Unavailable
from j10ce.model.kinds import Object
from j10ce.store.bell import Bell
from j10ce.store.etcd_gateway import Gateway
from j10ce.store.etcd_wire import DELETE_PLACE, PLACES, RANGE, Layout, at_revision, restored, revision, whole
from j10ce.store.patience import pauses
from j10ce.store.proto import etcd_pb2 as pb
from j10ce.store.revise import Key
from j10ce.store.store import Event
from j10ce.store.table import Table

PAGE: Final = 500
BACKLOG: Final = 1000  # batches
STALL_S: Final = 2.0  # a watch that is so far behind has lost its member
CHECK_S: Final = 2.0  # how often that is looked at while nobody reads
log = structlog.get_logger()


class Sent(NamedTuple):
    """What this process may be writing."""

    data: bytes
    object: Object
    place: int


class Written(NamedTuple):
    """What this process has written."""

    revision: int
    object: Object | None  # None: it was deleted


class Feed:
    def __init__(self, gateway: Gateway, layout: Layout, *, kept: int) -> None:
        self.table = Table(-1, kept=kept)  # knows no revision before it is loaded
        self.marks: dict[str, tuple[int, int]] = {}  # the last batch of each writer, and etcd's revision of it
        self.sent: Mapping[Key, Sent] = {}  # in the last batch
        self.written: dict[Key, Written] = {}  # and perhaps not yet in the table
        self.loads = 0
        self._gateway, self._layout = gateway, layout
        self._loaded = False
        self._moved = Bell()
        self._fault: StoreError = Unavailable("etcd does not answer: not asked yet")
        self._watching: asyncio.Timeout | None = None
        self._asked = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []

    async def fresh(self) -> None:
        """Returns once the table holds everything that was written before the call; raises Unavailable."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._asked.set()
        await done

    async def reached(self, main: int) -> None:
        """Returns once the table holds everything up to etcd's revision `main`."""
        loop = asyncio.get_running_loop()
        stalled_at = loop.time() + STALL_S
        while not (self._loaded and self.table.revision >= whole(main)):
            try:
                async with asyncio.timeout_at(stalled_at):
                    await self._moved.wait()
            except TimeoutError:
                self._watch_elsewhere()
                stalled_at = loop.time() + STALL_S

    async def confirm(self) -> None:
        """For ever: serve those who asked for freshness, and notice a watch that has silently died."""
        while True:
            try:
                async with asyncio.timeout(CHECK_S):
                    await self._asked.wait()
            except TimeoutError:
                pass
            self._asked.clear()
            served, self._waiting = self._waiting, []
            failure: StoreError | None = Unavailable("the question was cut off: ask again")
            try:
                failure = await self._catch_up()
            finally:
                for done in served:
                    if done.done():
                        continue  # its caller was cancelled
                    if failure:
                        done.set_exception(Unavailable(str(failure)))
                    else:
                        done.set_result(None)

    async def run(self) -> None:
        """For ever: load, then follow; again from where it was after a lost connection."""
        tries = pauses()
        while True:
            try:
                if not self._loaded:
                    await self._load()
                    tries = pauses()
                await self._follow()
            except Compacted as e:
                log.warning("store.reload", reason=str(e))
                self._loaded = False
            except StoreError as e:
                self._fault = e
                await asyncio.sleep(next(tries))

    async def _catch_up(self) -> StoreError | None:
        before = self.table.revision
        try:
            answer = await self._gateway.ask(RANGE, pb.RangeRequest(key=self._layout.mark))
            current = answer.header.revision
            if self._loaded and before > whole(current):
                self.begin_again(f"etcd is at revision {current}, behind {before // PLACES}: it was restored")
            async with asyncio.timeout(self._gateway.patience_s):
                await self.reached(answer.kvs[0].mod_revision if answer.kvs else 0)
        except TimeoutError:
            return self._fault
        except StoreError as e:
            return e
        # The mark names the last batch as of `current`, and the table has it: nothing in between is missing.
        self.table.revision = max(self.table.revision, whole(current))
        return None

    def begin_again(self, reason: str) -> None:
        """List everything anew; whoever watches the table has to list as well."""
        log.warning("store.reload", reason=reason)
        self._loaded = False
        self._watch_elsewhere()

    def _watch_elsewhere(self) -> None:
        if self._watching:
            self._watching.reschedule(asyncio.get_running_loop().time())

    async def _load(self) -> None:
        """From a little earlier than the present, so that watches of a manager that ended can go on with this one."""
        present = (await self._gateway.ask(RANGE, pb.RangeRequest(key=self._layout.mark))).header.revision
        at = max(1, present - BACKLOG)
        try:
            objects = await self._objects(at)
        except Compacted:
            at = present
            objects = await self._objects(at)
        self.table.reset(objects, whole(at))
        self.marks.clear()
        self.loads += 1
        self._loaded = True
        self._moved.ring()

    async def _objects(self, at: int) -> list[Object]:
        objects: list[Object] = []
        start, more = self._layout.objects, True
        while more:
            request = pb.RangeRequest(key=start, range_end=self._layout.end, limit=PAGE, revision=at)
            page = await self._gateway.ask(RANGE, request)
            objects += map(restored, page.kvs)
            more, start = page.more, page.kvs[-1].key + b"\0" if page.kvs else start
        return objects

    async def _follow(self) -> None:
        start = (self.table.revision + 1) // PLACES
        request = pb.WatchCreateRequest(
            key=self._layout.mark, range_end=self._layout.end, start_revision=start, fragment=True
        )
        try:
            async with (
                asyncio.timeout(None) as self._watching,
                aclosing(self._gateway.watch(request)) as answers,
            ):
                async for changes in answers:
                    self._take(changes)
        except TimeoutError:
            self._gateway.avoid()
            raise Unavailable("etcd does not answer: a watch fell behind") from None
        finally:
            self._watching = None

    def _take(self, changes: pb.WatchResponse) -> None:
        if changes.compact_revision:
            raise Compacted(f"etcd keeps nothing before revision {changes.compact_revision}")
        if changes.canceled:
            raise Unavailable(f"etcd ended a watch: {changes.cancel_reason}")
        for change in changes.events:
            self._apply(change)
        if changes.events:
            self._complete(changes)

    def _complete(self, changes: pb.WatchResponse) -> None:
        """Events of one revision come in one answer, unless it was cut into fragments."""
        if not changes.fragment:
            self.table.revision = max(self.table.revision, whole(changes.events[-1].kv.mod_revision))
        self._moved.ring()

    def _apply(self, change: pb.Event) -> None:
        kv = change.kv
        if kv.key == self._layout.mark:
            writer, _, number = kv.value.decode().partition("/")
            self.marks[writer] = (int(number or 0), kv.mod_revision)
            return
        key = self._layout.key(kv.key)
        old = self.table.find(key)
        if change.type == pb.EVENT_TYPE_PUT:
            new = self._own(key, kv) or restored(kv)
            at = int(new.metadata.resource_version)
        elif old is not None:
            at = revision(kv.mod_revision, DELETE_PLACE)
            new = at_revision(old, at)
        else:
            return
        if at > self.table.revision:  # a watch that resumes inside a batch repeats its beginning
            event = Event("MODIFIED" if old else "ADDED", new, str(at), old)
            self.table.apply(
                event._replace(type="DELETED") if change.type == pb.EVENT_TYPE_DELETE else event, len(kv.value)
            )

    def _own(self, key: Key, kv: pb.KeyValue) -> Object | None:
        """What this process has written itself need not be decoded."""
        written, sent = self.written.get(key), self.sent.get(key)
        if written and written.revision // PLACES == kv.mod_revision:
            return written.object
        if sent and sent.data == kv.value:  # the answer is still on its way
            return at_revision(sent.object, revision(kv.mod_revision, sent.place))
        return None
