"""A watch as events in order, for the gRPC front end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from j10ce.manager import watch
from j10ce.manager.query import ANY_REVISION, Query
from j10ce.manager.stream import seen_through
from j10ce.manager.verbs import Verbs
from j10ce.model.catalogue import Kind
from j10ce.store.store import Event


async def watched(verbs: Verbs, kind: Kind, namespace: str | None, query: Query) -> AsyncIterator[Event | str]:
    """Changes as the caller sees them; a bare revision says where the watch stands. Raises Compacted."""
    query = query.within(namespace)
    at = query.since
    if at in ("", ANY_REVISION):
        listing = await verbs.list(kind, namespace, query._replace(limit=0, position=None))
        at = listing.revision
        for obj in listing.items:
            yield Event("ADDED", obj, obj.metadata.resource_version)
        yield at
    events = verbs.store.watch(kind.name, at)
    while True:
        try:
            async with asyncio.timeout(watch.BOOKMARK_S):
                event = await anext(events)
        except TimeoutError:
            yield at
            continue
        except StopAsyncIteration:
            return
        at = event.revision
        if (shown := seen_through(query, event)) is not None:
            yield shown
