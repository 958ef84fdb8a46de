"""The law of taking memory back: small steps, larger while nobody feels them, and a pause when somebody does.

    step       = fraction · (memory in use − what is protected)
    fraction     FIRST, and doubled after each step that was not felt, up to MOST
    felt         stalled for memory for more than the target, or more than SHARE of the step was read back (refaults)
    after that   FIRST again, after a pause of PAUSE_S, doubled up to LONGEST_S; CALM steps in a row forget that

One step is at most every PERIOD_S, the time in which its effect is measured. Where nothing of a step came, there is
nothing to be had for now: the same pause. So 8 % every 4 s is the most that anything shrinks by, and something that is
hot all over never misses more than the 1 % of one step.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from j10ce.model.resource import spell

PERIOD_S: Final = 4.0
FIRST: Final = 0.01
MOST: Final = 0.08
SHARE: Final = 0.1
PAUSE_S: Final = 16.0
LONGEST_S: Final = 512.0
CALM: Final = 8
LEAST_BYTES: Final = 256 << 10  # what is less tells nothing, neither taken nor read back


class Measured(NamedTuple):
    """Of one workload since its last step."""

    now: float
    current: float  # bytes in use
    refaults: float  # bytes a second read back that had been taken
    pressure: float | None  # share of time stalled for memory; None: this kernel does not say


class Steps(NamedTuple):
    """Where one workload stands."""

    at: float  # from when on it is measured: the last look, or the end of a pause
    again: float  # when it is looked at again
    fraction: float = FIRST
    pause: float = PAUSE_S
    calm: int = 0  # steps in a row that were not felt
    taken: float = 0.0  # bytes asked for in the last step
    before: float = 0.0  # bytes in use then

    def stepped(self, amount: float, seen: Measured) -> Steps:
        """After a step of so many bytes; 0: nothing was to be asked for."""
        return self._replace(at=seen.now, again=seen.now + PERIOD_S, taken=amount, before=seen.current)

    def quiet(self) -> Steps:
        """The last step was not felt."""
        if not self.taken:
            return self
        calm = self.calm + 1
        pause = PAUSE_S if calm >= CALM else self.pause
        return self._replace(fraction=min(MOST, self.fraction * 2), calm=calm, pause=pause)

    def paused(self, now: float) -> Steps:
        """It was felt, or nothing came of it. What is read back meanwhile is the price of it, and counts no more."""
        over = now + self.pause
        return Steps(over, over, pause=min(LONGEST_S, self.pause * 2))


def felt(steps: Steps, seen: Measured, target_percent: float) -> str:
    """Why the last step was one too many; empty: it was not."""
    if seen.pressure is not None and seen.pressure * 100 > target_percent:
        return f"stalled {seen.pressure:.2%} of the time, {target_percent:g}% are allowed"
    back = seen.refaults * (seen.now - steps.at)
    if back > max(LEAST_BYTES, steps.taken * SHARE):
        return f"{spell('memory', int(back))} read back"
    if steps.taken and seen.current >= steps.before:
        return f"nothing came of the {spell('memory', int(steps.taken))} asked for"
    return ""
