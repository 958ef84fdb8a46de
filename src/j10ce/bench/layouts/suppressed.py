"""Koordinator's suppression of best effort, beside kubelet's shares: the law as its node agent applies it.

    allowed = capacity · 65 % − used by pods that are not best effort − used by the system         [CPUs]
    quota   = max(allowed · 100 ms, 2 ms) for each 100 ms, once a second; it grows by a tenth of the machine at most,
              and a step of less than one hundredth of it is not taken

That is the policy `cfsQuota`. Its other one, `cpuset`, always leaves best effort two CPUs.
"""

from __future__ import annotations

import time
from typing import Final

from j10ce.bench import machine
from j10ce.bench.layouts.layout import Attended, Crowd, Untended
from j10ce.bench.layouts.pods import MadeGroups

THRESHOLD: Final = 0.65
PERIOD_S: Final = 0.1
MICROSECONDS: Final = 1e6
LEAST_QUOTA_S: Final = 0.002
SLOWEST_STEP: Final = 0.01
FASTEST_GROWTH: Final = 0.1


def quota_s(capacity: float, used: float, before_s: float) -> float:
    """CPU seconds for best effort in each period. `used`: CPUs that everybody else has; `before_s`: the last answer."""
    wanted = max((capacity * THRESHOLD - used) * PERIOD_S, LEAST_QUOTA_S)
    if abs(wanted - before_s) < capacity * PERIOD_S * SLOWEST_STEP and wanted != LEAST_QUOTA_S:
        return before_s
    return min(wanted, before_s + capacity * PERIOD_S * FASTEST_GROWTH)


class Suppressing(Untended):
    """Starts where the law had arrived, had it watched the service before."""

    def __init__(self, groups: MadeGroups, besteffort: str, crowd: Crowd, usual: float) -> None:
        self._groups, self._besteffort, self._crowd = groups, besteffort, crowd
        self._quota_s = max((machine.cpus() * THRESHOLD - usual) * PERIOD_S, LEAST_QUOTA_S)
        self._write()
        self._seen = self._look()

    def tend(self) -> None:
        before, self._seen = self._seen, self._look()
        now, others = (after - earlier for after, earlier in zip(self._seen, before, strict=True))
        self._quota_s = quota_s(machine.cpus(), max(others, 0.0) / max(now, PERIOD_S), self._quota_s)
        self._write()

    def _look(self) -> tuple[float, float]:
        """(clock, CPU seconds of everybody but best effort)."""
        return time.monotonic(), machine.spent().busy - machine.cpu_s(self._crowd.antagonists)

    def _write(self) -> None:
        self._groups.set(self._besteffort, "cpu.max", self._quota_s * MICROSECONDS)


def _conforms(suppressing: Suppressing) -> Attended:
    return suppressing
