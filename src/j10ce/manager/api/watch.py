"""A watch of objects, as lines of JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Final, NamedTuple

import msgspec

from j10ce.errors import Compacted
from j10ce.manager.api.forms import Form, line, whole
from j10ce.manager.api.query import Query
from j10ce.manager.api.stream import left_view, seen_through
from j10ce.manager.asgi import status
from j10ce.manager.asgi.requests import LARGE
from j10ce.manager.fairness.lines import Lines
from j10ce.model.catalogue import Kind
from j10ce.model.stored import Event

BOOKMARK_S: Final = 15.0
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"  # Kubernetes' mark that the present state has been sent


class ObjectWatch(NamedTuple):
    """A watch of objects: what is shown first, what then, how, and to whom."""

    kind: Kind
    query: Query
    form: Form
    first: tuple[Event, ...]  # the state at the beginning, for a watch that did not say from where
    events: AsyncIterator[Event]
    since: str
    large: Lines

    async def lines(self) -> AsyncGenerator[bytes]:
        for event in self.first:
            if not self.large.is_large(event.object):
                yield line(event.type, self._object(event))
                continue
            async with aclosing(self._pieces(event)) as pieces:
                async for piece in pieces:
                    yield piece
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
                yield line("ERROR", msgspec.json.encode(status.status(e)))
                return
            at = event.revision
            if (shown := seen_through(self.query, event)) is None:
                continue
            if not self.large.is_large(shown.object):
                yield line(shown.type, self._object(shown))
                continue
            async with aclosing(self._pieces(shown)) as pieces:
                async for piece in pieces:
                    yield piece

    async def _pieces(self, event: Event) -> AsyncGenerator[bytes]:
        """A line that is large: slices of bytes that all its watchers share."""
        async with self.large.room(event.object):
            before, _, after = line(event.type, b" ").partition(b" ")
            yield before
            for part in self.form.parts(event.object, kept=not left_view(event)):
                for at in range(0, len(part), LARGE):
                    yield part[at : at + LARGE]
            yield after

    def _object(self, event: Event) -> bytes:
        # What left the view of one watcher has a revision of another state, whose bytes are kept.
        return whole(self.form, event.object, kept=not left_view(event))

    def _bookmark(self, revision: str, **more: Any) -> bytes:
        return line("BOOKMARK", self.form.bookmark(self.kind, {"resourceVersion": revision, **more}))
