"""Large requests: few of one caller at once, and few of all callers together.

What waits is not read, so it stays in the sender's hands: of a body that is being read all is in our memory, and its
object a second and a third time while it is judged.
"""

from __future__ import annotations

import asyncio
from typing import Final

from j10ce.daemon.bell import Bell
from j10ce.http.status import Refusal
from j10ce.manager.asgi.requests import LARGE
from j10ce.manager.fairness.rate_limits import CLOSE, Counts
from j10ce.manager.identity import Caller

MOST_OF_ONE: Final = 2
MOST_TOGETHER: Final = 8
MOST_DIGITS: Final = 10  # of a length; a longer one is refused
PATIENCE_S: Final = 10.0  # then whoever waits is asked to come again


class Large:
    """Who has large requests under way."""

    def __init__(self) -> None:
        self._open, self._left = Counts(), Bell()

    async def enter(self, caller: Caller) -> None:
        """Until `leave`; raises Refusal 429."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while self._open[caller.name] >= MOST_OF_ONE or self._open.total >= MOST_TOGETHER:
                    await self._left.wait()
        except TimeoutError:
            message = f"requests above {LARGE} bytes are read one after the other, and others are before this one"
            raise Refusal(429, f"{message}; try again in 1 s", {"retry-after": "1", **CLOSE}) from None
        self._open.add(caller.name, 1)

    def leave(self, caller: Caller) -> None:
        self._open.add(caller.name, -1)
        self._left.ring()


class RequestBody:
    """What one request sends: it enters as a large one before it is read, or as soon as it turns out to be one."""

    def __init__(self, large: Large, caller: Caller, claimed: bytes) -> None:
        self._large, self._caller = large, caller
        self._size = int(claimed) if claimed.isdigit() and len(claimed) < MOST_DIGITS else 0
        self._heard, self._entered = 0, False

    async def room(self) -> None:
        """Before more of it is read; raises Refusal 429."""
        if not self._entered and max(self._size, self._heard) > LARGE:
            await self._large.enter(self._caller)
            self._entered = True

    def heard(self, size: int) -> None:
        self._heard += size

    def close(self) -> None:
        if self._entered:
            self._entered = False
            self._large.leave(self._caller)
