"""Seconds since 1970 that never go back, whatever is done to the clock of the machine."""

from __future__ import annotations

from j10ce.daemon.clock import Clock


class SteadyWall:
    """As the wall clock was at the start, and as much later as the monotonic clock says."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        now, wall = clock.read()
        self._ahead = wall - now

    def __call__(self) -> float:
        return self._clock.read().now + self._ahead
