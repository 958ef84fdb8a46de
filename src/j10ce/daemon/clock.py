"""The two clocks of a process: monotonic for control laws and waits, wall for expiry and reports."""

from __future__ import annotations

import time
from typing import NamedTuple, Protocol


class Instant(NamedTuple):
    now: float  # monotonic
    wall: float  # seconds since 1970


class Clock(Protocol):
    def read(self) -> Instant: ...


class SystemClock:
    def read(self) -> Instant:
        return Instant(time.monotonic(), time.clock_gettime(time.CLOCK_REALTIME))
