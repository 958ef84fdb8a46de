"""The store of a fleet: etcd v3, behind a table that serves reads and watches and a writer that batches.

One task keeps all of it going, from the first call until `close`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from j10ce.errors import Closed, Conflict, StoreError
from j10ce.http.retry import end_if_cancelled
from j10ce.model.kinds import Object
from j10ce.model.stored import Key, Listing, Part, key_of
from j10ce.store.elector import Elector
from j10ce.store.etcd.address import EtcdAddress
from j10ce.store.etcd.elector import etcd_elector
from j10ce.store.etcd.feed import Feed
from j10ce.store.etcd.gateway import PATIENCE_S, Gateway
from j10ce.store.etcd.proto import etcd_pb2 as pb
from j10ce.store.etcd.upkeep import Fill, compact, keep_fence
from j10ce.store.etcd.wire import TXN, Keyspace, changed_at
from j10ce.store.etcd.writer import Writer
from j10ce.store.reading import refuse_partial
from j10ce.store.revise import kept, removed, revise
from j10ce.store.store import ANY, Discarding, Expect, Filling, Movable, Store
from j10ce.store.table import KEPT_CHANGES, DeferredWatch, Watch

log = structlog.get_logger()
RESTART_S: Final = 1.0


class EtcdStore:
    def __init__(
        self,
        address: EtcdAddress,
        wall: Callable[[], float],
        *,
        kept: int = KEPT_CHANGES,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._gateway, self._layout = Gateway(address, patience_s=patience_s), Keyspace(address.prefix)
        self._wall = wall
        self._feed = Feed(self._gateway, self._layout, kept=kept)
        self._writer = Writer(self._gateway, self._layout, self._feed)
        self._fill = Fill(self._gateway, self._layout, address.quota, lambda: self._writer.sent_bytes)
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        await self._fresh()
        return self._feed.get(Key(kind, namespace, name))

    async def list(self, kind: str, namespace: str | None = None) -> Listing:
        await self._fresh()
        return self._feed.table.list(kind, namespace)

    async def put(self, obj: Object, *, expect: str | Expect = ANY, part: Part = "spec") -> Object:
        def decide(old: Object | None, mark: str) -> Object:
            return revise(old, obj, expect=expect, part=part, revision=mark, wall=self._wall())

        self._start()
        return await self._writer.write(key_of(obj), decide)

    async def restore(self, obj: Object) -> Object:
        self._start()
        return await self._writer.write(key_of(obj), lambda old, mark: kept(old, obj, revision=mark))

    async def delete(self, kind: str, namespace: str, name: str, *, expect: str | Expect = ANY) -> Object:
        key = Key(kind, namespace, name)

        def decide(old: Object | None, mark: str) -> Object:
            return removed(old, key, expect=expect, revision=mark)

        self._start()
        return await self._writer.write(key, decide, deletes=True)

    async def discard(self, kind: str, namespace: str, name: str) -> None:
        """It moves no mark, as every delete where etcd is full: whoever reads next waits for it."""
        key = Key(kind, namespace, name)
        await self._fresh()
        main = self._feed.unread.get(key)
        if main is None:
            self._feed.get(key)
            raise Conflict(f"{key} can be read: delete it as any other")
        path = self._layout.path(key)
        batch = pb.TxnRequest(compare=[changed_at(path, main)])
        batch.success.add().request_delete_range.key = path
        answer = await self._gateway.once(TXN, batch)
        if not answer.succeeded:
            raise Conflict(f"{key} changed meanwhile; look at it again")
        self._feed.unmarked = max(self._feed.unmarked, answer.header.revision)

    async def snapshot(self) -> Listing:
        await self._fresh()
        refuse_partial(self._feed.unread)
        return self._feed.table.everything()

    def watch(self, kind: str, since: str) -> DeferredWatch:
        return DeferredWatch(partial(self._watch_from, kind, since))

    async def _watch_from(self, kind: str, since: str) -> Watch:
        """Raises Compacted. A revision that this process has not seen yet may be another manager's answer."""
        if self._closed:
            raise Closed()
        table = self._feed.table
        if not table.knows(since):
            await self._fresh()
        return table.watch(kind, since)

    def unreadable(self) -> dict[str, int]:
        """How many stored objects of each kind are left out because they cannot be read."""
        return dict(Counter(key.kind for key in self._feed.unread))

    def fullness(self) -> float:
        return self._fill.share

    def elector(self, identity: str) -> Elector:
        return etcd_elector(self._gateway, self._layout, identity)

    async def close(self) -> None:
        self._closed = True
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])
        with suppress(StoreError):  # what is left behind expires
            await self._writer.close()
        self._feed.table.close()
        await self._gateway.close()

    async def _fresh(self) -> None:
        self._start()
        await self._feed.fresh()

    def _start(self) -> None:
        if self._closed:
            raise Closed()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="etcd-store")

    async def _run(self) -> None:
        """A fault of ours is logged, and everything begins afresh: nobody would restart a manager for it."""
        while True:
            failure: BaseException | None = None
            try:
                # In a task of its own: a TaskGroup that fails leaves its task looking cancelled, before Python 3.13.
                await asyncio.get_running_loop().create_task(self._keep_going())
            except* Exception as e:
                failure = e  # logged below: what is raised inside of `except*` comes out wrapped
            end_if_cancelled()
            log.error("store.fail", exc_info=failure)
            self._feed.begin_again("after a fault")
            await asyncio.sleep(RESTART_S)

    async def _keep_going(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._feed.run())
            group.create_task(self._feed.confirm())
            group.create_task(self._writer.run())
            group.create_task(self._writer.watch_patience())
            group.create_task(keep_fence(self._writer))
            group.create_task(compact(self._gateway, self._layout))
            group.create_task(self._fill.watch())


_: type[Store] = EtcdStore
__: type[Movable] = EtcdStore
___: type[Filling] = EtcdStore
____: type[Discarding] = EtcdStore
