"""Writes to etcd: what waits together goes into one transaction.

It is tried as a whole first, which is cheap, and happens unless some other process wrote one of the objects meanwhile.
Then it is repeated with each object under a condition of its own, so that the others are not kept waiting.

A batch that was sent and not answered is never repeated blindly. The writer first moves its fence, which stops the
batch wherever it still lingers; then it looks whether the batch's mark was set before, and only then goes on.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from j10ce.errors import Closed, StoreError, Unavailable, Unsure
from j10ce.http.retry import pauses
from j10ce.model.kinds import Object
from j10ce.model.schema import encode
from j10ce.model.stored import Key
from j10ce.store.etcd.feed import Feed, Sent, Written
from j10ce.store.etcd.gateway import Full, Gateway
from j10ce.store.etcd.proto import etcd_pb2 as pb
from j10ce.store.etcd.wire import (
    DELETE_PLACE,
    GRANT,
    KEEP_ALIVE,
    REVOKE,
    TXN,
    Keyspace,
    at_revision,
    changed_at,
    put_op,
    read_op,
)
from j10ce.store.revise import Decide

MOST: Final = 64  # writes in a batch; etcd takes 128 operations
MOST_BYTES: Final = 2**20  # etcd takes 1.5 MiB
FENCE_TTL_S: Final = 600
TICK_S: Final = 0.1


class Seen(NamedTuple):
    """What etcd said is there."""

    object: Object | None
    main: int  # etcd's revision of it; 0 for none


class Write(NamedTuple):
    key: Key
    decide: Decide
    deletes: bool
    done: asyncio.Future[Object]
    until: float  # on the event loop's clock
    seen: Seen | None = None  # else the table's word is taken, which may be late


class BatchStep(NamedTuple):
    """A write as part of a batch. Without `new` it only looks: to be sure before it refuses, or does nothing."""

    write: Write
    old: Seen
    place: int
    new: Object | None = None
    data: bytes = b""


class Writer:
    def __init__(self, gateway: Gateway, layout: Keyspace, feed: Feed) -> None:
        self._gateway, self._layout, self._feed = gateway, layout, feed
        self._name = uuid.uuid4().hex
        self._fence = layout.writer(self._name)
        self._fenced_at = 0  # etcd's revision of the fence; 0: it has to be moved before the next batch
        self._lease = 0
        self._batch = 0
        self._queue: deque[Write] = deque()
        self._arrived = asyncio.Event()
        self._waiting: dict[asyncio.Future[Object], Write] = {}
        self._sent: frozenset[asyncio.Future[Object]] = frozenset()
        self.sent_bytes = 0  # of all objects, whether they arrived or not

    async def write(self, key: Key, decide: Decide, *, deletes: bool = False) -> Object:
        """The object as stored. Raises what `decide` raises for what is there, Unavailable, or Unsure."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Object] = loop.create_future()
        write = Write(key, decide, deletes, done, loop.time() + self._gateway.patience_s)
        self._queue.append(write)
        self._arrived.set()
        self._waiting[done] = write
        try:
            return await done
        finally:
            del self._waiting[done]

    async def run(self) -> None:
        """For ever; one batch at a time, so that writes are decided on top of those before."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            tries = pauses()
            while steps := self._take():
                try:
                    await self._carry_out(steps)
                    tries = pauses()
                except Unavailable as e:
                    self._gateway.fault = str(e)
                    self._queue.extendleft(step.write for step in reversed(steps))
                    await asyncio.sleep(next(tries))
                except Full as e:
                    await self._only_deletes(steps, e)
                except StoreError as e:
                    for step in steps:
                        _refuse(step.write, e)
                except BaseException:  # the end of the store, or a fault of ours
                    self._fenced_at = 0
                    for step in steps:
                        problem = f"the write of {step.write.key} was cut off and may or may not have happened"
                        _refuse(step.write, Unsure(f"{problem}; read it again"))
                    raise

    async def keep_fence(self) -> None:
        """To be called well within the fence's time to live; a fence that is lost is set up again by the next batch."""
        if self._lease:
            await self._gateway.ask(KEEP_ALIVE, pb.LeaseRequest(id=self._lease))

    async def close(self) -> None:
        for write in self._queue:
            _refuse(write, Closed())
        for write in self._waiting.values():
            _refuse(write, Unsure(f"the store was closed: the write of {write.key} may or may not have happened"))
        if self._lease:
            await self._gateway.ask(REVOKE, pb.LeaseRequest(id=self._lease), patience_s=0)

    async def watch_patience(self) -> None:
        """For ever: tell those who have waited too long. No timer each: they would be a good part of a write's cost."""
        while True:
            await asyncio.sleep(TICK_S)
            now = asyncio.get_running_loop().time()
            for write in [write for write in self._waiting.values() if write.until <= now]:
                self._give_up(write)

    def _give_up(self, write: Write) -> None:
        fault, waited = self._gateway.fault, f"within {self._gateway.patience_s:.0f} s"
        if write.done in self._sent:
            problem = f"no answer {waited}: the write of {write.key} may or may not have happened; read it again"
            _refuse(write, Unsure(f"{fault}: {problem}"))
        else:
            _refuse(write, Unavailable(f"{fault}: {write.key} was not written {waited}"))

    # -- a batch

    def _take(self) -> list[BatchStep]:
        """The oldest writes, one per key and at most one delete; the others keep their order."""
        feed = self._feed
        feed.written = {key: own for key, own in feed.written.items() if own.revision > feed.table.revision}
        steps: list[BatchStep] = []
        later: list[Write] = []
        busy: set[Key] = set()
        size = deletes = 0
        while self._queue and len(steps) < MOST:
            write = self._queue.popleft()
            if write.done.done():
                continue  # its caller gave up before it was sent
            if write.key in busy or (write.deletes and deletes):
                later.append(write)
            elif step := self._step(write, DELETE_PLACE if write.deletes else len(steps) + 1):
                if size + len(step.data) > MOST_BYTES:
                    later.append(write)
                    break
                steps.append(step)
                size += len(step.data)
                deletes += write.deletes
            busy.add(write.key)
        self._queue.extendleft(reversed(later))
        return sorted(steps, key=lambda step: step.place)

    def _step(self, write: Write, place: int) -> BatchStep | None:
        old = write.seen or self._latest(write.key)
        try:
            new = write.decide(old.object, str(place))
        except StoreError:
            return BatchStep(write, old, place)
        except Exception as e:
            _refuse(write, e)
            return None
        if new is old.object:
            return BatchStep(write, old, place)
        data = b"" if write.deletes else encode(new)
        if len(data) > MOST_BYTES:
            _refuse(write, StoreError(f"{write.key} has {len(data)} bytes; etcd takes {MOST_BYTES}"))
            return None
        return BatchStep(write, old, place, new, data)

    def _latest(self, key: Key) -> Seen:
        own = self._feed.written.get(key)
        latest = own.object if own else self._feed.table.find(key)
        return Seen(latest, self._feed.line.main(int(latest.metadata.resource_version)) if latest else 0)

    async def _carry_out(self, steps: Sequence[BatchStep]) -> None:
        """Raises Unavailable when nothing of it happened."""
        if not any(step.new for step in steps):
            return self._settle(steps, await self._gateway.ask(TXN, self._nested(steps)))
        if not self._fenced_at:
            await self._move_fence()
        self._sent = frozenset(step.write.done for step in steps)
        size = sum(len(step.data) for step in steps)
        self.sent_bytes += size
        self._feed.sent = {s.write.key: Sent(s.data, s.new, s.place) for s in steps if s.new and s.data}
        try:
            if all(step.new for step in steps) and (at := await self._try_whole(steps)):
                return self._settle_whole(steps, at)
            return self._settle(steps, await self._fenced(self._nested(steps)))
        except Unsure:
            return await self._find_out(steps)
        except Unavailable:
            self.sent_bytes -= size
            raise
        finally:
            self._sent = frozenset()

    async def _try_whole(self, steps: Sequence[BatchStep]) -> int:
        """All or nothing. Returns etcd's revision of it; 0: not every object is as was thought."""
        answer = await self._fenced(self._flat(steps))
        return answer.header.revision if answer.succeeded else 0

    async def _fenced(self, batch: pb.TxnRequest) -> pb.TxnResponse:
        """Raises Unavailable when the fence is not where it was, and Unsure."""
        self._batch += 1
        batch.compare.append(changed_at(self._fence, self._fenced_at))
        batch.success.append(put_op(self._layout.mark, f"{self._name}/{self._batch}".encode()))
        batch.failure.append(read_op(self._fence))
        answer = await self._gateway.once(TXN, batch)
        if not answer.succeeded:
            kvs = answer.responses[0].response_range.kvs
            if not kvs or kvs[0].mod_revision != self._fenced_at:
                self._fenced_at = 0
                raise Unavailable("the fence was lost")
        return answer

    def _flat(self, steps: Sequence[BatchStep]) -> pb.TxnRequest:
        """Made in place: a message that is handed over is copied."""
        batch = pb.TxnRequest()
        for step in steps:
            path, expected = self._layout.path(step.write.key), batch.compare.add()
            expected.target, expected.key, expected.mod_revision = pb.COMPARE_TARGET_MOD, path, step.old.main
            if step.write.deletes:
                batch.success.add().request_delete_range.key = path
            else:
                put = batch.success.add().request_put
                put.key, put.value = path, step.data
        return batch

    def _nested(self, steps: Sequence[BatchStep]) -> pb.TxnRequest:
        """Each step under its own condition; one that does not hold tells what is there."""
        batch = pb.TxnRequest()
        for step in steps:
            path, nested = self._layout.path(step.write.key), batch.success.add().request_txn
            expected = nested.compare.add()
            expected.target, expected.key = pb.COMPARE_TARGET_MOD, path
            expected.mod_revision = step.old.main if step.new else -1  # which never holds: it only looks
            if step.write.deletes:
                nested.success.add().request_delete_range.key = path
            else:
                put = nested.success.add().request_put
                put.key, put.value = path, step.data
            nested.failure.add().request_range.key = path
        return batch

    def _settle_whole(self, steps: Sequence[BatchStep], main: int) -> None:
        for step in steps:
            if step.new:  # always, or it would not have been tried
                self._happened(step.write, step.new, self._feed.line.revision(main, step.place))

    def _settle(self, steps: Sequence[BatchStep], answer: pb.TxnResponse) -> None:
        for step, outcome in zip(steps, answer.responses, strict=False):
            inner = outcome.response_txn
            if inner.succeeded and step.new:
                self._happened(step.write, step.new, self._feed.line.revision(answer.header.revision, step.place))
            else:
                self._reconsider(step.write, inner.responses[0].response_range.kvs)

    def _happened(self, write: Write, new: Object, at: int) -> None:
        made = at_revision(new, at)
        self._feed.written[write.key] = Written(at, None if write.deletes else made)
        if not write.done.done():
            write.done.set_result(made)

    def _reconsider(self, write: Write, kvs: Sequence[pb.KeyValue]) -> None:
        """Something else is there than was thought: this decides, or the write is tried once more on top of it."""
        try:
            current = self._feed.line.restored(write.key, kvs[0], self._feed.strays) if kvs else None
            new = write.decide(current, "")
        except Exception as e:
            return _refuse(write, e)
        if new is not current:
            return self._queue.appendleft(write._replace(seen=Seen(current, kvs[0].mod_revision if kvs else 0)))
        if not write.done.done():
            write.done.set_result(new)
        return None

    async def _only_deletes(self, steps: Sequence[BatchStep], full: Full) -> None:
        """Fence and mark need room, so it goes without: a delete of which etcd says nothing is Unsure."""
        for step in steps:
            if step.new and not step.write.deletes:
                _refuse(step.write, full)
                continue
            try:
                answer = await self._gateway.once(TXN, self._nested([step]))
            except StoreError as e:
                _refuse(step.write, e)
            else:
                self._feed.unmarked = max(self._feed.unmarked, answer.header.revision if step.new else 0)
                self._settle([step], answer)

    # -- a batch that was not answered

    async def _find_out(self, steps: Sequence[BatchStep]) -> None:
        """Raises Unavailable when the batch did not happen. Until etcd answers there is nothing else to do."""
        batch, loads = self._batch, self._feed.loads
        for pause_s in pauses():
            try:
                await self._feed.reached(await self._move_fence())
                number, main = self._feed.marks.get(self._name, (0, 0))
                if number == batch:
                    return await self._read_back(steps, main)
                break
            except Unavailable:
                await asyncio.sleep(pause_s)
        if self._feed.loads == loads:
            raise Unavailable("a batch was lost on its way")
        raise Unsure("etcd did not answer and then forgot: the write may or may not have happened; read it again")

    async def _read_back(self, steps: Sequence[BatchStep], main: int) -> None:
        """What became of the steps of a batch that happened at etcd's revision `main`."""
        reads = tuple(
            # A put shows at the batch's revision; a delete is known by what it deleted, just before.
            read_op(self._layout.path(step.write.key), main - step.write.deletes)
            for step in steps
        )
        answer = await self._gateway.ask(TXN, pb.TxnRequest(success=reads))
        for step, outcome in zip(steps, answer.responses, strict=True):
            kvs = outcome.response_range.kvs
            changed_at = kvs[0].mod_revision if kvs else 0
            if step.new and changed_at == (step.old.main if step.write.deletes else main):
                self._happened(step.write, step.new, self._feed.line.revision(main, step.place))
            else:
                self._queue.appendleft(step.write)

    async def _move_fence(self) -> int:
        """Batches sent so far can happen no more. Returns etcd's revision of the last mark before the move."""
        self._fenced_at = 0
        grant = await self._gateway.ask(GRANT, pb.LeaseGrantRequest(ttl=FENCE_TTL_S))
        move = put_op(self._fence, b"", grant.id), read_op(self._layout.mark)
        answer = await self._gateway.ask(TXN, pb.TxnRequest(success=move))
        self._lease, self._fenced_at = grant.id, answer.header.revision
        marks = answer.responses[1].response_range.kvs
        return marks[0].mod_revision if marks else 0


def _refuse(write: Write, error: Exception) -> None:
    if not write.done.done():
        write.done.set_exception(error)
