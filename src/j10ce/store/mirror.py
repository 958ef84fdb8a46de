"""The one informer: list, watch, list again when the history was compacted or the store was away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import structlog

from j10ce.errors import Closed, Compacted, StoreError
from j10ce.model.kinds import Object
from j10ce.store.patience import pauses
from j10ce.store.revise import Key, key_of
from j10ce.store.store import Event, Listing, Store

log = structlog.get_logger()


def mirror(store: Store, kind: str) -> Mirror:
    return Mirror(store, kind)


class Mirror:
    """What a store holds of one kind. `held` may be read at any time; it is complete once `synced` is set."""

    def __init__(self, store: Store, kind: str) -> None:
        self._store, self._kind = store, kind
        self.held: dict[Key, Object] = {}
        self.synced = asyncio.Event()

    async def changes(self) -> AsyncIterator[Event]:
        """Keep `held` current, for ever, and tell each change after it was taken in. One consumer only.

        The first listing arrives as ADDED. After a compaction, or while the store was away, what was missed arrives as
        differences: changes that cancelled each other out, and states in between, are not told. A store that is away
        leaves `held` as it was. Raises Closed.
        """
        tries = pauses(first_s=0.1, most_s=5.0)
        while True:
            try:
                listing = await self._store.list(self._kind)
                for event in differences(self.held, listing):
                    self._take(event)
                    yield event
                self.synced.set()
                tries = pauses(first_s=0.1, most_s=5.0)
                async for event in self._store.watch(self._kind, listing.revision):
                    self._take(event)
                    yield event
            except Compacted:
                continue
            except Closed:
                raise
            except StoreError as e:
                log.warning("store.fail", kind=self._kind, error=str(e))
                await asyncio.sleep(next(tries))

    def _take(self, event: Event) -> None:
        if event.type == "DELETED":
            self.held.pop(key_of(event.object), None)
        else:
            self.held[key_of(event.object)] = event.object


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
