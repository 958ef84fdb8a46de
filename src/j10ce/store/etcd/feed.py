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

from j10ce.daemon.bell import Bell
from j10ce.daemon.strays import Strays
from j10ce.errors import Compacted, StoreError, Unavailable
from j10ce.http.retry import pauses
from j10ce.model.kinds import Object
from j10ce.model.stored import Event, Key, Unreadable, key_of
from j10ce.store.etcd.gateway import Full, Gateway
from j10ce.store.etcd.proto import etcd_pb2 as pb
from j10ce.store.etcd.wire import DELETE_PLACE, PLACES, RANGE, TXN, Keyspace, Numbering, at_revision, changed_at, put_op
from j10ce.store.reading import OR_DISCARD
from j10ce.store.table import Table

PAGE: Final = 500
BACKLOG: Final = 1000  # batches
MEANWHILE: Final = 10_000  # changes of our own may come while a line begins
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
    def __init__(self, gateway: Gateway, layout: Keyspace, *, kept: int) -> None:
        self.table = Table(-1, kept=kept)  # knows no revision before it is loaded
        self.line = Numbering()  # of the table
        self.marks: dict[str, tuple[int, int]] = {}  # the last batch of each writer, and etcd's revision of it
        self.sent: Mapping[Key, Sent] = {}  # in the last batch
        self.written: dict[Key, Written] = {}  # and perhaps not yet in the table
        self.loads = 0
        self._gateway, self._layout = gateway, layout
        self.strays = Strays()
        self.unread: dict[Key, int] = {}  # left out, as nobody can read them: by etcd's revision of each
        self._applied = -1  # everything up to here came from etcd: the table's own revision may run ahead of it
        self._last_mark: pb.KeyValue | None = None
        self.unmarked = 0  # etcd's revision of our last delete that moved no mark
        self._lost = False  # what readers have is not what etcd holds
        self._afresh = False  # readers have more than the past holds that we could look back to
        self._highest = -1  # no revision past this one, before the table was loaded last
        self._loaded = False
        self._moved = Bell()
        self._fault: StoreError = Unavailable("etcd does not answer: not asked yet")
        self._watching: asyncio.Timeout | None = None
        self._asked = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []

    def get(self, key: Key) -> Object:
        """Raises NotFound, or Unreadable for what is there nevertheless."""
        if key in self.unread:
            raise Unreadable(key, f"correct it with etcdctl{OR_DISCARD}")
        return self.table.get(key)

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
        while not (self._loaded and self.table.revision >= self.line.whole(main)):
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
                if self._loaded:
                    await self._check_time_line()
                else:
                    await self._load()
                    tries = pauses()
                await self._follow()
            except Compacted as e:
                log.warning("store.reload", reason=str(e))
                self._loaded = False
            except StoreError as e:
                self._fault = e
                await asyncio.sleep(next(tries))

    async def _catch_up(self, *, again: bool = True) -> StoreError | None:
        before, loads = self.table.revision, self.loads
        try:
            answer = await self._gateway.ask(RANGE, pb.RangeRequest(key=self._layout.mark))
            current = answer.header.revision
            if self._loaded and before > self.line.whole(current):
                self._lost = True
                self.begin_again(f"etcd is at revision {current}, behind {self.line.main(before)}: it was restored")
            async with asyncio.timeout(self._gateway.patience_s):
                await self.reached(max(self.unmarked, answer.kvs[0].mod_revision if answer.kvs else 0))
        except TimeoutError:
            return self._fault
        except StoreError as e:
            return e
        if self.loads != loads and again:  # what was asked may be of before the table: a restore lies between
            return await self._catch_up(again=False)
        if self.loads == loads:
            # The mark names the last batch as of `current`, and the table has it: nothing in between is missing.
            self.table.revision = max(self.table.revision, self.line.whole(current))
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
        line, mark, present = await self._present()
        at, objects, unread = await self._earliest(line, present)
        if line != self.line:
            self.written.clear()  # by revisions of another line
        self.line = line
        self.table.reset(objects, line.whole(at))
        self.unread = unread  # together with the table: to readers an object is in one of them, or is not there
        self._applied, self._last_mark, self._lost = line.whole(at), mark, False
        self.marks.clear()
        self.unmarked, self._afresh = 0, False
        self.loads += 1
        self._loaded = True
        self._moved.ring()

    async def _earliest(self, line: Numbering, present: int) -> tuple[int, list[Object], dict[Key, int]]:
        """The objects as of as early as we look back, as far as etcd's last compaction lets us."""
        at = present if self._afresh else max(1, present - BACKLOG, line.since)
        try:
            return at, *await self._objects(at, line)
        except Compacted:
            at = max(at, await self._compacted_to(at) or present)
            return at, *await self._objects(at, line)

    async def _compacted_to(self, at: int) -> int:
        """The first revision that etcd still knows: it tells whoever watches from before it. 0: it does not."""
        request = pb.WatchCreateRequest(key=self._layout.mark, start_revision=at)
        try:
            async with asyncio.timeout(self._gateway.patience_s), aclosing(self._gateway.watch(request)) as answers:
                async for answer in answers:
                    if answer.canceled:
                        return answer.compact_revision
        except TimeoutError:
            log.warning("store.compaction", unknown_since=at)
        return 0

    async def _present(self) -> tuple[Numbering, pb.KeyValue | None, int]:
        """The line, the mark and etcd's revision. Where etcd was put back, a line begins that is past all that readers
        have; it moves the mark, so that no manager answers from the line before once it is there."""
        both = pb.RangeRequest(key=self._layout.mark, range_end=self._layout.objects)
        self._highest = max(self._highest, self.table.revision, *(own.revision for own in self.written.values()))
        past = self._highest // PLACES + MEANWHILE
        while True:
            answer = await self._gateway.ask(RANGE, both)
            held = {kv.key: kv for kv in answer.kvs}
            kept = held.get(self._layout.line)
            line = Numbering(int(kept.value), kept.mod_revision) if kept else Numbering()
            self._lost |= line.past < self.line.past
            if not self._lost or line.past >= past:
                return line, held.get(self._layout.mark), answer.header.revision
            begin = put_op(self._layout.line, b"%d" % past), put_op(self._layout.mark, b"line/%d" % past)
            unless = changed_at(self._layout.line, kept.mod_revision if kept else 0)
            try:
                await self._gateway.ask(TXN, pb.TxnRequest(compare=(unless,), success=begin))
            except Full as e:  # answers are worth more than a line
                log.warning("store.line", error=str(e))
                self._lost, self._afresh = False, True

    async def _objects(self, at: int, line: Numbering) -> tuple[list[Object], dict[Key, int]]:
        objects: list[Object] = []
        unread: dict[Key, int] = {}
        start, more = self._layout.objects, True
        while more:
            request = pb.RangeRequest(key=start, range_end=self._layout.end, limit=PAGE, revision=at)
            page = await self._gateway.ask(RANGE, request)
            read = (self._read(self._layout.key(kv.key), kv, line, unread) for kv in page.kvs)
            objects += (obj for obj in read if obj is not None)
            more, start = page.more, page.kvs[-1].key + b"\0" if page.kvs else start
        return objects, unread

    async def _follow(self) -> None:
        start = self.line.main(self._applied + 1)
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

    async def _check_time_line(self) -> None:
        """etcd may have been put back to a snapshot and have overtaken us since; raises Compacted.

        The last mark we saw, read again at its own revision, is then another's, or none. Where that is no longer kept
        nobody can tell.
        """
        answer = await self._gateway.ask(RANGE, pb.RangeRequest(key=self._layout.mark))
        if self.table.revision > self.line.whole(answer.header.revision):
            raise self._lose(f"etcd is at revision {answer.header.revision}, behind us: it was restored")
        seen = self._last_mark
        if seen is None or _same(answer, seen):
            return
        try:
            then = await self._gateway.ask(RANGE, pb.RangeRequest(key=seen.key, revision=seen.mod_revision))
        except Compacted:
            self._afresh = True
            raise
        if not _same(then, seen):
            raise self._lose(f"etcd's revision {seen.mod_revision} is no longer what it was: etcd was restored")

    def _lose(self, reason: str) -> Compacted:
        self._lost = True
        return Compacted(reason)

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
            self._applied = self.line.whole(changes.events[-1].kv.mod_revision)
            self.table.revision = max(self.table.revision, self._applied)
        self._moved.ring()

    def _apply(self, change: pb.Event) -> None:
        kv = change.kv
        if kv.key == self._layout.mark:
            writer, _, number = kv.value.decode().partition("/")
            self.marks[writer] = (int(number or 0), kv.mod_revision)
            self._last_mark = kv
            return
        if kv.key == self._layout.line:
            raise Compacted("another manager has noticed that etcd was restored")
        key = self._layout.key(kv.key)
        old = self.table.find(key)
        put = change.type == pb.EVENT_TYPE_PUT
        new = (self._own(key, kv) or self._read(key, kv, self.line, self.unread)) if put else None
        if change.type == pb.EVENT_TYPE_DELETE:
            self.unread.pop(key, None)
        if new is not None:
            event = Event("MODIFIED" if old else "ADDED", new, new.metadata.resource_version, old)
        elif old is not None:  # gone, or to us as good as gone
            last = at_revision(old, self.line.revision(kv.mod_revision, DELETE_PLACE))
            event = Event("DELETED", last, last.metadata.resource_version, old)
        else:
            return
        self._append(event, len(kv.value))

    def _append(self, event: Event, size: int) -> None:
        at = int(event.revision)
        if at <= self._applied:
            return  # a watch that resumes inside a batch repeats its beginning
        if at <= self.table.revision:
            # For readers the table is complete up to there: whoever writes past us moves no mark.
            self._afresh = True
            raise Compacted(f"{key_of(event.object)} was changed past the API")
        self._applied = at
        self.table.apply(event, size)

    def _read(self, key: Key, kv: pb.KeyValue, line: Numbering, unread: dict[Key, int]) -> Object | None:
        """None, logged and noted in `unread`, for what nobody can read."""
        try:
            obj = line.restored(key, kv, self.strays)
        except Unreadable as e:
            if self.unread.get(key) != kv.mod_revision:
                log.error("object.skip", kind=key.kind, error=f"{e}; correct or delete it with etcdctl")
            unread[key] = kv.mod_revision
            return None
        unread.pop(key, None)
        return obj

    def _own(self, key: Key, kv: pb.KeyValue) -> Object | None:
        """What this process has written itself need not be decoded."""
        written, sent = self.written.get(key), self.sent.get(key)
        if written and self.line.main(written.revision) == kv.mod_revision:
            return written.object
        if sent and sent.data == kv.value:  # the answer is still on its way
            return at_revision(sent.object, self.line.revision(kv.mod_revision, sent.place))
        return None


def _same(answer: pb.RangeResponse, seen: pb.KeyValue) -> bool:
    """Whether the mark is still the one that was seen."""
    return [(kv.value, kv.mod_revision) for kv in answer.kvs] == [(seen.value, seen.mod_revision)]
