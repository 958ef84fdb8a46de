"""The informer outlives a store that is away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from j10ce.errors import Closed, StoreError, Unavailable
from j10ce.model.stored import Event, Listing
from j10ce.store.memory import MemoryStore
from j10ce.store.mirror import Mirror
from j10ce.testing.build import WALL, reservation
from j10ce.testing.conformance_store import KIND, soon


class Away(MemoryStore):
    """A store whose connection breaks: its next calls fail, and so do running watches at their next change."""

    def __init__(self) -> None:
        super().__init__(lambda: WALL)
        self.failures: list[StoreError] = []

    async def list(self, kind: str, namespace: str | None = None) -> Listing:
        self.fail()
        return await super().list(kind, namespace)

    def watch(self, kind: str, since: str) -> Any:
        return self.broken(super().watch(kind, since))

    async def broken(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        async for event in events:
            self.fail()
            yield event

    def fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)


async def test_a_mirror_waits_for_a_store_that_is_away_at_the_start() -> None:
    store = Away()
    made = await store.put(reservation("db"))
    store.failures = [Unavailable("etcd does not answer")] * 3
    followed = Mirror(store, KIND)
    assert (await soon(anext(followed.changes()))).object == made
    assert not store.failures


async def test_a_mirror_tells_what_it_missed_while_the_store_was_away() -> None:
    store = Away()
    goes = await store.put(reservation("goes"))
    changes = (followed := Mirror(store, KIND)).changes()
    assert (await soon(anext(changes))).object == goes
    store.failures = [Unavailable("the watch broke"), StoreError("refused"), Unavailable("still away")]
    await store.delete(KIND, "default", "goes")
    await store.put(reservation("comes"))
    events = [await soon(anext(changes)) for _ in range(2)]
    assert [(event.type, event.object.metadata.name) for event in events] == [("DELETED", "goes"), ("ADDED", "comes")]
    assert followed.synced.is_set()
    assert not store.failures


async def test_what_is_held_stays_while_the_store_is_away() -> None:
    store = Away()
    held = await store.put(reservation("db"))
    changes = (followed := Mirror(store, KIND)).changes()
    await soon(anext(changes))
    store.failures = [Unavailable("away")] * 2
    await store.put(reservation("another"))
    assert list(followed.held.values()) == [held]
    assert (await soon(anext(changes))).object.metadata.name == "another"
    assert len(followed.held) == 2


async def test_closing_the_store_ends_the_mirror() -> None:
    store = Away()
    await store.put(reservation("db"))
    changes = Mirror(store, KIND).changes()
    await soon(anext(changes))
    await store.close()
    with pytest.raises(Closed):
        await soon(anext(changes))


async def test_a_listing_of_a_mirror_is_ordered_and_a_watch_from_it_goes_on() -> None:
    store = MemoryStore(lambda: WALL)
    for name in ("b", "a"):
        await store.put(reservation(name))
    changes = (followed := Mirror(store, KIND)).changes()
    for _ in range(2):
        await soon(anext(changes))
    late = await store.put(reservation("c"))
    assert (await soon(anext(changes))).object == late
    listing = followed.listing()
    assert [obj.metadata.name for obj in listing.items] == ["a", "b", "c"]
    assert not followed.listing("elsewhere").items
    after = await store.put(reservation("d"))
    assert (await soon(anext(store.watch(KIND, listing.revision)))).object == after
