"""`eviction`: when a node runs short, best effort gives way in four stages, and the last one is to leave.

Each trigger has a ladder of its own (`ladder`) and victims of its own (`victims`), who stay its victims until it is
calm again. Too much that is lent, and best effort that gets too little, is mended by leaving alone: those ladders have
one stage.

A frozen workload is thawed before it is evicted: a frozen process cannot end itself. Evictions and kills are proposed
only, unless the node's strategy says `enforce`; until then whoever would have to leave stands still instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final, NamedTuple

from msgspec import UNSET, Meta

from j10ce.control.controller import Actor, Controller
from j10ce.control.eviction.ladder import Climb, Pace, Rung, Signs, step
from j10ce.control.eviction.needs import FRESH_S, Need, needs
from j10ce.control.eviction.throttle import Caps
from j10ce.control.eviction.victims import Victim, candidates, choose, leaving
from j10ce.model.kinds import Strict
from j10ce.model.knob import NODE, Deed, Setting, TargetId
from j10ce.model.plan import Action, Bound, LadderView, Proposal, Rank
from j10ce.model.quantity import Duration
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import EvictionTrigger

COOL_DOWN_S: Final = 60.0
RECLAIMED: Final = 8  # one part in so many of a victim's memory, at a time
LATE_S: Final = 600.0  # an eviction of longer ago is no reason to kill
CLIMBED: Final[frozenset[str]] = frozenset(("memory", "cpu"))  # triggers with all stages
Share = Annotated[float, Meta(gt=0, le=1)]


class Course(NamedTuple):
    """One trigger: how far it went, and whom it hits."""

    need: Need
    climb: Climb = Climb()
    pressed: bool | None = None
    victims: tuple[Victim, ...] = ()


class Eviction:
    name = "eviction"

    class Config(Strict, frozen=True, kw_only=True):
        pressure: Share = 0.10  # share of time in which tasks wait: from here on it hurts
        relief: Share = 0.05  # and below this no more
        reclaim: Duration = Duration(5)  # at each stage, before the next one
        throttle: Duration = Duration(10)
        freeze: Duration = Duration(20)
        critical: Duration = Duration(2)  # instead, on a node that is nearly full
        settle: Duration = Duration(10)  # of calm, before the stage below
        grace: Duration = Duration(30)  # from an eviction to a kill, of what was started here

    def __init__(self, config: Config) -> None:
        self.config = config
        self.ladders: tuple[LadderView, ...] = ()
        self._courses: dict[EvictionTrigger, Course] = {}
        self._caps = {"memory": Caps("memory"), "cpu": Caps("cpu")}
        stages = {Rung.RECLAIM: config.reclaim, Rung.THROTTLE: config.throttle, Rung.FREEZE: config.freeze}
        dwell = {stage: time.seconds for stage, time in stages.items()}
        self._pace = Pace(dwell, config.settle.seconds, config.critical.seconds)

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        self._courses = {need.trigger: self._climb(snap, need) for need in needs(snap)}
        self.ladders = tuple(_view(snap, course) for course in self._courses.values())
        self._forget_caps()
        gone = leaving(snap, cool_down_s(snap))
        for trigger, course in self._courses.items():
            stays = [v.target for v in course.victims if v.target not in gone]
            if trigger in CLIMBED and _stands_still(snap, course) and snap.supports("cgroup.freeze"):
                yield from (_freeze(course, t) for t in stays if not snap.entitlements[t].floor.cpu)
            if trigger in CLIMBED and course.climb.stage >= Rung.THROTTLE:
                yield from self._throttle(snap, course, stays, [v.target for v in course.victims if v.target in gone])

    def act(self, snap: Snapshot, /) -> Iterator[Action]:
        """As `propose` has just decided."""
        yield from self._kills(snap)
        for course in self._courses.values():
            if course.climb.stage is Rung.EVICT:
                yield from _evictions(snap, course)
        memory = self._courses.get("memory")
        if memory is not None and memory.climb.stage >= Rung.RECLAIM and snap.supports(Deed.RECLAIM.value):
            yield from _reclaims(snap, memory)

    def _climb(self, snap: Snapshot, need: Need) -> Course:
        before = self._courses.get(need.trigger, Course(need))
        pressed = self._pressed(snap, before) if need.trigger in CLIMBED else None
        signs = Signs(need.over, need.under, pressed, need.critical, need.wait_s)
        climb = step(self._pace, before.climb, signs, snap.now, _stages(snap, need.trigger))
        victims = _victims(snap, need, before.victims) if climb.stage is not Rung.CALM else ()
        return Course(need, climb, pressed, victims)

    def _pressed(self, snap: Snapshot, before: Course) -> bool | None:
        waits = pressure(snap, before.need.trigger)
        if waits is None:
            return None
        return waits >= (self.config.relief if before.pressed else self.config.pressure)

    def _forget_caps(self) -> None:
        """Who is slowed down again some day is so by what it uses then."""
        slowing = {trigger for trigger, course in self._courses.items() if course.climb.stage >= Rung.THROTTLE}
        for resource, caps in self._caps.items():
            if resource not in slowing:
                caps.forget()

    def _throttle(
        self, snap: Snapshot, course: Course, victims: Iterable[TargetId], going: Iterable[TargetId]
    ) -> Iterator[Proposal]:
        caps = self._caps["memory" if course.need.trigger == "memory" else "cpu"]
        if snap.supports(caps.knob):
            for setting, most, how in caps.on(snap, victims, going):
                why = f"{how}: {course.need.reason}"
                yield Proposal(setting, Bound.AT_MOST, most, self.name, Rank.POLICY, why)

    def _kills(self, snap: Snapshot) -> Iterator[Action]:
        """Who was asked to leave, was started here by us, and did not go in time. A kubelet kills its own pods."""
        for (deed, target), at in snap.done.items():
            w, ago = snap.workloads.get(target), snap.wall - at
            if deed is not Deed.EVICT or w is None or not w.handle.made or w.since > at:
                continue
            if self.config.grace.seconds <= ago < LATE_S:
                why = f"asked to leave {ago:.0f} s ago and still here; it has {self.config.grace} of grace"
                yield Action(Deed.KILL, target, self.name, why, stage="kill", enforced=enforced(snap))


def cool_down_s(snap: Snapshot) -> float:
    """How long who was asked to leave counts as gone; then another one is asked as well."""
    said = snap.strategy.eviction.cool_down
    return COOL_DOWN_S if said is UNSET else said.seconds


def enforced(snap: Snapshot) -> bool:
    return snap.strategy.eviction.mode == "enforce"


def pressure(snap: Snapshot, trigger: str) -> float | None:
    return snap.readings.window(NODE, f"{trigger}.pressure", FRESH_S).mean()


def _stages(snap: Snapshot, trigger: EvictionTrigger) -> frozenset[Rung]:
    """Those that this machine can do something at."""
    if trigger not in CLIMBED:
        return frozenset((Rung.EVICT,))
    slows = "memory.high" if trigger == "memory" else "cpu.max"
    able = {
        Rung.RECLAIM: trigger == "memory" and snap.supports(Deed.RECLAIM.value),
        Rung.THROTTLE: snap.supports(slows),
        Rung.FREEZE: snap.supports("cgroup.freeze"),
        Rung.EVICT: True,
    }
    return frozenset(stage for stage, possible in able.items() if possible)


def _victims(snap: Snapshot, need: Need, before: Iterable[Victim]) -> tuple[Victim, ...]:
    """Those of before who may still go, then as many more as the need takes.

    Who was asked to leave, and is not let go for longer than the cool-down, counts for nothing: others are asked, too.
    """
    ordered = {v.target: v for v in candidates(snap, need.trigger)}
    gone = leaving(snap, cool_down_s(snap))
    asked = leaving(snap, LATE_S)
    kept = [ordered[v.target] for v in before if v.target in ordered]
    others = [v for v in ordered.values() if v.target not in {k.target for k in kept}]
    counted = sum(v.frees for v in kept if v.target in gone or v.target not in asked)
    return (*kept, *choose(others, need.amount - counted, gone))


def _stands_still(snap: Snapshot, course: Course) -> bool:
    """Where nobody has to leave, to stand still is the last stage."""
    stage = course.climb.stage
    return stage is Rung.FREEZE or (stage is Rung.EVICT and not enforced(snap))


def _freeze(course: Course, target: TargetId) -> Proposal:
    why = f"stands still before it would have to leave: {course.need.reason}"
    return Proposal(Setting(target, "cgroup.freeze"), Bound.WANT, 1.0, Eviction.name, Rank.POLICY, why)


def _evictions(snap: Snapshot, course: Course) -> Iterator[Action]:
    for victim in course.victims:
        if snap.workloads[victim.target].leaving:
            continue
        kind = "memory" if course.need.trigger in ("memory", "lent-memory") else "cpu"
        why = f"sets {spell(kind, int(victim.frees))} {kind} free: {course.need.reason}"
        yield Action(
            Deed.EVICT,
            victim.target,
            Eviction.name,
            why,
            victim.frees,
            Rung.EVICT.word,
            enforced(snap),
            trigger=course.need.trigger,
        )


def _reclaims(snap: Snapshot, course: Course) -> Iterator[Action]:
    """A part at a time, in the order of the victims, until the need is met."""
    missing = course.need.amount
    for victim in course.victims:
        amount = min(missing, victim.frees / RECLAIMED) // snap.node.page * snap.node.page
        if amount > 0:
            missing -= amount
            yield Action(
                Deed.RECLAIM,
                victim.target,
                Eviction.name,
                course.need.reason,
                amount,
                Rung.RECLAIM.word,
                trigger=course.need.trigger,
            )


def _view(snap: Snapshot, course: Course) -> LadderView:
    trigger, climb = course.need.trigger, course.climb
    waits = pressure(snap, trigger) if trigger in CLIMBED else None
    text = course.need.reason
    if trigger in CLIMBED:
        text += ", no PSI: usage alone decides" if waits is None else f", tasks wait {waits:.0%} of the time"
    if climb.stage is not Rung.CALM:
        text += f"; for {snap.now - climb.since:.0f} s"
    return LadderView(trigger, climb.stage.word, text, tuple(v.target for v in course.victims))


def _conforms(controller: Eviction) -> tuple[Controller, Actor]:
    return controller, controller
