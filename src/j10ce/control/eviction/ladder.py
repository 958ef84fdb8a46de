"""How far to go: one stage up while it hurts, one stage down when it does not. Pure: what it remembers is passed in.

    reclaim    memory of victims is taken back
    throttle   victims are slowed down
    freeze     victims stand still
    evict      victims have to leave

**Up.** At the threshold the first stage is entered at once, each further one after the dwell of the one before. Without
pressure it goes no further than throttle: usage alone hurts nobody. Above the critical mark, and on machines without
PSI, pressure is not asked, and a critical node waits `critical_s` only.

**Down.** Below the lower mark, after `settle_s` of calm, one stage at a time. Freeze and evict are left for throttle as
well when the pressure is gone. Whoever comes back up within `MEMORY_S` stays calm twice as long before the next step
down, up to `LONGEST_S`: a ladder must not swing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import Final, NamedTuple


class Rung(IntEnum):
    CALM = 0
    RECLAIM = 1
    THROTTLE = 2
    FREEZE = 3
    EVICT = 4

    @property
    def word(self) -> str:
        return self.name.lower()


MEMORY_S: Final = 600.0
LONGEST_S: Final = 300.0


class Signs(NamedTuple):
    """What is seen at one instant."""

    over: bool  # at or above the threshold
    under: bool  # below the lower mark
    pressed: bool | None  # tasks wait; None: nobody can say
    critical: bool = False
    wait_s: float = 0.0  # over the threshold before the first stage

    @property
    def urgent(self) -> bool:
        return self.critical or self.pressed is not False


class Climb(NamedTuple):
    """Where one ladder stands."""

    stage: Rung = Rung.CALM
    since: float = 0.0
    over_since: float | None = None  # while calm
    calm_since: float | None = None  # while not calm
    left: float | None = None  # when it went down, until it goes up again
    swings: int = 0  # how often it came back soon


class Pace(NamedTuple):
    dwell_s: Mapping[Rung, float]  # at least, before the next stage
    settle_s: float  # of calm, before the stage below
    critical_s: float = 2.0  # instead of the dwell, where that is longer, on a critical node


def step(pace: Pace, climb: Climb, signs: Signs, now: float, stages: Collection[Rung]) -> Climb:
    """`stages`: those that can be had here; the others are passed over."""
    if climb.stage is Rung.CALM:
        return _begin(climb, signs, now, stages)
    relieved = signs.under or (climb.stage >= Rung.FREEZE and not signs.urgent)
    if relieved:
        return _down(pace, climb, now, stages)
    climb = climb._replace(calm_since=None)
    dwell = pace.dwell_s.get(climb.stage, 0.0)
    due = now - climb.since >= (min(dwell, pace.critical_s) if signs.critical else dwell)
    after = _above(climb.stage, signs, stages)
    return _entered(climb, after, now) if due and after != climb.stage else climb


def _begin(climb: Climb, signs: Signs, now: float, stages: Collection[Rung]) -> Climb:
    if not signs.over or signs.under:
        return climb._replace(over_since=None)
    since = now if climb.over_since is None else climb.over_since
    first = _above(Rung.CALM, signs, stages)
    if first is Rung.CALM or now - since < signs.wait_s:
        return climb._replace(over_since=since)
    return _entered(climb, first, now)


def _above(stage: Rung, signs: Signs, stages: Collection[Rung]) -> Rung:
    top = Rung.EVICT if signs.urgent else Rung.THROTTLE
    return next((s for s in Rung if stage < s <= top and s in stages), stage)


def _entered(climb: Climb, stage: Rung, now: float) -> Climb:
    swings = climb.swings
    if climb.left is not None:
        swings = swings + 1 if now - climb.left < MEMORY_S else 0
    return Climb(stage, now, swings=swings)


def _down(pace: Pace, climb: Climb, now: float, stages: Collection[Rung]) -> Climb:
    since = now if climb.calm_since is None else climb.calm_since
    if now - since < min(LONGEST_S, pace.settle_s * 2**climb.swings):
        return climb._replace(calm_since=since)
    # Nobody is frozen on the way down: who was to leave, and may stay, runs on.
    below = [s for s in stages if s < climb.stage and s is not Rung.FREEZE]
    stage = max(below, default=Rung.CALM)
    return Climb(stage, now, calm_since=now, left=now, swings=climb.swings)
