"""How often pods may be moved at all: a share of the capacity, as starts take it.

rate = share · pods that have a node / overhead of a start        [preemptions per second]
"""

from __future__ import annotations

import math
from typing import Final

BURST_S: Final = 120.0  # what is not used is kept for so long


class PreemptionBudget:
    def __init__(self, share: float) -> None:
        self._share = share
        self._at = -math.inf
        self._level = 0.0

    def level(self, pods: int, overhead: float, now: float) -> float:
        """How many may go now. A small cluster may always move one at a time."""
        rate = self._share * max(pods, 1) / max(overhead, 0.1)
        most = max(rate * BURST_S, 1.0)
        gained = most if self._at == -math.inf else rate * max(now - self._at, 0.0)
        self._level = min(self._level + gained, most)
        self._at = max(now, self._at)
        return self._level

    def spend(self, victims: int) -> None:
        self._level -= victims
