"""How long each CPU was real-time lately, over all workloads in the keeper's care.

cgroup v1 counts by CPU. On v2 a thread's time goes to the CPU that it ran on last, and what nobody was asked about
goes to every CPU: a CPU is rather held for crowded than overlooked. Those on which the keeper may not
run itself, or that come later, count once something was used there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from j10ce.kernel.realtime.law import SHARE, TICK_S, WINDOW_S, CpuWindow

EVERYWHERE: Final = -1  # stands for a CPU where nobody knows which


class Use(NamedTuple):
    """What real-time threads used in a span."""

    start: float
    end: float
    by_cpu: Mapping[int, float]


class Crowding:
    def __init__(self, cpus: Iterable[int]) -> None:
        self.share = SHARE
        self._windows = {cpu: CpuWindow() for cpu in cpus}

    def take(self, uses: Iterable[Use]) -> None:
        """All spans of one tick."""
        for use in uses:
            unknown = use.by_cpu.get(EVERYWHERE, 0.0)
            for cpu in use.by_cpu.keys() - self._windows.keys() - {EVERYWHERE}:
                self._windows[cpu] = CpuWindow()
            for cpu, window in self._windows.items():
                window.add(use.start, use.end, use.by_cpu.get(cpu, 0.0) + unknown)

    def crowded(self, now: float) -> bool:
        """Whether it matters by now which CPU is meant."""
        return any(w.used_since(now - WINDOW_S) >= WINDOW_S / 2 for w in self._windows.values())

    def allowance(self, now: float) -> float:
        """Of the CPU that has least; 0: real-time rests."""
        return min((w.allowance(now, self.share) for w in self._windows.values()), default=TICK_S)
