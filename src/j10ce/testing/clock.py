"""A clock that stands still until a test moves it."""

from __future__ import annotations

from j10ce.daemon.clock import Clock, Instant
from j10ce.testing.build import WALL


class FakeClock:
    def __init__(self, now: float = 1000.0, wall: float = WALL) -> None:
        self.now = now
        self.wall = wall

    def read(self) -> Instant:
        return Instant(self.now, self.wall)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds

    def jump(self, seconds: float) -> None:
        """Someone sets the wall clock; monotonic time does not care."""
        self.wall += seconds


_: Clock = FakeClock()
