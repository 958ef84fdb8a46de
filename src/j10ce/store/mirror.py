"""The one informer: list, watch, list again when the history was compacted or the store was away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Protocol

import structlog

from j10ce.errors import Closed, Compacted, Denied, NotFound, StoreError
from j10ce.http.retry import pauses
from j10ce.model.kinds import Object
from j10ce.model.stored import Event, Key, Listing, key_of
from j10ce.store.order import Order

log = structlog.get_logger()


class MirrorSource(Protocol):
    """As much of a Store as a mirror needs."""

    async def list(self, kind: str) -> Listing: ...

    def watch(self, kind: str, since: str) -> AsyncIterator[Event]: ...


class Mirror:
    """What a store holds of one kind, be it one of ours or of Kubernetes' own: only names and revisions are looked at.

    `held` may be read at any time; it is complete once `synced` is set.
    """

    def __init__(self, store: MirrorSource, kind: str) -> None:
        self._store, self._kind = store, kind
        self.held: dict[Key, Object] = {}
        self._order = Order(self.held)
        self.synced = asyncio.Event()
        self._revision = ""  # of the last change that `held` has taken in

    def get(self, key: Key) -> Object:
        """Raises NotFound."""
        obj = self.held.get(key)
        if obj is None:
            raise NotFound(f"{key} does not exist")
        return obj

    def listing(self, namespace: str | None = None) -> Listing:
        """As the store's own list, of a moment ago, and also while the store is away. Once `synced`."""
        return Listing(tuple(map(self.held.__getitem__, self._order.within(namespace))), self._revision)

    async def changes(self) -> AsyncIterator[Event]:
        """Keep `held` current, for ever, and tell each change after it was taken in. One consumer only.

        The first listing arrives as ADDED. After a compaction, or while the store was away, what was missed arrives as
        differences: changes that cancelled each other out, and states in between, are left out. A store that is away
        leaves `held` as it was, and so does one that refuses us: rights may come later. Raises Closed.
        """
        tries, logged = pauses(first_s=0.1, most_s=5.0), ""
        while True:
            try:
                listing = await self._store.list(self._kind)
                for event in differences(self.held, listing):
                    yield self._take(event)
                self._revision = listing.revision
                self.synced.set()
                tries, logged = pauses(first_s=0.1, most_s=5.0), ""
                async for event in self._store.watch(self._kind, listing.revision):
                    self._revision = event.revision
                    yield self._take(event)
            except Compacted:
                continue
            except Closed:
                raise
            except (StoreError, Denied) as e:
                if str(e) != logged:
                    log.warning("store.fail", kind=self._kind, error=str(e))
                logged = str(e)
                await asyncio.sleep(next(tries))

    def _take(self, event: Event) -> Event:
        """The same, with what it was before where the store did not know."""
        key = key_of(event.object)
        old = self.held.get(key)
        if event.type != "DELETED":
            self.held[key] = event.object
        elif old is not None:
            del self.held[key]
        self._order.moved(key)
        return event if event.old is not None or old is None else event._replace(old=old)


def differences(held: dict[Key, Object], listing: Listing) -> Iterator[Event]:
    """The changes that lead from what is held to what was listed; what went missing goes first."""
    listed = {key_of(obj): obj for obj in listing.items}
    for key, obj in list(held.items()):
        if key not in listed:
            yield Event("DELETED", obj, listing.revision, obj)
    for key, obj in listed.items():
        old = held.get(key)
        if old is None:
            yield Event("ADDED", obj, obj.metadata.resource_version)
        elif old.metadata.resource_version != obj.metadata.resource_version:
            yield Event("MODIFIED", obj, obj.metadata.resource_version, old)
