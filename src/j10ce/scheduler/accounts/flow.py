"""Sums of intervals, those that go on included: a sum is linear in time, so that it costs nothing to let time pass.

at(now) = Σ closed (stop − start) + Σ open (now − start) = base + open · now
"""

from __future__ import annotations

from j10ce.scheduler.accounts.clock import PodClock


class Flow:
    """Times are seconds since an origin near them: large ones would cost digits."""

    __slots__ = ("base", "open")

    def __init__(self, base: float = 0.0) -> None:
        self.base = base
        self.open = 0

    def start(self, at: float) -> None:
        self.open += 1
        self.base -= at

    def stop(self, at: float) -> None:
        self.open -= 1
        self.base += at

    def at(self, now: float) -> float:
        return self.base + self.open * now


class Flows:
    """Of the pods of a slot, or of an account: how long they waited, were being bound, and ran."""

    __slots__ = ("binding", "incarnations", "killed", "origin", "running", "waiting")

    def __init__(self, origin: float) -> None:
        self.origin = origin
        self.waiting, self.binding, self.running = Flow(), Flow(), Flow()
        self.killed = 0.0  # running time of pods that ended without success
        self.incarnations = 0

    def opened(self, clock: PodClock) -> None:
        self.incarnations += 1
        self.waiting.start(clock.created - self.origin)

    def bind_started(self, at: float) -> None:
        self.waiting.stop(at - self.origin)
        self.binding.start(at - self.origin)

    def run_started(self, clock: PodClock, at: float) -> None:
        """`clock` does not know of it yet."""
        (self.waiting if clock.bind_start is None else self.binding).stop(at - self.origin)
        self.running.start(at - self.origin)

    def closed(self, clock: PodClock, at: float, succeeded: bool) -> None:
        """`clock` does not know of it yet."""
        if clock.run_start is not None:
            self.running.stop(at - self.origin)
            self.killed += 0.0 if succeeded else at - clock.run_start
        elif clock.bind_start is not None:
            self.binding.stop(at - self.origin)
        else:
            self.waiting.stop(at - self.origin)

    def add(self, waiting: float, binding: float, running: float, killed: float, incarnations: int) -> None:
        """What others have added up to."""
        self.waiting.base += waiting
        self.binding.base += binding
        self.running.base += running
        self.killed += killed
        self.incarnations += incarnations

    def resumed(self, clock: PodClock) -> None:
        """A pod that is bound or runs already."""
        reached = PodClock(clock.created)
        self.opened(reached)
        if clock.bind_start is not None:
            self.bind_started(clock.bind_start)
            reached.bind_start = clock.bind_start
        if clock.run_start is not None:
            self.run_started(reached, clock.run_start)
