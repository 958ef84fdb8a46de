"""`memory-reclaim`: memory that a workload does not use goes back to the machine before anybody is short of it.

Off unless a profile, a strategy or the workload itself asks for it:

    reclaim            cold memory, whatever is in use: by the law in `steps`
    watermarkPercent   memory above so much of the limit, down to GAP below it, by the same law; where the kernel has
                       watermarks of its own they do it
    pageCacheLimit     page cache above its limit; where the kernel has that limit it does it

What a workload was promised is never asked back, nor anything of tier system. Where the kernel cannot be asked
(memory.reclaim), nothing is done, and `doctor` and `explain` say so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import UNSET

from j10ce.control.controller import Actor, Attentive, Controller, Unconfigured
from j10ce.control.memory.page_cache import cache_limit
from j10ce.control.memory.parts import allowed
from j10ce.control.memory.protection import claimed
from j10ce.control.memory.steps import LEAST_BYTES, MOST, Measured, Steps, felt
from j10ce.model.kinds import Tier
from j10ce.model.knob import Deed, TargetId
from j10ce.model.plan import Action, Proposal
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement

TARGET_PERCENT: Final = 0.1  # of time stalled, unless a profile says another number
GAP: Final = 0.02  # of the limit: how far below a watermark memory is taken back
AT_ONCE: Final = 8  # looked at in one run of the ring: the kernel takes back of one after the other
JUST_NOW_S: Final = 0.05  # what was read at the last look itself is not news
UNSEEN_S: Final = 1.0  # until another look at whoever was not measured: others have their turn first
AHEAD_S: Final = 1.5  # whoever is due by then is sampled closely at the next run


class Goal(NamedTuple):
    """What is to be taken back of one workload; infinite: no such mark."""

    cold: bool
    mark: float  # bytes in use above which some are taken back
    low: float  # down to here
    cache: float  # bytes of page cache at most
    kept: float  # promised: never taken
    target_percent: float


class MemoryReclaim(Unconfigured):
    name = "memory-reclaim"

    def __init__(self, config: Unconfigured.Config) -> None:
        super().__init__(config)
        self.attends: frozenset[TargetId] = frozenset()
        self._epoch = -1
        self._goals: dict[TargetId, Goal] = {}
        self._steps: dict[TargetId, Steps] = {}

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        """It sets nothing: see `act`."""
        return iter(())

    def act(self, snap: Snapshot, /) -> Iterator[Action]:
        self._look(snap)
        for target in self._due(snap.now):
            if (wish := self._wish(target, snap)) is not None:
                action, self._steps[target] = wish
                yield action
        self.attends = frozenset(self._due(snap.now + AHEAD_S))

    def _due(self, by: float) -> list[TargetId]:
        """Whoever waits longest first."""
        due = sorted((steps.again, target) for target, steps in self._steps.items() if steps.again <= by)
        return [target for _, target in due[:AT_ONCE]]

    def _look(self, snap: Snapshot) -> None:
        """Who is asked for what changes only with the epoch."""
        if snap.epoch == self._epoch:
            return
        self._epoch = snap.epoch
        asked = ((t, goal(e, snap)) for t, e in snap.entitlements.items()) if snap.supports(Deed.RECLAIM.value) else ()
        self._goals = {t: g for t, g in asked if g is not None}
        self._steps = {t: self._steps.get(t) or Steps(snap.now, snap.now) for t in self._goals}

    def _wish(self, target: TargetId, snap: Snapshot) -> tuple[Action, Steps] | None:
        """What to ask for now, and where the workload stands after it; None: nothing, or not enough is measured."""
        goal, steps, seen = self._goals[target], self._steps[target], measured(target, snap, self._steps[target].at)
        if seen is None:
            self._steps[target] = steps._replace(again=snap.now + UNSEEN_S)
            return None
        cache = snap.readings.window(target, "memory.file", snap.now - steps.at - JUST_NOW_S).last() or 0.0
        if cache > goal.cache + LEAST_BYTES:
            most = spell("memory", int(goal.cache))
            reason = f"page cache of {spell('memory', int(cache))}, {most} are allowed"
            amount = min(cache - goal.cache, seen.current - goal.kept)
            action = self._action(target, amount, reason, "file")
            return (action, steps.stepped(0.0, seen)) if amount >= LEAST_BYTES else None
        if felt(steps, seen, goal.target_percent):
            self._steps[target] = steps.paused(snap.now)
            return None
        steps = steps.quiet()
        amount, reason = step(goal, steps, seen)
        if amount < LEAST_BYTES:
            self._steps[target] = steps.stepped(0.0, seen)
            return None
        return self._action(target, amount, reason), steps.stepped(amount, seen)

    def _action(self, target: TargetId, amount: float, reason: str, only: str = "") -> Action:
        return Action(Deed.RECLAIM, target, self.name, reason, amount=float(int(amount)), only=only)


def goal(e: Entitlement, snap: Snapshot) -> Goal | None:
    """None: nothing is to be taken back of it."""
    w, memory, page = snap.workloads.get(e.target), e.memory, snap.node.page
    if w is None or not e.chosen or e.tier is Tier.SYSTEM:
        return None
    limit, percent, mark = allowed(w), memory.watermark_percent or 0, math.inf
    if percent and limit != math.inf and not snap.supports("memory.wmark_ratio"):
        mark = limit * percent / 100
    cache = math.inf if snap.supports("memory.pagecache_limit.size") else cache_limit(memory, limit, page)
    cold = memory.reclaim.enabled is True
    if not cold and mark == math.inf and cache == math.inf:
        return None
    target = memory.reclaim.target_pressure
    kept = max(claimed(e, page).min, float(e.floor.memory))
    return Goal(cold, mark, mark - limit * GAP, cache, kept, TARGET_PERCENT if target is UNSET else target)


def measured(target: TargetId, snap: Snapshot, since: float) -> Measured | None:
    """Since the last look; None: nothing was read since."""
    span = snap.now - since - JUST_NOW_S
    refaults = snap.readings.window(target, "memory.refaults", span).mean()
    current = snap.readings.window(target, "memory.current", span).last()
    if refaults is None or current is None:
        return None
    return Measured(
        snap.now, current, refaults * snap.node.page, snap.readings.window(target, "memory.pressure", span).mean()
    )


def step(goal: Goal, steps: Steps, seen: Measured) -> tuple[float, str]:
    """How many bytes, and why. Above a watermark there is no time for the smallest of steps."""
    room = max(0.0, seen.current - goal.kept)
    used = f"{spell('memory', int(seen.current))} in use"
    felt_less = "no pressure is measured" if seen.pressure is None else f"stalled {seen.pressure:.2%} of the time"
    if seen.current > goal.mark:
        amount = min(seen.current - goal.low, room * MOST)
        return amount, f"{used}, above the mark of {spell('memory', int(goal.mark))}; {felt_less}"
    if not goal.cold:
        return 0.0, ""
    back = spell("memory", int(seen.refaults))
    least = LEAST_BYTES if room * MOST >= LEAST_BYTES else 0.0  # of something small a smaller step would tell nothing
    return max(room * steps.fraction, least), f"{steps.fraction:.0%} of the {used}; {felt_less}, {back}/s read back"


def _conforms(c: MemoryReclaim) -> tuple[Controller, Actor, Attentive]:
    return c, c, c
