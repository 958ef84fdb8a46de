"""Requests whose body is there: of one caller a few are worked on together, and one where it is short of time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

MOST_TOGETHER: Final = 4  # of one caller: what they will take is not known yet


class Desk:
    """One caller's. Whoever came first is next; those behind it ask for nothing meanwhile."""

    def __init__(self) -> None:
        self.working = self.here = 0  # those that wait are here, too
        self.first = asyncio.Lock()
        self.left = asyncio.Event()


class Desks:
    """A desk of each caller that has a request here: nobody else takes memory."""

    def __init__(self) -> None:
        self._desks: dict[str, Desk] = {}

    def __len__(self) -> int:
        return len(self._desks)

    async def begin(self, name: str, short: Callable[[], bool], wait_s: Callable[[], float]) -> None:
        """Until `end`. Whoever is `short` of time begins when nothing of its own is worked on, `wait_s` later, which
        may raise."""
        desk = self._desks.setdefault(name, Desk())
        desk.here += 1
        try:
            async with desk.first:
                while desk.working >= (1 if short() else MOST_TOGETHER):
                    desk.left.clear()
                    await desk.left.wait()
                if seconds := wait_s():
                    await asyncio.sleep(seconds)
                desk.working += 1
        except BaseException:
            self._leave(name, desk)
            raise

    def end(self, name: str) -> None:
        desk = self._desks[name]
        desk.working -= 1
        desk.left.set()
        self._leave(name, desk)

    def _leave(self, name: str, desk: Desk) -> None:
        desk.here -= 1
        if not desk.here:
            del self._desks[name]
