"""Steps of the core, one batch after another while this replica leads; what becomes of them goes back into it.

Everything happens on one event loop: the core is never asked and told at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import process_time
from typing import Final

from j10ce.daemon.bell import Bell
from j10ce.scheduler.cycle.scheduler import Scheduler
from j10ce.scheduler.process.hands import Hands
from j10ce.scheduler.process.metrics import SchedulerMetrics

AT_ONCE: Final = 32  # pods that are decided before watches and answers have their turn
LONG_S: Final = 0.05  # a step takes so long at most, if a pod does: leases and watches do not wait for it
LONGEST_WAIT_S: Final = 5.0


class Deciding:
    """Hears of what was carried out (hands.Reported), and decides what is next."""

    def __init__(self, scheduler: Scheduler, wall: Callable[[], float], metrics: SchedulerMetrics) -> None:
        self._scheduler, self._wall, self._metrics = scheduler, wall, metrics
        self._most = AT_ONCE
        self.moved = Bell()

    def bound(self, uid: str) -> None:
        self._scheduler.bound(uid, self._wall())
        self.moved.ring()

    def bind_failed(self, uid: str, why: str) -> None:
        self._scheduler.bind_failed(uid, why, self._wall())
        self.moved.ring()

    def evict_failed(self, uid: str, why: str) -> None:
        self._scheduler.evict_failed(uid, why, self._wall())
        self.moved.ring()

    async def run(self, hands: Hands) -> None:
        """For ever."""
        while True:
            before, count = process_time(), 0
            for decision in self._scheduler.step(self._wall(), self._most):
                hands.take(decision)
                count += 1
            self._most = pace(self._most, process_time() - before)
            if count:
                self._metrics.decided(count, process_time() - before)
                await asyncio.sleep(0)
                continue
            await self._rest()

    async def _rest(self) -> None:
        """Returns when something happened, or a pod is due."""
        now = self._wall()
        wait_s = min(LONGEST_WAIT_S, max(0.0, self._scheduler.next_at(now) - now))
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self.moved.wait()


def pace(most: int, took_s: float) -> int:
    """How many pods the next step decides, where the last one of so many took so long: whoever looks for pods that may
    go, on thousands of nodes, takes a hundred times as long as who finds room."""
    if took_s > LONG_S:
        return max(1, most // 2)
    return min(AT_ONCE, most * 2) if took_s < LONG_S / 4 else most
