"""Work that leaves others their turn: requests, watches and the lease of a leader share the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from time import perf_counter
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")
TURN_S: Final = 0.005
SLICE_S: Final = 0.001
SLICE: Final = 64  # items of which nobody asks how long they take, where all before them took little


async def unhurried(items: Iterable[T]) -> AsyncIterator[T]:
    """The same items; others have a turn whenever these have taken TURN_S."""
    due = perf_counter() + TURN_S  # the clock of the event loop stands still during a turn
    for item in items:
        yield item
        if perf_counter() >= due:
            await asyncio.sleep(0)
            due = perf_counter() + TURN_S


class Slices:
    """The long work of requests in short steps. All requests together have one step in a turn of the event loop, so
    that whoever asks for little waits for one of them, however many others ask for much."""

    def __init__(self) -> None:
        self._step = asyncio.Lock()

    async def of(self, items: Sequence[T], work: Callable[[Sequence[T]], R]) -> list[R]:
        """What `work` makes of the items, slice by slice. Items may be large: the first slice is one of them, and every
        other at most twice the one before it."""
        done: list[R] = []
        at = 0
        if len(items) <= SLICE:  # nearly always all that there is to do
            at = self._step_of(items, 0, work, done)
        if 0 < at < len(items):
            await asyncio.sleep(0)
        while at < len(items):
            async with self._step:
                at = self._step_of(items, at, work, done)
                await asyncio.sleep(0)
        return done or [work(items)]

    def _step_of(self, items: Sequence[T], at: int, work: Callable[[Sequence[T]], R], done: list[R]) -> int:
        """Where the next step begins."""
        due, size = perf_counter() + SLICE_S, 1
        while at < len(items) and perf_counter() < due:
            done.append(work(items[at : at + size]))
            at, size = at + size, min(SLICE, 2 * size)
        return at

    async def alone(self) -> None:
        """Returns in a turn of the event loop that has no other step."""
        async with self._step:
            await asyncio.sleep(0)
