"""The changes of one kind, heard from the API server by one watch, however many listen here."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import aclosing
from typing import Final, Literal

import msgspec
import structlog
from msgspec import Struct

from j10ce.errors import Closed, Compacted, Denied, StoreError, Unavailable
from j10ce.store.kube_client import KubeClient, WatchLine
from j10ce.store.kube_failure import Later
from j10ce.store.kube_resource import Resource, Unreadable
from j10ce.store.patience import pauses
from j10ce.store.revise import key_of
from j10ce.store.store import Event
from j10ce.store.table import KEPT_BYTES, Log, Watch

Change = Literal["ADDED", "MODIFIED", "DELETED"]
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
        self._at = 0  # the API server has told us everything up to here
        self._seen = 0  # a revision of this collection is at most this, as far as we know
        self._closed = False

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
        tries = pauses()
        try:
            while True:
                pause_s = 0.0
                try:
                    if await self._follow():
                        tries = pauses()
                except Compacted as e:
                    log.info("store.reload", kind=self._resource.kind, reason=str(e))
                    return
                except (StoreError, Denied) as e:
                    log.warning("store.fail", kind=self._resource.kind, error=str(e))
                    pause_s = e.after_s if isinstance(e, Later) else 0
                await asyncio.sleep(max(pause_s, next(tries)))
        finally:
            self._end()

    def close(self) -> None:
        self._closed = self._log.closed = True
        self._log.wake()

    async def _follow(self) -> bool:
        """Whether the API server told us anything before it ended the watch. Raises Compacted."""
        path, before = self._resource.collection(), self._at
        present = await self._client.revision(path)
        if present < self._at:
            raise Compacted(f"the API server is at revision {present}, behind {self._at}: its store was restored")
        async with aclosing(self._client.watch(path, str(self._at))) as told:
            async for line in told:
                self._take(line)
        return self._at > before

    def _take(self, line: WatchLine) -> None:
        revision = _revision(line)
        if revision <= self._at:
            return
        if (line.type == "ADDED" or line.type == "MODIFIED" or line.type == "DELETED") and (
            event := self._event(line.type, line.object, str(revision))
        ):
            self._log.append(event, len(bytes(line.object)))
            self._log.wake()
            self._log.trim(self._kept, KEPT_BYTES)
        self._at = revision
        self._seen = max(self._seen, revision)

    def _event(self, type_: Change, text: msgspec.Raw, revision: str) -> Event | None:
        """None for what cannot be read, and could not before: to us, it does not exist."""
        unread = self._resource.unread
        try:
            obj = self._resource.read(text)
        except Unreadable as e:
            if e.key not in unread and type_ != "ADDED":
                raise Compacted(str(e)) from None  # whoever holds it learns from a listing that it is gone
            self._resource.skip(e, gone=type_ == "DELETED")
            return None
        key = key_of(obj)
        if key in unread:
            unread.discard(key)
            type_ = "ADDED" if type_ == "MODIFIED" else type_
        return Event(type_, obj, revision)

    def _end(self) -> None:
        self._running = False
        if not self._closed:
            self._log.horizon = sys.maxsize
            self._log.wake()


class _Meta(Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Versioned(Struct):
    metadata: _Meta = _Meta()


def _revision(line: WatchLine) -> int:
    try:
        return int(msgspec.json.decode(line.object, type=_Versioned).metadata.resource_version)
    except ValueError as e:  # MsgspecError is one
        raise Unavailable(f"the API server told of a {line.type} without a revision: {e}") from None
