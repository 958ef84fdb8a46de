"""Work that leaves others their turn: requests, watches and the lease of a leader share the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from time import perf_counter
from typing import Final, TypeVar

T = TypeVar("T")
TURN_S: Final = 0.005


async def unhurried(items: Iterable[T]) -> AsyncIterator[T]:
    """The same items; others have a turn whenever these have taken TURN_S."""
    due = perf_counter() + TURN_S  # the clock of the event loop stands still during a turn
    for item in items:
        yield item
        if perf_counter() >= due:
            await asyncio.sleep(0)
            due = perf_counter() + TURN_S
