"""SchedulingGates: a pod waits until those who put gates before it have taken them away."""

from __future__ import annotations

from j10ce.scheduler.book.facts import PodFacts
from j10ce.scheduler.cycle.framework import PreEnqueue


class SchedulingGates:
    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodFacts, now: float, /) -> str:
        return f"waiting for scheduling gates: [{' '.join(pod.gates)}]" if pod.gates else ""


_: type[PreEnqueue] = SchedulingGates
