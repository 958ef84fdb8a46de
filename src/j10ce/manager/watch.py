"""A watch of objects, as lines of JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final, NamedTuple

import msgspec

from j10ce.errors import Compacted
from j10ce.manager import failure
from j10ce.manager.encoded import Form, line
from j10ce.manager.query import Query
from j10ce.manager.stream import seen_through
from j10ce.model.catalogue import Kind
from j10ce.store.store import Event

BOOKMARK_S: Final = 15.0
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"  # Kubernetes' mark that the present state has been told


class Watched(NamedTuple):
    """A watch of objects: what is shown first, what then, how, and to whom."""

    kind: Kind
    query: Query
    form: Form
    first: tuple[Event, ...]  # the state at the beginning, for a watch that did not say from where
    events: AsyncIterator[Event]
    since: str

    async def lines(self) -> AsyncGenerator[bytes]:
        for event in self.first:
            yield self._line(event)
        if self.query.initial and self.query.bookmarks:
            yield self._bookmark(self.since, annotations={INITIAL_EVENTS_END: "true"})
        at = self.since
        while True:
            try:
                async with asyncio.timeout(BOOKMARK_S):
                    event = await anext(self.events)
            except TimeoutError:
                if self.query.bookmarks:
                    yield self._bookmark(at)
                continue
            except StopAsyncIteration:
                return
            except Compacted as e:
                yield line("ERROR", msgspec.json.encode(failure.status(e)))
                return
            at = event.revision
            if (shown := seen_through(self.query, event)) is not None:
                yield self._line(shown)

    def _line(self, event: Event) -> bytes:
        return line(event.type, self.form.object(event.object))

    def _bookmark(self, revision: str, **more: Any) -> bytes:
        return line("BOOKMARK", self.form.bookmark(self.kind, {"resourceVersion": revision, **more}))
