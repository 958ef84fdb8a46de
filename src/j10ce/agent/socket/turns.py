"""Turns at what costs much and is asked by many: users wait for each other, root waits for no user.

Of one user at most one request waits in the line of all, so that whoever asks a hundred times is passed by whoever asks
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from j10ce.agent.socket.admission import Caller


class Turns:
    def __init__(self) -> None:
        self._own: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()  # by user, as long as one waits
        self._users = asyncio.Lock()

    @asynccontextmanager
    async def of(self, caller: Caller) -> AsyncIterator[None]:
        own = self._own.setdefault(caller.uid, asyncio.Lock())
        async with own:
            if caller.trusted:
                yield
                return
            async with self._users:
                yield
