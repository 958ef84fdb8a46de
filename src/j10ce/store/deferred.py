"""A watch that is opened by the first wait for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from j10ce.errors import Closed
from j10ce.model.stored import Event
from j10ce.store.table import Watch


class DeferredWatch:
    """A wait may be cancelled and repeated: nothing is lost. `open_` raises Closed once the store is closed."""

    def __init__(self, open_: Callable[[], Awaitable[Watch]]) -> None:
        self._open = open_
        self._watch: Watch | None = None

    def __aiter__(self) -> DeferredWatch:
        return self

    async def __anext__(self) -> Event:
        if self._watch is None:
            try:
                self._watch = await self._open()
            except Closed:
                raise StopAsyncIteration from None
        return await anext(self._watch)
