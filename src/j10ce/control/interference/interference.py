"""`interference`: who suffers from whom; and, where the node's strategy says `act`, the mildest cap that helps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import UNSET

from j10ce.control.besteffort import has_capped_parts, resizing
from j10ce.control.controller import Controller, Unconfigured
from j10ce.control.interference import trial as trials
from j10ce.control.interference.correlation import TimedValue
from j10ce.control.interference.detector import Case, Evidence, antagonists
from j10ce.control.interference.symptoms import (
    SYMPTOMS,
    Suffering,
    Symptom,
    capacity,
    least_effect,
    level_of,
    somewhere,
    suffering,
)
from j10ce.control.interference.trial import KNOBS_BY_RESOURCE, LONGEST_S, Trial
from j10ce.model.kinds import Tier
from j10ce.model.knob import Setting, TargetId
from j10ce.model.parts.reported import InterferenceReport
from j10ce.model.plan import Bound, Proposal, Rank
from j10ce.model.resource import spell
from j10ce.model.snapshot import Snapshot
from j10ce.model.workload import Entitlement

LOOK_S: Final = 5.0  # at each symptom
WINDOW_S: Final = 60.0
TWICE: Final = 2  # looks in a row must name the same one
CALM_S: Final = 30.0  # an accusation stands so long after it was last confirmed
MOST_WORST: Final = 2  # victims per look
MOST_IN_TURN: Final = 2  # and of the others: whoever makes itself wait hides nobody else
MOST_ACCUSED: Final = 16
MOST_SUSPECTS: Final = 32  # by their use
RISE: Final = 3.0  # the suffering must have risen by `bad` over this, and by half of what is usual

Pair = tuple[TargetId, TargetId, str]  # victim, suspect, resource


class Accusation(NamedTuple):
    suffering: Suffering
    evidence: Evidence
    looks: int  # in a row that named it
    at: float  # the last of them

    @property
    def pair(self) -> Pair:
        return self.suffering.target, self.evidence.suspect, self.suffering.symptom.resource


class Interference(Unconfigured):
    name = "interference"

    def __init__(self, config: Unconfigured.Config) -> None:
        super().__init__(config)
        self.seen: tuple[InterferenceReport, ...] = ()
        self._looked: dict[Symptom, float] = {}
        self._heard: dict[tuple[TargetId, Symptom], float] = {}  # when a victim was looked at last
        self._accused: dict[Pair, Accusation] = {}
        self._trials: dict[tuple[TargetId, str], Trial] = {}  # by suspect and resource
        self._reasons: dict[tuple[TargetId, str], str] = {}

    def propose(self, snap: Snapshot, /) -> Iterator[Proposal]:
        said = snap.strategy.interference.mode
        mode = "observe" if said is UNSET else said
        if mode == "off":
            self.seen, self._accused, self._trials = (), {}, {}
            return
        self._look(snap)
        self._forget(snap)
        acts = mode == "act"
        self._trials = self._act(snap) if acts else {}
        yield from self._caps(snap)
        self.seen = tuple(self._report(snap, a, acts=acts) for a in self.accusations())

    def accusations(self) -> list[Accusation]:
        """Those that were confirmed, the worst first."""
        stand = [a for a in self._accused.values() if a.looks >= TWICE]
        return sorted(stand, key=lambda a: (-a.suffering.level / a.suffering.bad, -a.evidence.score))[:MOST_ACCUSED]

    # ------------------------------------------------------------------ who suffers from whom

    def _look(self, snap: Snapshot) -> None:
        """At one symptom, if one is due: no tick pays for all of them."""
        symptom = min(SYMPTOMS, key=lambda s: self._looked.get(s, -math.inf))
        if snap.now - self._looked.get(symptom, -math.inf) < LOOK_S:
            return
        self._looked[symptom] = snap.now
        if not somewhere(snap, symptom):
            return
        protected = [e for e in snap.entitlements.values() if e.chosen and e.tier is not Tier.BESTEFFORT]
        victims = [s for e in protected if (s := suffering(snap, e, symptom)) is not None]
        for victim in self._in_turn(victims):
            self._heard[victim.target, symptom] = snap.now
            for evidence in antagonists(_case(snap, victim)):
                self._accuse(Accusation(victim, evidence, 1, snap.now))

    def _in_turn(self, victims: Iterable[Suffering]) -> list[Suffering]:
        ordered = sorted(victims, key=lambda s: (-s.level, s.target))
        others = sorted(ordered[MOST_WORST:], key=lambda s: self._heard.get((s.target, s.symptom), -math.inf))
        return ordered[:MOST_WORST] + others[:MOST_IN_TURN]

    def _accuse(self, fresh: Accusation) -> None:
        known = self._accused.get(fresh.pair)
        recent = known is not None and fresh.at - known.at <= CALM_S
        self._accused[fresh.pair] = fresh._replace(looks=known.looks + 1 if known and recent else 1)

    def _forget(self, snap: Snapshot) -> None:
        """Whoever is gone, and what was not confirmed for a while; what is done about it keeps it alive."""
        here = snap.entitlements
        self._heard = {key: at for key, at in self._heard.items() if key[0] in here}
        held = {(t.victim, t.suspect, t.resource) for t in self._trials.values() if t.caps}
        self._accused = {
            pair: a
            for pair, a in self._accused.items()
            if pair[0] in here and pair[1] in here and (pair in held or snap.now - a.at < CALM_S)
        }

    # ------------------------------------------------------------------ what is done about it

    def _act(self, snap: Snapshot) -> dict[tuple[TargetId, str], Trial]:
        kept = {
            key: self._proceed(snap, t)
            for key, t in self._trials.items()
            if t.suspect in snap.entitlements
            and (t.victim in snap.entitlements or not t.caps)
            and (t.caps or snap.now - t.until < LONGEST_S)
        }
        if any(t.stage == "trying" for t in kept.values()):
            return kept
        for accusation in self.accusations():
            _, suspect, resource = accusation.pair
            before = kept.get((suspect, resource))
            if not _left_alone(snap, accusation) and trials.may_begin(before, snap.now):
                kept[suspect, resource] = self._begin(snap, accusation, before)
                break
        return kept

    def _begin(self, snap: Snapshot, accusation: Accusation, before: Trial | None) -> Trial:
        victim, suspect, resource = accusation.pair
        suffered = _over_a_trial(snap, accusation) or accusation.suffering.level
        used = _used(snap, suspect, accusation.suffering.symptom)
        if before is None:
            return trials.begin(victim, suspect, resource, suffered, used, snap.now)
        return trials.again(before._replace(victim=victim), suffered, used, snap.now)

    def _proceed(self, snap: Snapshot, t: Trial) -> Trial:
        accusation = self._accused.get((t.victim, t.suspect, t.resource))
        if accusation is None:
            return t if not t.caps else t._replace(stage="ended")
        t = _followed(snap, t)
        return trials.proceed(t, snap.now, _over_a_trial(snap, accusation), accusation.suffering.bad)

    def _caps(self, snap: Snapshot) -> Iterator[Proposal]:
        reasons = {}
        for key, t in self._trials.items():
            if t.caps:
                value = trials.cap(t, snap.entitlements[t.suspect], snap)
                accusation = self._accused[t.victim, t.suspect, t.resource]
                reasons[key] = self._reasons.get(key) or _reason(accusation)
                yield Proposal(
                    Setting(t.suspect, KNOBS_BY_RESOURCE[t.resource]),
                    Bound.AT_MOST,
                    value,
                    self.name,
                    Rank.POLICY,
                    f"{reasons[key]}; {_step(t)}",
                )
        self._reasons = reasons  # as of the beginning: a sentence that changed on every tick would be decided anew

    def _report(self, snap: Snapshot, a: Accusation, *, acts: bool) -> InterferenceReport:
        victim, suspect, resource = a.pair
        return InterferenceReport(
            victim=_named(victim),
            antagonist=_named(suspect),
            resource=resource,
            suffering=str(a.suffering),
            evidence=_evidence(a),
            correlation=round(a.evidence.correlation, 2),
            samples=a.evidence.samples,
            action=self._done(snap, a, acts=acts),
        )

    def _done(self, snap: Snapshot, a: Accusation, *, acts: bool) -> str:
        if not acts:
            return "observed"
        if why := _left_alone(snap, a):
            return f"left alone: {why}"
        t = self._trials.get((a.pair[1], a.pair[2]))
        if t is None or t.stage == "ended":
            return "next in turn"
        left = f"{max(0.0, t.until - snap.now):.0f} s"
        if t.stage == "given up":
            return f"given up: no cap helped; not tried again for {left}"
        value = trials.spelt(t, trials.cap(t, snap.entitlements[t.suspect], snap))
        return f"{value}, {'on trial' if t.stage == 'trying' else 'it helps; kept'} for {left}"


def _case(snap: Snapshot, victim: Suffering) -> Case:
    symptom = victim.symptom
    series = snap.readings.timed(victim.target, symptom.metric, WINDOW_S)
    most = capacity(snap, symptom.use) if symptom.resource == "cpu" else math.inf
    rise, least = max(victim.bad / RISE, victim.usual / 2), least_effect(snap, symptom)
    return Case(victim.target, series, _uses(snap, victim, least), victim.bad, rise, least, most)


def _uses(snap: Snapshot, victim: Suffering, least: float) -> Mapping[TargetId, Sequence[TimedValue]]:
    """Of the victim, and of the largest users: whoever never used the least effect cannot have had it."""
    use = victim.symptom.use
    peaks = {t: snap.readings.window(t, use, WINDOW_S).peak() or 0.0 for t in snap.entitlements}
    large = sorted((t for t, peak in peaks.items() if peak >= least), key=lambda t: (-peaks[t], t))[:MOST_SUSPECTS]
    return {t: snap.readings.timed(t, use, WINDOW_S) for t in {victim.target, *large}}


def _left_alone(snap: Snapshot, a: Accusation) -> str:
    """Why nothing is done about an antagonist; empty where something may be."""
    victim, suspect = snap.entitlements[a.suffering.target], snap.entitlements[a.evidence.suspect]
    knob = KNOBS_BY_RESOURCE.get(a.suffering.symptom.resource)
    if knob is None:
        return f"no knob limits {a.suffering.symptom.resource}"
    if not snap.supports(knob):
        return f"{knob} is missing here"
    return _protected(suspect, victim) or _in_the_way(snap, suspect.target, knob)


def _protected(suspect: Entitlement, victim: Entitlement) -> str:
    if not suspect.chosen:
        return "no profile chooses it"
    if suspect.tier.rank >= victim.tier.rank:
        return f"its tier {suspect.tier.value} is not below {victim.tier.value}"
    return ""


def _in_the_way(snap: Snapshot, suspect: TargetId, knob: str) -> str:
    if resizing(snap, suspect):
        return "it is being resized"
    return "a container in it has a quota" if knob == "cpu.max" and has_capped_parts(snap, suspect) else ""


def _over_a_trial(snap: Snapshot, a: Accusation) -> float | None:
    """Before and after are compared over the same time: an antagonist that pauses now and then is no better for it."""
    return level_of(snap, a.suffering.target, a.suffering.symptom, trials.TRIAL_S)


def _followed(snap: Snapshot, t: Trial) -> Trial:
    """A cap on memory is never written below what is in use, so it follows the use until it is in force."""
    if t.resource != "memory" or t.stage != "trying":
        return t
    value = snap.settings.get(Setting(t.suspect, KNOBS_BY_RESOURCE[t.resource]), math.inf)
    held = snap.readings.window(t.suspect, "memory.current", LOOK_S).last() or 0.0
    in_force = isinstance(value, float | int) and value <= trials.cap(t, snap.entitlements[t.suspect], snap)
    return t if in_force or held <= t.used else t._replace(used=held)


def _used(snap: Snapshot, target: TargetId, symptom: Symptom) -> float:
    return snap.readings.window(target, symptom.use, 2 * LOOK_S).mean() or 0.0


def _reason(a: Accusation) -> str:
    return f"{_named(a.suffering.target)} {a.suffering}; {_evidence(a)}"


def _step(t: Trial) -> str:
    rungs = trials.RUNGS[t.resource]
    of = spell("memory", int(t.used)) if t.resource == "memory" else f"{t.used:.2f} CPUs"
    what = f"step {t.rung + 1} of {len(rungs)}: {rungs[t.rung]:.0%} of {of}"
    return f"{what}, on trial" if t.stage == "trying" else f"{what}, kept since it helps"


def _evidence(a: Accusation) -> str:
    e, use = a.evidence, a.suffering.symptom.use
    more = {"cpu.usage": f"{e.effect:.2f} CPUs", "memory.current": spell("memory", int(e.effect))}
    amount = more.get(use, f"{e.effect / 1e6:.1f} MB/s")
    if not e.correlation:
        return f"it holds {amount} all the time, in {e.samples} samples"
    return (
        f"it uses {amount} more then: correlation {e.correlation:.2f} over {e.samples} samples, overlap {e.overlap:.0%}"
    )


def _named(target: TargetId) -> str:
    return target.removeprefix("workload/")


_: Controller = Interference(Interference.Config())
