"""Large requests: few of one caller at once, and few of all callers together.

What waits is not read, so it stays in the sender's hands: of a body that is being read all is in our memory, and its
object a second and a third time while it is judged. How large a message over gRPC is shows when it is there, so that
those that arrive are counted as well.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from j10ce.daemon.bell import Bell
from j10ce.http.status import Refusal
from j10ce.manager.asgi.requests import LARGE
from j10ce.manager.fairness.rate_limits import CLOSE, Counts
from j10ce.manager.identity import Caller

MOST_OF_ONE: Final = 2
MOST_TOGETHER: Final = 8
MOST_ARRIVING: Final = 8  # messages of one caller over gRPC
MOST_ARRIVING_TOGETHER: Final = 64
MOST_DIGITS: Final = 10  # of a length; a longer one is refused
PATIENCE_S: Final = 10.0  # then whoever waits is asked to come again


class Large:
    """Who has large requests under way, or some that may be."""

    def __init__(self, of_one: int = MOST_OF_ONE, together: int = MOST_TOGETHER) -> None:
        self._of_one, self._together = of_one, together
        self._open, self._left = Counts(), Bell()

    async def enter(self, caller: Caller) -> None:
        """Until `leave`; raises Refusal 429."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while self._open[caller.name] >= self._of_one or self._open.total >= self._together:
                    await self._left.wait()
        except TimeoutError:
            limits = f"{self._of_one} such requests of a caller are read together, {self._together} of all"
            raise Refusal(
                429, f"{limits}, and others are before this one; try again in 1 s", {"retry-after": "1", **CLOSE}
            ) from None
        self._open.add(caller.name, 1)

    def leave(self, caller: Caller) -> None:
        self._open.add(caller.name, -1)
        self._left.ring()


class Rooms(NamedTuple):
    """Of one manager, for all its front ends."""

    large: Large
    arriving: Large
    talking: Large  # calls of many messages, which may be long in coming


def rooms() -> Rooms:
    return Rooms(Large(), *(Large(MOST_ARRIVING, MOST_ARRIVING_TOGETHER) for _ in range(2)))


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
