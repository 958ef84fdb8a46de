"""Watches for the gRPC front end: events in order, and how any of them is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from j10ce.errors import QosError, Unreachable
from j10ce.manager.api import watch
from j10ce.manager.api.query import ANY_REVISION, Query
from j10ce.manager.api.stream import cut, seen_through
from j10ce.manager.api.verbs import Verbs
from j10ce.manager.grpc.visit import Visit
from j10ce.model.catalogue import Kind
from j10ce.model.stored import Event

STOPPING: Final = "this server stops: watch again elsewhere, from the last resource_version"


async def send_all(messages: AsyncGenerator[Any], visit: Visit, stop: asyncio.Event) -> None:
    """Until they end, the caller's ticket does, or the server stops. None among them is not sent. Raises QosError.

    Sent by the call's own task: what it takes of the event loop is counted there.
    """
    async with asyncio.TaskGroup() as group:
        stopping = group.create_task(stop.wait())
        failed = await _send(messages, visit, stopping)
        stopping.cancel()
    if failed is not None:
        raise failed


async def _send(messages: AsyncGenerator[Any], visit: Visit, stopping: asyncio.Task[Any]) -> QosError | None:
    """Ends with the failure that ended the watch."""
    deadline = asyncio.timeout(None)
    try:
        async with deadline:
            stopping.add_done_callback(partial(cut, deadline))
            await visit.context.send_initial_metadata(())
            async with aclosing(messages):
                async for message in messages:
                    await visit.tell(message)
    except QosError as e:
        return e
    except TimeoutError:
        if not deadline.expired():
            raise
        return Unreachable(STOPPING)
    return None


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
