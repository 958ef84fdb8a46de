"""The clock of one pod. Seconds since 1970; None: not seen yet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class PodClock:
    """Created, then bound, then running, then ended: the later ones may come without the earlier ones."""

    created: float
    bind_start: float | None = None
    run_start: float | None = None
    end: float | None = None
    succeeded: bool = False

    def waiting(self, now: float) -> float:
        for stamp in (self.bind_start, self.run_start, self.end):
            if stamp is not None:
                return stamp - self.created
        return now - self.created

    def binding(self, now: float) -> float:
        if self.bind_start is None:
            return 0.0
        return (now if self.run_start is None else self.run_start) - self.bind_start

    def running(self, now: float) -> float:
        if self.run_start is None:
            return 0.0
        return (now if self.end is None else self.end) - self.run_start
