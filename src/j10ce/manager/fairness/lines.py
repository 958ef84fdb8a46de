"""Large lines of watches: made one in a turn of the event loop, and of each caller so many bytes on their way."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from j10ce.daemon.bell import Bell
from j10ce.daemon.pace import Slices
from j10ce.manager.asgi.requests import LARGE
from j10ce.manager.fairness.rate_limits import Counts, share_of
from j10ce.manager.identity import current
from j10ce.model.kinds import Object
from j10ce.model.schema import encode

MOST_WEIGHED: Final = 20_000


class Lines:
    """One change wakes all who watch: what is nothing for one of them adds up."""

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self._held, self._left = Counts(), Bell()
        self._weights: OrderedDict[tuple[str, str], int] = OrderedDict()

    def weight(self, obj: Object) -> int:
        """The bytes of an object, found out once for all who watch it."""
        revision = (obj.metadata.uid, obj.metadata.resource_version)
        size = self._weights.get(revision)
        if size is None:
            size = self._weights[revision] = len(encode(obj))
            if len(self._weights) > MOST_WEIGHED:
                self._weights.popitem(last=False)
        return size

    def is_large(self, obj: Object) -> bool:
        return self.weight(obj) > LARGE

    def room(self, obj: Object) -> AbstractAsyncContextManager[None]:
        """While a line with this object is made and sent."""
        return self.room_for(self.weight(obj))

    @asynccontextmanager
    async def room_for(self, size: int) -> AsyncIterator[None]:
        """While so many bytes are made and sent. Whoever does not read what it watches waits for itself."""
        caller = current().caller
        share, held = share_of(caller, writes=False), self._held
        while share is not None and held[caller.name] and held[caller.name] + size > share.answer_bytes:
            await self._left.wait()
        held.add(caller.name, size)
        try:
            await self._slices.alone()
            yield
        finally:
            held.add(caller.name, -size)
            self._left.ring()
