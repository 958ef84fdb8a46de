"""The changes of one kind, heard from the API server by one watch, however many listen here."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

import structlog

from j10ce.errors import Closed, Compacted, Denied, StoreError
from j10ce.http.retry import asked_s, pauses
from j10ce.kube.client import KubeClient
from j10ce.kube.resource import Resource
from j10ce.kube.wire import WatchLine, event_of, revision_of
from j10ce.store.table import KEPT_BYTES, Log, Watch

LONGEST_REVISION: Final = 19  # digits
log = structlog.get_logger()


class Feed:
    """Begins with the first watch, at its revision; ends when its history has a hole, and may begin again.

    It keeps the latest changes and no objects: reads go to the API server.
    """

    def __init__(self, client: KubeClient, resource: Resource, start: Callable[[Feed], None], *, kept: int) -> None:
        """`start` has `run` carried out in the background."""
        self._client, self._resource, self._start, self._kept = client, resource, start, kept
        self._log, self._running = Log(0), False
        self._at = 0  # the API server has sent us everything up to here
        self._seen = 0  # a revision of this collection is at most this, as far as we know
        self._closed = False
        self.refused = ""  # why the API server does not let us watch

    async def watch(self, since: str) -> Watch:
        """Raises Compacted: also for what cannot be a revision of this API server."""
        at = int(since) if since.isdecimal() and len(since) <= LONGEST_REVISION else 0
        if at > self._seen:
            self._seen = max(self._seen, await self._client.revision(self._resource.collection()))
        if not 0 < at <= self._seen:
            raise Compacted(f"revision {since} is not of this store: list again")
        if self._closed:
            raise Closed()
        if not self._running:
            self._log, self._at, self._running = Log(at), at, True
            self._start(self)
        self._log.check(at)
        return Watch(self._log, at)

    async def run(self) -> None:
        """Until changes were lost; whoever watches has to list again then."""
        tries, logged = pauses(), ""
        try:
            while True:
                pause_s = 0.0
                try:
                    if await self._follow():
                        tries, logged = pauses(), ""
                except Compacted as e:
                    log.info("store.reload", kind=self._resource.kind, reason=str(e))
                    return
                except (StoreError, Denied) as e:
                    if str(e) != logged:
                        log.warning("store.fail", kind=self._resource.kind, error=str(e))
                    logged = str(e)
                    self.refused = logged if isinstance(e, Denied) else ""
                    pause_s = asked_s(e)
                await asyncio.sleep(max(pause_s, next(tries)))
        finally:
            self._end()

    def close(self) -> None:
        self._closed = self._log.closed = True
        self._log.changed.ring()

    async def _follow(self) -> bool:
        """Whether the API server sent us anything before it ended the watch. Raises Compacted."""
        path, before = self._resource.collection(), self._at
        present = await self._client.revision(path)
        self.refused = ""
        if present < self._at:
            raise Compacted(f"the API server is at revision {present}, behind {self._at}: its store was restored")
        async with aclosing(self._client.watch(path, str(self._at))) as lines:
            async for line in lines:
                self._take(line)
        return self._at > before

    def _take(self, line: WatchLine) -> None:
        revision = revision_of(line)
        if int(revision) <= self._at:
            return
        if event := event_of(self._resource, line, revision):
            self._log.append(event, len(bytes(line.object)))
            self._log.changed.ring()
            self._log.trim(self._kept, KEPT_BYTES)
        self._at = int(revision)
        self._seen = max(self._seen, self._at)

    def _end(self) -> None:
        self._running = False
        if not self._closed:
            self._log.horizon = sys.maxsize
            self._log.changed.ring()
